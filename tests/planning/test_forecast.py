"""Forecasts count what the store lacks."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from skilltrial.data.attempt import AttemptRecord
from skilltrial.data.outcomes import Outcome
from skilltrial.data.plan import CampaignPlan, Cell
from skilltrial.data.store import Store, write_model
from skilltrial.tasks.planning.forecast import forecast
from skilltrial.tasks.planning.plan import make_plan
from tests.planning.building import trial


def tried(store: Store, plan: CampaignPlan, cell: Cell, outcome: Outcome, cell_digest: str | None = None) -> None:
    attempt = store.campaign(plan.campaign).cell(cell).begin()
    record = AttemptRecord(
        campaign=plan.campaign,
        eval_id=cell.eval_id,
        condition=cell.condition,
        repetition=cell.repetition,
        attempt=attempt.number,
        cell_digest=cell_digest or cell.digest,
        outcome=outcome,
        reason="",
        started_at=datetime(2026, 1, 1, tzinfo=UTC),
        duration_ms=1,
        workspace="w",
        baseline="0" * 40,
        prompt_digest="0" * 64,
        harness="scripted",
        cli_version=None,
        model=None,
        permission_mode=None,
        session_id=None,
        worker="host",
        rounds=(),
    )
    write_model(attempt.record_path, record)


def test_only_settled_attempts_at_this_version_of_a_cell_spare_a_dispatch(tmp_path: Path, store: Store) -> None:
    plan = make_plan(trial(tmp_path, budget_usd=0.5))
    tried(store, plan, plan.cells[0], Outcome.COMPLETED)
    tried(store, plan, plan.cells[1], Outcome.RATE_LIMITED)
    tried(store, plan, plan.cells[2], Outcome.COMPLETED, cell_digest="0" * 64)
    found = forecast(plan, store.campaign(plan.campaign))
    assert (found.cells, found.settled, found.dispatches) == (4, 1, 3)
    assert (found.costs_money, found.budget_usd) == (False, 1.5)


def test_without_a_budget_the_cost_is_unlimited(tmp_path: Path, store: Store) -> None:
    plan = make_plan(trial(tmp_path))
    assert forecast(plan, store.campaign(plan.campaign)).budget_usd is None
    assert not store.home.exists()
