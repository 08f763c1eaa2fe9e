"""The brake, with a clock that only the brake's own waits move on."""

from __future__ import annotations

import threading

import pytest

from skilltrial.data.errors import CampaignStopped
from skilltrial.data.outcomes import Outcome
from skilltrial.tasks.dispatch.brake import LONGEST_S, Brake


class Clock:
    """A clock that a wait sets forward by exactly the time that was to be waited."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, _: threading.Condition, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def brake(clock: Clock) -> Brake:
    return Brake(clock, clock.sleep)


def test_nothing_is_held_back_at_first(brake: Brake, clock: Clock) -> None:
    brake.wait("e/with/r1")

    assert clock.waits == []


@pytest.mark.parametrize(("outcome", "seconds"), [(Outcome.RATE_LIMITED, 30.0), (Outcome.OVERLOADED, 10.0)])
def test_a_shared_limit_holds_every_cell_back(brake: Brake, clock: Clock, outcome: Outcome, seconds: float) -> None:
    brake.report("e/with/r1", outcome, "")
    brake.wait("e/without/r7")

    assert clock.waits == [seconds]


def test_shared_waits_double_with_each_incident_in_a_row(brake: Brake, clock: Clock) -> None:
    for _ in range(3):
        brake.report("e/with/r1", Outcome.RATE_LIMITED, "rate_limit")
        brake.wait("e/with/r1")

    assert clock.waits == [30.0, 60.0, 120.0]


def test_cells_that_run_into_the_same_limit_are_one_incident(brake: Brake, clock: Clock) -> None:
    for number in range(8):
        brake.report(f"e/with/r{number}", Outcome.RATE_LIMITED, "rate_limit")
    brake.wait("e/with/r1")

    assert clock.waits == [30.0]


def test_a_settled_cell_makes_the_next_incident_short_again(brake: Brake, clock: Clock) -> None:
    for _ in range(2):
        brake.report("e/with/r1", Outcome.OVERLOADED, "overloaded")
        brake.wait("e/with/r1")
    brake.report("e/with/r2", Outcome.COMPLETED, "")
    brake.report("e/with/r1", Outcome.OVERLOADED, "overloaded")
    brake.wait("e/with/r1")

    assert clock.waits == [10.0, 20.0, 10.0]


def test_a_failure_of_one_cell_holds_only_that_cell_back(brake: Brake, clock: Clock) -> None:
    for _ in range(2):
        brake.report("e/with/r1", Outcome.NETWORK, "connection_failed")
        brake.wait("e/with/r2")
        assert clock.waits == []
        brake.wait("e/with/r1")
        assert clock.waits
        clock.waits, seen = [], clock.waits

    assert seen == [10.0]


def test_no_wait_grows_without_bound(brake: Brake, clock: Clock) -> None:
    for _ in range(40):
        brake.report("e/with/r1", Outcome.RATE_LIMITED, "rate_limit")
        brake.wait("e/with/r1")

    assert max(clock.waits) == LONGEST_S


@pytest.mark.parametrize("outcome", [Outcome.AUTH, Outcome.BILLING, Outcome.MODEL_UNAVAILABLE, Outcome.CLI_MISSING])
def test_a_fault_that_all_cells_share_stops_the_campaign(brake: Brake, outcome: Outcome) -> None:
    brake.report("e/with/r1", outcome, "the reason")
    brake.report("e/with/r2", Outcome.AUTH, "another")

    with pytest.raises(CampaignStopped) as caught:
        brake.wait("e/with/r3")
    assert (caught.value.cell, caught.value.outcome, caught.value.reason) == ("e/with/r1", outcome, "the reason")


def test_stopping_wakes_a_cell_that_waits() -> None:
    waiting = threading.Event()

    def sleep(condition: threading.Condition, seconds: float) -> None:
        waiting.set()
        condition.wait(seconds)

    brake = Brake(sleep=sleep)
    brake.report("e/with/r1", Outcome.RATE_LIMITED, "rate_limit")
    stopped: list[CampaignStopped] = []

    def work() -> None:
        with pytest.raises(CampaignStopped) as caught:
            brake.wait("e/with/r1")
        stopped.append(caught.value)

    thread = threading.Thread(target=work)
    thread.start()
    assert waiting.wait(10)
    brake.stop()
    thread.join(timeout=10)

    assert [error.outcome for error in stopped] == [Outcome.CANCELLED]


def test_a_wait_is_told_once_to_everybody_it_concerns(clock: Clock) -> None:
    told: list[tuple[float, str, str | None]] = []
    brake = Brake(clock, lambda _, seconds: clock.sleep(_, seconds / 2), lambda *wait: told.append(wait))
    brake.report("e/with/r1", Outcome.RATE_LIMITED, "rate_limit")
    assert told == []  # nobody waits yet
    brake.wait("e/with/r1")
    assert told == [(30.0, "rate_limited", None)]

    brake.report("e/with/r2", Outcome.CLI_CRASH, "no_result")
    brake.wait("e/with/r3")
    brake.wait("e/with/r2")
    assert [(why, cell) for _, why, cell in told[1:]] == [("cli_crash", "e/with/r2")]
