"""The declared contrasts of a campaign: effect, tests, bounds and verdict of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from skilltrial.data.benchmark import Contrast, EvalEffect, Severity, ValidityWarning
from skilltrial.data.plan import CampaignPlan
from skilltrial.data.spec import ContrastSpec
from skilltrial.tasks.analysis import effects
from skilltrial.tasks.analysis.floor import possible_floor, sign_floor
from skilltrial.tasks.analysis.missing import missing_bounds
from skilltrial.tasks.analysis.verdict import Evidence, judge

_NEEDS_A_PAIR: Final = ("run_weighted", "p_sign_flip", "sign_flip_method", "p_sign", "p_holm", "floor")


@dataclass(frozen=True, slots=True)
class _Tested:
    """One contrast before its p value is adjusted for the others."""

    spec: ContrastSpec
    evals: list[EvalEffect]
    differences: list[float]
    flip: effects.SignFlip | None  # null: no eval has a score in both arms


def contrasts(plan: CampaignPlan, cells: pl.DataFrame, found: Sequence[ValidityWarning]) -> tuple[Contrast, ...]:
    """Every declared contrast, from rows of the cells table and the warnings that were found.

    The p values are adjusted for one another (Holm): each contrast of a campaign is confirmatory.
    """
    tested = [_test(plan, spec, cells) for spec in plan.contrasts]
    adjusted = effects.holm([None if one.flip is None else one.flip.p for one in tested])
    return tuple(_contrast(plan, one, p, cells, found) for one, p in zip(tested, adjusted, strict=True))


def gradable(plan: CampaignPlan) -> list[str]:
    """Ids of the evals that have assertions; the others are ungraded, which is not a score of 0."""
    return [planned.eval.id for planned in plan.evals if planned.eval.assertions]


def _test(plan: CampaignPlan, spec: ContrastSpec, cells: pl.DataFrame) -> _Tested:
    found = effects.eval_effects(cells, spec.treatment, spec.control, gradable(plan))
    values = effects.differences(found)
    return _Tested(spec, found, values, effects.sign_flip(values) if values else None)


def _contrast(
    plan: CampaignPlan, one: _Tested, p_holm: float | None, cells: pl.DataFrame, found: Sequence[ValidityWarning]
) -> Contrast:
    spec, values, flip = one.spec, one.differences, one.flip
    estimate, n_untied = effects.estimate(values), len(effects.untied(values))
    floor = sign_floor(n_untied) if values else None
    verdict, reason = judge(
        Evidence(
            treatment=spec.treatment,
            control=spec.control,
            invalid=_broken(plan, spec, cells, found),
            effect=estimate.effect,
            se=estimate.se,
            n_evals=len(values),
            n_untied=n_untied,
            p=p_holm,
            floor=floor,
            alpha=plan.spec.alpha,
        )
    )
    return Contrast(
        treatment=spec.treatment,
        control=spec.control,
        same_treatment=_treatment(plan, spec.treatment) == _treatment(plan, spec.control),
        verdict=verdict,
        reason=reason,
        effect=estimate.effect,
        se=estimate.se,
        sd=estimate.sd,
        run_weighted=effects.run_weighted(cells, one.evals, spec.treatment, spec.control),
        n_evals=len(values),
        n_untied=n_untied,
        p_sign_flip=flip.p if flip else None,
        sign_flip_method=flip.method if flip else None,
        p_sign=effects.sign_test(values) if values else None,
        p_holm=p_holm,
        alpha=plan.spec.alpha,
        floor=floor,
        possible_floor=_possible_floor(plan),
        evals=tuple(one.evals),
        missing=missing_bounds(plan.cells, cells, spec.treatment, spec.control, gradable(plan)),
        unavailable=estimate.unavailable | ({} if values else dict.fromkeys(_NEEDS_A_PAIR, effects.NO_PAIR)),
    )


def _broken(plan: CampaignPlan, spec: ContrastSpec, cells: pl.DataFrame, found: Sequence[ValidityWarning]) -> list[str]:
    """The validity conditions of a contrast that do not hold, each as a clause."""
    arms = {spec.treatment, spec.control}
    # a warning about a pair of arms (their prompts) concerns only the contrast of that pair
    broken = [w.message for w in found if w.severity is Severity.INVALID and set(w.conditions) <= arms]
    if not gradable(plan):
        return [*broken, "no eval has an assertion, so that nothing is scored"]
    graded = set(effects.with_score(cells)["condition"])
    return broken + [f"no cell of {arm} has a score" for arm in (spec.treatment, spec.control) if arm not in graded]


def _treatment(plan: CampaignPlan, condition: str) -> list[tuple[str, str]]:
    return [(skill.slug, skill.digest) for skill in plan.condition(condition).skills]


def _possible_floor(plan: CampaignPlan) -> float:
    repetitions = min(planned.repetitions for planned in plan.evals)
    return possible_floor(len(gradable(plan)), repetitions).across_evals
