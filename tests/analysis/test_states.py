"""How cells stand, from records and the campaign's lock alone."""

from __future__ import annotations

import os
import subprocess
import sys

from skilltrial.data.outcomes import Outcome
from skilltrial.tasks.analysis.states import CellState, cell_states
from tests.analysis.trials import CONTROL, TREATMENT, Trial


def states(trial: Trial) -> dict[str, CellState]:
    return {found.cell: found for found in cell_states(trial.plan, trial.store.campaign("trial"))}


def test_a_settled_an_unsettled_and_a_missing_cell(trial: Trial) -> None:
    trial.attempt(trial.cell("alpha", TREATMENT), rounds=2, duration_ms=1500, cost_usd=0.25)
    trial.attempt(trial.cell("alpha", CONTROL), Outcome.RATE_LIMITED, reason="api_429")
    found = states(trial)
    assert [cell.label for cell in trial.plan.cells] == list(found)
    done = found["alpha/with_skill/r1"]
    assert (done.state, done.outcome, done.attempt, done.rounds, done.duration_ms, done.cost_usd) == (
        "settled",
        "completed",
        1,
        2,
        1500,
        0.25,
    )
    failed = found["alpha/without_skill/r1"]
    assert (failed.state, failed.outcome, failed.reason) == ("unsettled", "rate_limited", "api_429")
    missing = found["beta/with_skill/r1"]
    assert (missing.state, missing.outcome, missing.attempt, missing.cost_usd) == ("missing", None, None, None)


def test_an_attempt_of_the_holder_is_running(trial: Trial) -> None:
    folder = trial.store.campaign("trial")
    cell = trial.cell("alpha", TREATMENT)
    trial.attempt(cell, Outcome.OVERLOADED)
    with folder.locked():
        folder.cell(cell).begin()
        found = states(trial)[cell.label]
    assert (found.state, found.attempt, found.outcome) == ("running", 2, None)


def test_an_attempt_that_was_killed_is_not_running(trial: Trial) -> None:
    folder = trial.store.campaign("trial")
    never, retried = trial.cell("alpha", TREATMENT), trial.cell("alpha", CONTROL)
    trial.attempt(retried, Outcome.OVERLOADED)
    for cell in (never, retried):
        os.utime(folder.cell(cell).begin().root, (1_000_000_000, 1_000_000_000))
    with folder.locked():  # another run holds the campaign by now
        found = states(trial)
    assert found[never.label].state == "missing"
    assert (found[retried.label].state, found[retried.label].attempt) == ("unsettled", 1)
    assert states(trial)[never.label].state == "missing"


def test_the_holder_is_the_living_process_that_took_the_lock(trial: Trial) -> None:
    folder = trial.store.campaign("trial")
    assert folder.holder() is None
    with folder.locked():
        assert folder.holder() == os.getpid()
    assert folder.holder() is None


def test_a_dead_process_holds_nothing(trial: Trial) -> None:
    folder = trial.store.campaign("trial")
    folder.root.mkdir(parents=True)
    ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    folder.lock_path.write_bytes(ended.stdout.strip())
    assert folder.holder() is None


def test_a_process_younger_than_the_lock_only_inherited_its_number(trial: Trial) -> None:
    folder = trial.store.campaign("trial")
    folder.root.mkdir(parents=True)
    folder.lock_path.write_text(str(os.getpid()))
    os.utime(folder.lock_path, (1_000_000_000, 1_000_000_000))
    assert folder.holder() is None


def test_attempts_at_another_version_of_a_cell_do_not_count(trial: Trial) -> None:
    trial.attempt(trial.cell("alpha", TREATMENT), cell_digest="another")
    assert states(trial)["alpha/with_skill/r1"].state == "missing"
