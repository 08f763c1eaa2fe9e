"""The table of outcomes is whole, and its parts agree with one another."""

from __future__ import annotations

import pytest

from skilltrial.data.outcomes import POLICY, Counting, Outcome, Pause, Retry, policy

SETTLED = {"completed", "stopped", "timed_out", "max_turns", "budget_exceeded", "agent_error"}
TRIED_AT_ONCE = {"hung", "rate_limited", "overloaded", "network", "cli_crash"}
STOPPING = {"auth", "billing", "model_unavailable", "cli_missing"}


def test_every_outcome_has_a_policy_with_a_meaning_of_its_own() -> None:
    assert set(POLICY) == set(Outcome)
    assert len({found.meaning for found in POLICY.values()}) == len(Outcome)


def test_the_settled_outcomes_are_data_and_no_others() -> None:
    assert {outcome.value for outcome, found in POLICY.items() if found.settled} == SETTLED


@pytest.mark.parametrize("outcome", Outcome)
def test_what_settles_a_cell_is_scored_and_graded_and_what_does_not_is_excluded(outcome: Outcome) -> None:
    found = policy(outcome)
    assert (found.counting is Counting.SCORED) == found.graded == found.settled


def test_only_failures_that_may_pass_are_tried_again_within_the_run() -> None:
    assert {outcome.value for outcome, found in POLICY.items() if found.retry is Retry.NOW} == TRIED_AT_ONCE


def test_what_every_cell_would_share_stops_the_dispatch_and_shared_limits_make_it_wait() -> None:
    assert {outcome.value for outcome, found in POLICY.items() if found.pause is Pause.STOP} == STOPPING
    assert {outcome.value for outcome, found in POLICY.items() if found.pause is Pause.WAIT} == {
        "rate_limited",
        "overloaded",
    }


@pytest.mark.parametrize("outcome", Outcome)
def test_there_is_a_wait_exactly_before_a_try_within_the_run(outcome: Outcome) -> None:
    found = policy(outcome)
    assert (found.backoff_s > 0) == (found.retry is Retry.NOW)


def test_a_policy_is_found_by_the_outcome_or_by_its_word() -> None:
    assert policy("hung") is policy(Outcome.HUNG) is POLICY[Outcome.HUNG]


def test_no_other_word_is_an_outcome() -> None:
    with pytest.raises(ValueError, match="'crashed' is not a valid Outcome"):
        policy("crashed")


def test_the_table_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        POLICY[Outcome.HUNG] = POLICY[Outcome.COMPLETED]  # type: ignore[index]
