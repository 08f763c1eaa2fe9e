"""Was the skill there, and was it used."""

from __future__ import annotations

import pytest

from skilltrial.data.outcomes import Outcome
from skilltrial.tasks.ingest.activation import activation
from skilltrial.tasks.ingest.records import LastResult, StreamSummary, Surface


def _summary(skills: list[str] | None, calls: list[str], *, ended: bool = True) -> StreamSummary:
    result = LastResult("success", is_error=False) if ended else None
    return StreamSummary("claude-code", "p", 1, skills=skills, skill_calls=calls, last_result=result)


@pytest.mark.parametrize(
    ("skills", "calls", "ended", "triggered"),
    [
        (["report"], ["report"], True, True),
        (["report"], ["report"], False, True),
        (["report"], ["other"], True, False),
        (["report"], [], False, None),
        ([], [], True, None),
        ([], ["report"], True, None),
        (None, [], True, None),
        (None, ["report"], True, True),
        (["kit:report"], ["kit:report"], True, True),
    ],
)
def test_only_a_listed_skill_in_a_finished_run_can_be_a_negative(
    skills: list[str] | None, calls: list[str], ended: bool, triggered: bool | None
) -> None:
    assert activation(_summary(skills, calls, ended=ended), "report").triggered is triggered


def test_the_outcome_says_whether_a_run_finished() -> None:
    summary = _summary(["report"], [])
    assert activation(summary, "report", outcome=Outcome.TIMED_OUT).triggered is None
    assert activation(summary, "report", outcome=Outcome.COMPLETED).triggered is False


def test_a_failed_result_is_no_negative() -> None:
    summary = _summary(["report"], [])
    summary.last_result = LastResult("success", is_error=True)
    assert activation(summary, "report").triggered is None


def test_what_the_session_does_not_list_is_not_known() -> None:
    found = activation(_summary(None, []), "report")
    assert (found.registered_as_skill, found.registered_as_command, found.valid) == (None, None, None)


def test_a_command_is_no_skill() -> None:
    summary = _summary(["pdf"], [])
    summary.surfaces["command"] = Surface("command", [{"name": "report"}])
    found = activation(summary, "report")
    assert (found.registered_as_skill, found.registered_as_command, found.valid) == (False, True, False)


def test_copies_of_other_runs_contaminate_a_session() -> None:
    found = activation(_summary(["report-x1", "report-x2", "unrelated-x1"], ["report-x2"]), "report-x1")
    assert (found.siblings, found.triggered_sibling, found.contaminated, found.valid) == (
        ("report-x2",),
        "report-x2",
        True,
        False,
    )


def test_named_copies_are_the_only_ones_that_count() -> None:
    summary = _summary(["report-x1", "report-x2", "old-report"], [])
    assert activation(summary, "report-x1", copies=("old-report",)).siblings == ("old-report",)
