"""How the cells of a campaign stand at this moment, read from attempt records alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from skilltrial.data.plan import CampaignPlan, Cell
from skilltrial.data.store import CampaignFolder

State = Literal["settled", "unsettled", "running", "missing"]


@dataclass(frozen=True, slots=True)
class CellState:
    """One cell. Null: no finished attempt fits the plan, or the CLI did not tell."""

    cell: str  # its label
    eval_id: str
    condition: str
    repetition: int
    state: State
    outcome: str | None
    reason: str | None
    attempt: int | None  # the newest one, finished or running
    rounds: int | None
    duration_ms: int | None
    cost_usd: float | None
    folder: str | None  # of that attempt


def cell_states(plan: CampaignPlan, folder: CampaignFolder) -> list[CellState]:
    """The state of every cell, in the order of the plan.

    `missing`: no finished attempt fits, and none is under way. `running`: the newest attempt was begun by the
    process that holds the campaign now, and has no record yet. `unsettled`: to be tried again.
    """
    since = folder.lock_path.stat().st_mtime if folder.holder() is not None else None
    return [_state(cell, folder, since) for cell in plan.cells]


def _state(cell: Cell, folder: CampaignFolder, running_since: float | None) -> CellState:
    attempts = folder.cell(cell).attempts()
    newest = attempts[-1] if attempts else None
    record = folder.cell(cell).newest(cell.digest)
    state: State = "missing" if record is None else "settled" if record.settled else "unsettled"
    shown = None if record is None else folder.cell(cell).attempt(record.attempt)
    if newest is not None and running_since is not None and not newest.record_path.exists():
        begun = newest.root.stat().st_mtime
        if begun >= running_since:
            state, shown, record = "running", newest, None
    return CellState(
        cell=cell.label,
        eval_id=cell.eval_id,
        condition=cell.condition,
        repetition=cell.repetition,
        state=state,
        outcome=record.outcome.value if record else None,
        reason=record.reason if record else None,
        attempt=shown.number if shown else None,
        rounds=len(record.rounds) if record else None,
        duration_ms=record.duration_ms if record else None,
        cost_usd=record.cost_usd if record else None,
        folder=str(shown.root) if shown else None,
    )
