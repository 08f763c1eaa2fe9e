"""`skilltrial retry`: dispatch the failed cells of a campaign again, and only those."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from skilltrial.flows.cli.output import complain, emit_json

if TYPE_CHECKING:
    from skilltrial.data.plan import CampaignPlan
    from skilltrial.data.store import Store


def retry(
    campaign: str,
    *,
    outcome: Annotated[tuple[str, ...], Parameter(negative="", show_default=False)] = (),
    cells: str | None = None,
    home: Path | None = None,
    yes: Annotated[bool, Parameter(negative="")] = False,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Dispatch again the cells whose newest attempt failed for reasons of infrastructure.

    Settled cells are never dispatched again, whatever their score: that would be choosing results.
    Exit codes as with `run`.

    Parameters
    ----------
    campaign
        Name of a campaign that was run before.
    outcome
        Only cells that ended this way, such as rate_limited; may be given several times.
    cells
        Only cells whose label matches this pattern, such as 'csv-*/without_skill/*'.
    home
        The store's folder.
    yes
        Spend money without asking.
    json
        Print the benchmark as JSON on stdout; progress goes to stderr.
    """
    from skilltrial.data.store import Store
    from skilltrial.flows.cli.running import run_campaign
    from skilltrial.tasks.planning.plan import make_plan

    store = Store.open(home)
    _, kept = store.planned(campaign)
    plan = make_plan(kept.spec.model_copy(update={"name": campaign}))
    _require_same(plan, kept)
    chosen = failed_cells(plan, store, outcome, cells)
    if not chosen:
        if json:
            emit_json({"campaign": campaign, "retried": []})
        else:
            complain(f"campaign {campaign} has no failed cell that fits; `skilltrial status {campaign}` lists them")
        return 0
    return run_campaign(plan, store, cells=chosen, yes=yes, json=json)


def failed_cells(plan: CampaignPlan, store: Store, outcomes: tuple[str, ...], pattern: str | None) -> tuple[str, ...]:
    """Labels of the tried but unsettled cells that fit, in the plan's order."""
    from fnmatch import fnmatchcase

    from skilltrial.data.errors import UnknownName
    from skilltrial.data.outcomes import POLICY

    retryable = [outcome.value for outcome, policy in POLICY.items() if not policy.settled]
    for outcome in outcomes:
        if outcome not in retryable:
            raise UnknownName("outcome that can be retried", outcome, retryable)
    return tuple(
        cell.label
        for cell, record in store.campaign(plan.campaign).newest(plan)
        if not record.settled
        and (not outcomes or record.outcome in outcomes)
        and (pattern is None or fnmatchcase(cell.label, pattern))
    )


def _require_same(plan: CampaignPlan, kept: CampaignPlan) -> None:
    from skilltrial.data.errors import StoreConflict

    if plan.digest != kept.digest:
        raise StoreConflict(
            f"the inputs of campaign {kept.campaign!r} have changed since it was planned (skill, evals, CLI or "
            "settings), so a retry would mix two trials; `skilltrial run` dispatches what the change concerns"
        )
