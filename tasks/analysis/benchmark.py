"""From the compacted tables of a campaign to its `Benchmark`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

import polars as pl

from skilltrial.data.benchmark import (
    AssertionCount,
    AssertionRollup,
    Benchmark,
    CellCounts,
    CodebaseSource,
    ConditionSummary,
    Figure,
    HarnessSummary,
    Share,
    SkillSource,
    Totals,
)
from skilltrial.data.plan import CampaignPlan, PlannedCondition
from skilltrial.data.store import Store
from skilltrial.data.tables import TABLES
from skilltrial.data.tables.columns import CELL_KEY
from skilltrial.tasks.analysis.contrasts import contrasts
from skilltrial.tasks.analysis.effects import excluded, mean, scored, with_score
from skilltrial.tasks.analysis.fragments import newest_attempts
from skilltrial.tasks.analysis.tables import scan
from skilltrial.tasks.analysis.warnings import Tables, validity_warnings


def build(plan: CampaignPlan, store: Store, *, now: datetime) -> Benchmark:
    """The benchmark of a compacted campaign. `NoTables` if `compact` did not run before."""
    tables = _tables(plan, store)
    found = validity_warnings(plan, tables)
    return Benchmark(
        campaign=plan.campaign,
        skill_name=plan.skill_name,
        generated=now,
        plan_digest=plan.digest,
        harness=_harness(plan, tables.cells),
        contrasts=contrasts(plan, tables.cells, found),
        conditions=tuple(_condition(plan, condition, tables.cells) for condition in plan.conditions),
        assertions=_assertions(plan, tables.scored, scan(store, "assertions", plan.campaign)),
        validity_warnings=tuple(found),
        cells=_cells(plan, tables.cells),
        totals=_totals(plan, store, tables.cells),
        codebases=_codebases(plan),
        tables={name: f"tables/{name}/campaign={plan.campaign}" for name in TABLES},
    )


def _tables(plan: CampaignPlan, store: Store) -> Tables:
    def rows(name: str, *columns: str) -> pl.DataFrame:
        lazy = scan(store, name, plan.campaign)
        return (lazy.select(*CELL_KEY, *columns) if columns else lazy.drop("campaign")).collect()

    return Tables(
        cells=rows("cells"),
        rounds=rows("rounds", "round", "surface_kinds", "unfinished_tasks"),
        denials=rows("denials", "tool"),
        skills=rows("session_surface", "kind", "name"),
        coverage=rows("parse_coverage", "malformed", "unknown_type", "truncated", "unknown_types"),
    )


def _condition(plan: CampaignPlan, condition: PlannedCondition, cells: pl.DataFrame) -> ConditionSummary:
    rows = cells.filter(pl.col("condition") == condition.name)
    counted = scored(rows)
    outcomes = rows["outcome"].value_counts().sort("outcome").iter_rows()
    means = [mean(scores) for _, scores in with_score(rows).group_by("eval_id").agg("score").iter_rows()]
    return ConditionSummary(
        condition=condition.name,
        skills=tuple(
            SkillSource(slug=skill.slug, name=skill.name, digest=skill.digest, provenance=skill.provenance)
            for skill in condition.skills
        ),
        planned=sum(cell.condition == condition.name for cell in plan.cells),
        scored=counted.height,
        with_score=with_score(rows).height,
        outcomes=dict(outcomes),
        mean_of_evals=mean([value for value in means if value is not None]),
        score=figure(counted["score"]),
        duration_ms=figure(counted["duration_ms"]),
        cost_usd=figure(counted["cost_usd"]),
        input_tokens=figure(counted["input_tokens"]),
        output_tokens=figure(counted["output_tokens"]),
        cache_read_tokens=figure(counted["cache_read_tokens"]),
        cache_creation_tokens=figure(counted["cache_creation_tokens"]),
        tool_calls=figure(counted["tool_calls"]),
        denials=figure(counted["denials"]),
        files_touched=figure(counted["files_touched"]),
        skill_listed=share(counted["skill_listed"]),
        skill_used=share(counted["skill_used"]),
    )


def figure(values: pl.Series) -> Figure:
    """Number, mean, sample standard deviation (ddof 1) and median of the values that are there."""
    numbers = sorted(float(value) for value in values.drop_nulls())
    n = len(numbers)
    middle = mean(numbers)
    if middle is None:
        return Figure(n=0, mean=None, sd=None, median=None)
    sd = math.sqrt(math.fsum((value - middle) ** 2 for value in numbers) / (n - 1)) if n > 1 else None
    return Figure(n=n, mean=middle, sd=sd, median=(numbers[(n - 1) // 2] + numbers[n // 2]) / 2)


def share(values: pl.Series) -> Share:
    """How many of the known values are true."""
    known, true = values.count(), int(values.sum() or 0)
    return Share(known=known, true=true, share=true / known if known else None)


def _assertions(plan: CampaignPlan, cells: pl.DataFrame, rows: pl.LazyFrame) -> tuple[AssertionRollup, ...]:
    """Counts for every assertion of the plan, from the verdicts on scored cells that still fit it."""
    digests = pl.DataFrame(
        [(planned.eval.id, planned.grading_digest) for planned in plan.evals],
        schema=["eval_id", "grading_digest"],
        orient="row",
    )
    verdicts = (
        rows.join(digests.lazy(), on=["eval_id", "grading_digest"], how="semi")
        .join(cells.lazy().select(CELL_KEY), on=CELL_KEY, how="semi")
        .group_by("eval_id", "assertion_id", "condition")
        .agg(pl.col("passed").sum().alias("passed"), pl.col("passed").count().alias("graded"))
        .collect()
    )
    counts = {(e, a, c): (passed, graded) for e, a, c, passed, graded in verdicts.iter_rows()}
    sizes = {(e, c): n for e, c, n in cells.group_by("eval_id", "condition").len().iter_rows()}
    found = []
    for planned in sorted(plan.evals, key=lambda planned: planned.eval.id):
        for assertion in planned.eval.assertions:
            by_condition = {}
            for condition in plan.conditions:
                passed, graded = counts.get((planned.eval.id, assertion.id, condition.name), (0, 0))
                missing = sizes.get((planned.eval.id, condition.name), 0) - graded
                by_condition[condition.name] = AssertionCount(passed=passed, graded=graded, missing=missing)
            found.append(
                AssertionRollup(
                    eval_id=planned.eval.id,
                    assertion_id=assertion.id,
                    kind=assertion.type,
                    conditions=by_condition,
                    signal=_signal(list(by_condition.values())),
                )
            )
    return tuple(found)


def _signal(counts: Sequence[AssertionCount]) -> Literal["always_passes", "always_fails", "varies"] | None:
    passed, graded = sum(count.passed for count in counts), sum(count.graded for count in counts)
    if not graded:
        return None
    return "always_passes" if passed == graded else "varies" if passed else "always_fails"


def _cells(plan: CampaignPlan, cells: pl.DataFrame) -> CellCounts:
    settled = int(cells["settled"].sum())
    left_out = excluded(cells)["outcome"].value_counts().sort("outcome")
    return CellCounts(
        planned=len(plan.cells),
        settled=settled,
        unsettled=len(plan.cells) - settled,
        not_dispatched=len(plan.cells) - cells.height,
        scored=scored(cells).height,
        with_score=with_score(cells).height,
        excluded=dict(left_out.iter_rows()),
    )


def _totals(plan: CampaignPlan, store: Store, cells: pl.DataFrame) -> Totals:
    attempts = newest_attempts(plan, store.campaign(plan.campaign))
    records = [record for attempt in attempts for record in attempt.records]
    # superseded attempts have no row of their own, and were paid for all the same
    superseded = [record.cost_usd for attempt in attempts for record in attempt.records[:-1]]
    told = [*cells["cost_usd"].to_list(), *superseded]
    costs = [cost for cost in told if cost is not None]
    return Totals(
        cost_usd=math.fsum(costs) if costs else None,
        cost_unknown=len(told) - len(costs),
        duration_ms=sum(record.duration_ms for record in records),
        attempts=len(records),
        dispatches=sum(len(record.rounds) for record in records),
    )


def _harness(plan: CampaignPlan, cells: pl.DataFrame) -> HarnessSummary:
    def seen(column: str) -> tuple[str, ...]:
        return tuple(cells[column].drop_nulls().unique().sort())

    return HarnessSummary(
        label=plan.harness.label,
        planned_version=plan.harness.cli_version,
        cli_versions=seen("cli_version"),
        models=seen("model"),
        permission_modes=seen("permission_mode"),
    )


def _codebases(plan: CampaignPlan) -> tuple[CodebaseSource, ...]:
    by_key = {planned.codebase.key: planned.codebase for planned in plan.evals if planned.codebase}
    return tuple(
        CodebaseSource(
            key=key,
            branch=codebase.branch,
            revision=codebase.revision,
            evals=tuple(sorted(p.eval.id for p in plan.evals if p.codebase and p.codebase.key == key)),
            provenance=codebase.provenance,
        )
        for key, codebase in sorted(by_key.items())
    )
