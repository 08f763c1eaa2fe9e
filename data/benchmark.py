"""The model of `benchmark.json`: what a campaign found out, and whether it can be believed.

A figure that could not be had is null, and `unavailable` of its contrast says why: never 0.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import Field

from skilltrial.data.models import Kept
from skilltrial.data.plan import Provenance

BENCHMARK_SCHEMA = 1


class Verdict(StrEnum):
    """What a contrast shows. Closed; the first that applies, in this order."""

    INVALID = "invalid"  # the comparison is broken, whatever the numbers say
    UNDERPOWERED = "underpowered"  # too few untied evals for any claim at the declared level
    IMPROVED = "improved"
    REGRESSED = "regressed"
    EQUIVALENT = "equivalent"  # needs an equivalence test, which is not built yet: never claimed
    INCONCLUSIVE = "inconclusive"


class Severity(StrEnum):
    """What a warning means for the comparison."""

    INVALID = "invalid"  # the contrasts of its conditions must not be believed
    SUSPECT = "suspect"  # something other than the treatment may explain a difference
    NOTE = "note"  # worth knowing


class ValidityWarning(Kept):
    """One reason for doubt, on positive evidence. `cells` lists at most 20 of the `count` cells."""

    severity: Severity
    code: str
    message: str
    conditions: tuple[str, ...] = ()  # the arms it concerns; none: the campaign
    cells: tuple[str, ...] = ()
    count: int = 0


class Figure(Kept):
    """A distribution over cells. `sd` is the sample standard deviation (ddof 1). Null: too few values."""

    n: int
    mean: float | None
    sd: float | None
    median: float | None


class Share(Kept):
    """How many of the cells for which it is known; `share` is null when none is."""

    known: int
    true: int
    share: float | None


class SkillSource(Kept):
    """One staged skill and where it came from."""

    slug: str
    name: str
    digest: str
    provenance: Provenance


class CodebaseSource(Kept):
    """One codebase and the evals that start from it."""

    key: str
    branch: str
    revision: str | None
    evals: tuple[str, ...]
    provenance: Provenance


class ConditionSummary(Kept):
    """One arm. Figures are over its scored cells, whatever their eval."""

    condition: str
    skills: tuple[SkillSource, ...]
    planned: int
    scored: int  # cells whose outcome counts
    with_score: int  # of those, the graded ones
    outcomes: dict[str, int]  # newest attempts by outcome
    mean_of_evals: float | None = Field(description="mean score, each eval weighing the same; null: no score")
    score: Figure
    duration_ms: Figure
    cost_usd: Figure
    input_tokens: Figure
    output_tokens: Figure
    cache_read_tokens: Figure
    cache_creation_tokens: Figure
    tool_calls: Figure
    denials: Figure
    files_touched: Figure
    skill_listed: Share
    skill_used: Share


class EvalEffect(Kept):
    """One eval of a contrast. Means are over cells with a score; null: the arm has none."""

    eval_id: str
    treatment_mean: float | None
    control_mean: float | None
    difference: float | None  # treatment − control
    n_t: int
    n_c: int


class MissingBounds(Kept):
    """The effect if the planned cells without a score had all failed (0), or all passed (1).

    `lowest` takes treatment cells as failed and control cells as passed; `highest` the reverse.
    With nothing missing all four equal the effect.
    """

    missing_t: int
    missing_c: int
    reasons_t: dict[str, int]  # outcome, or not_dispatched / no_verdict
    reasons_c: dict[str, int]
    all_failing: float | None
    all_passing: float | None
    lowest: float | None
    highest: float | None


class Contrast(Kept):
    """A comparison of two arms; every effect is treatment − control, and the eval is the unit."""

    treatment: str
    control: str
    same_treatment: bool = Field(description="both arms stage the same skills: the effect is the set-up's noise")
    verdict: Verdict
    reason: str
    effect: float | None = Field(description="mean of the evals' differences, each eval weighing the same")
    se: float | None = Field(description="standard error of the effect: sd / √(number of evals)")
    sd: float | None = Field(description="sample standard deviation of the differences (ddof 1)")
    run_weighted: float | None = Field(description="difference of the means over all cells of the same evals")
    n_evals: int = Field(description="evals with a score in both arms")
    n_untied: int = Field(description="of those, evals whose difference is not 0")
    p_sign_flip: float | None = Field(description="two-sided sign-flip permutation test over the untied evals")
    sign_flip_method: Literal["exact", "monte_carlo"] | None
    p_sign: float | None = Field(description="two-sided exact sign test over the untied evals")
    p_holm: float | None = Field(description="p_sign_flip adjusted for the number of contrasts (Holm)")
    alpha: float
    floor: float | None = Field(description="smallest p that these untied evals can give")
    possible_floor: float = Field(description="smallest p that the plan could have given, with no eval tied")
    evals: tuple[EvalEffect, ...]
    missing: MissingBounds
    unavailable: dict[str, str] = Field(description="figures that are null, each with the reason")


class AssertionCount(Kept):
    """Verdicts on one assertion in one arm."""

    passed: int
    graded: int
    missing: int  # graded cells in which no verdict could be had


class AssertionRollup(Kept):
    """One assertion over all scored cells, by condition."""

    eval_id: str
    assertion_id: str
    kind: str
    conditions: dict[str, AssertionCount]
    signal: Literal["always_passes", "always_fails", "varies"] | None  # null: no verdict anywhere


class CellCounts(Kept):
    """Cells of the plan by how they stand. planned = settled + unsettled."""

    planned: int
    settled: int
    unsettled: int  # to be tried, for the first time or again
    not_dispatched: int  # of the unsettled, those without any finished attempt
    scored: int
    with_score: int
    excluded: dict[str, int]  # by outcome


class Totals(Kept):
    """What the campaign took."""

    cost_usd: float | None = Field(description="list price of all finished attempts that tell theirs; null: none does")
    cost_unknown: int = Field(description="finished attempts, superseded ones included, that do not tell their cost")
    duration_ms: int = Field(description="wall clock of all finished attempts of these cells, added up")
    attempts: int = Field(description="finished attempts, superseded ones included")
    dispatches: int = Field(description="CLI processes that these attempts started")


class HarnessSummary(Kept):
    """The agent CLI: as planned, and as the sessions report themselves."""

    label: str
    planned_version: str | None
    cli_versions: tuple[str, ...]
    models: tuple[str, ...]
    permission_modes: tuple[str, ...]


class Benchmark(Kept):
    """All that is known after a campaign's aggregation."""

    schema_version: int = BENCHMARK_SCHEMA
    campaign: str
    skill_name: str
    generated: datetime  # UTC
    plan_digest: str
    harness: HarnessSummary
    contrasts: tuple[Contrast, ...]
    conditions: tuple[ConditionSummary, ...]
    assertions: tuple[AssertionRollup, ...]
    validity_warnings: tuple[ValidityWarning, ...]
    cells: CellCounts
    totals: Totals
    codebases: tuple[CodebaseSource, ...]
    tables: dict[str, str]  # folder of this campaign's part of each table, relative to the store's home
