"""Dispatch: one attempt at a cell, again after an infrastructure failure, cached once the cell is settled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prefect import task
from prefect.client.schemas.objects import State, TaskRun
from prefect.tasks import Task

from skilltrial.data.attempt import AttemptRecord
from skilltrial.data.errors import AttemptUnsettled
from skilltrial.data.outcomes import Retry, policy
from skilltrial.data.plan import CampaignPlan, Cell
from skilltrial.data.store import AttemptFolder, Store
from skilltrial.tasks.dispatch.attempt import run_attempt
from skilltrial.tasks.dispatch.brake import Brake

Started = Callable[[Cell, AttemptFolder], None]
Finished = Callable[[Cell, AttemptRecord], None]


def _key(_: object, arguments: dict[str, Any]) -> str:
    cell: Cell = arguments["cell"]
    return f"dispatch/{cell.label}/{cell.digest}"


def _worth_another_try(_: Task[..., Any], __: TaskRun, state: State[Any]) -> bool:
    error = state.result(raise_on_failure=False)
    return isinstance(error, AttemptUnsettled) and policy(error.outcome).retry is Retry.NOW


@task(
    name="dispatch",
    task_run_name="dispatch {cell.label}",
    cache_key_fn=_key,
    result_serializer="json",
    retry_condition_fn=_worth_another_try,
)
def dispatch(
    plan: CampaignPlan, cell: Cell, store: Store, brake: Brake, started: Started, finished: Finished
) -> dict[str, Any]:
    """Settle the cell: the store's settled attempt if there is one, else a new attempt.

    Returns which attempt settled it. `AttemptUnsettled` leaves the cell to a retry or to a later run,
    `CampaignStopped` tells that no further cell may start; neither is ever cached.
    """
    folder = store.campaign(plan.campaign).cell(cell)
    record = folder.settled(cell.digest)
    if record is None:
        brake.wait(cell.label)
        record = run_attempt(plan, cell, store, on_start=lambda attempt: started(cell, attempt))
        finished(cell, record)
        brake.report(cell.label, record.outcome, record.reason)
        if not record.settled:
            raise AttemptUnsettled(
                cell.label, record.attempt, record.outcome, record.reason, str(folder.attempt(record.attempt).root)
            )
    return {"cell": cell.label, "attempt": record.attempt, "outcome": record.outcome}
