"""`skilltrial plan`: what a campaign would do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from skilltrial.flows.cli.output import emit_json
from skilltrial.flows.cli.overrides import NO_OVERRIDES, Overrides

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skilltrial.data.plan import CampaignPlan, Forecast
    from skilltrial.tasks.analysis.floor import PossibleFloor
    from skilltrial.tasks.preflight.checks import Finding

_LEVELS: Final = {"refuse": "a run would be refused", "warn": "warning", "note": "note"}


def plan(
    target: Path,
    *,
    overrides: Annotated[Overrides, Parameter(name="*")] = NO_OVERRIDES,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Show the cells of a campaign in dispatch order, their digests, and what a run would cost; write nothing.

    Parameters
    ----------
    target
        A campaign.toml, or a folder with SKILL.md and evals/evals.json.
    json
        Print the plan as JSON.
    """
    from skilltrial.data.store import Store
    from skilltrial.tasks.analysis.floor import possible_floor
    from skilltrial.tasks.planning.forecast import forecast
    from skilltrial.tasks.planning.plan import make_plan
    from skilltrial.tasks.preflight.checks import examine

    made, store = make_plan(overrides.spec_of(target)), Store.open(overrides.home)
    expected, findings = forecast(made, store.campaign(made.campaign)), examine(made, store)
    gradable = [planned for planned in made.evals if planned.eval.assertions]
    floor = possible_floor(len(gradable), min((planned.repetitions for planned in gradable), default=0))
    if json:
        emit_json(_document(made, expected, floor, findings))
    else:
        print("\n".join([*_lines(made, expected, floor), *_findings_lines(findings)]))
    return 0


def _document(
    made: CampaignPlan, expected: Forecast, floor: PossibleFloor, findings: list[Finding]
) -> dict[str, object]:
    return {
        **made.model_dump(mode="json"),
        "digest": made.digest,
        "forecast": expected.model_dump(mode="json"),
        "floor": {
            "evals": floor.evals,
            "repetitions": floor.repetitions,
            "across_evals": floor.across_evals,
            "within_eval": floor.within_eval,
            "reaches_alpha": floor.reaches(made.spec.alpha),
        },
        "preflight": [{"level": found.level.value, "what": found.what, "remedy": found.remedy} for found in findings],
    }


def _lines(made: CampaignPlan, expected: Forecast, floor: PossibleFloor) -> Iterator[str]:
    harness = made.harness
    yield f"campaign {made.campaign}: skill {made.skill_name}"
    yield f"harness  {harness.label} {harness.cli_version or '(no version)'} at {harness.binary or '(not found)'}"
    for condition in made.conditions:
        staged = ", ".join(f"{skill.slug} {skill.digest[:12]}" for skill in condition.skills) or "nothing staged"
        yield f"arm      {condition.name}: {staged}"
        for skill in condition.skills:
            yield f"           from {_source(skill.provenance.model_dump())}"
    for contrast in made.contrasts:
        yield f"contrast {contrast.treatment} − {contrast.control}"
    for planned in made.evals:
        codebase = f", codebase {_source(planned.codebase.provenance.model_dump())}" if planned.codebase else ""
        checks = len(planned.eval.assertions)
        yield f"eval     {planned.eval.id}: {planned.repetitions} × each arm, {checks} assertions{codebase}"
    yield "cells in dispatch order (block, digest, cell):"
    for cell in made.cells:
        yield f"  {cell.block:>4}  {cell.digest[:12]}  {cell.label}"
    yield from _forecast_lines(made, expected, floor)
    for warning in made.warnings:
        yield f"warning: {warning}"


def _forecast_lines(made: CampaignPlan, expected: Forecast, floor: PossibleFloor) -> Iterator[str]:
    from skilltrial.tasks.analysis.floor import probability_text

    limit = "no limit" if expected.budget_usd is None else f"at most ${expected.budget_usd:.2f} in one try each"
    price = f"calls a paid model, {limit}" if expected.costs_money else "costs nothing"
    yield f"forecast: {expected.dispatches} of {expected.cells} cells to dispatch, {expected.settled} settled; {price}"
    across = probability_text(floor.across_evals)
    verdict = "can" if floor.reaches(made.spec.alpha) else "cannot"
    yield (
        f"floor:    {floor.evals} gradable {'eval gives' if floor.evals == 1 else 'evals give'} p ≥ {across} "
        "across evals, "
        f"so this design {verdict} reach alpha {made.spec.alpha:g}"
    )


def _findings_lines(findings: list[Finding]) -> Iterator[str]:
    """What preflight would say now; it looks again when the campaign runs."""
    for found in findings:
        yield f"{_LEVELS[found.level.value]}: {found}"


def _source(provenance: dict[str, object]) -> str:
    revision = provenance["revision"]
    state = " with uncommitted changes" if provenance["dirty"] else ""
    at = f" at {provenance['ref']}" if provenance["ref"] else ""
    return f"{provenance['path']}{at}" + (f" ({str(revision)[:12]}{state})" if revision else "")
