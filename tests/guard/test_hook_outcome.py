"""What a hook's end means for the call: the table that was measured with claude 2.1.332."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skilltrial.tasks.guard.hook_outcome import HookOutcome, hook_outcome

DENY = json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}})


def _decides(word: object) -> str:
    return json.dumps({"hookSpecificOutput": {"permissionDecision": word}})


@pytest.mark.parametrize(
    ("exit_code", "stdout", "outcome", "with_block"),
    [
        (0, DENY, HookOutcome.BLOCKED, HookOutcome.BLOCKED),
        (2, "", HookOutcome.BLOCKED, HookOutcome.BLOCKED),
        (2, _decides("allow"), HookOutcome.BLOCKED, HookOutcome.BLOCKED),
        (0, '{"decision":"block","reason":"no"}', HookOutcome.BLOCKED, HookOutcome.BLOCKED),
        (0, _decides("ask"), HookOutcome.ASKED, HookOutcome.ASKED),
        (0, _decides("allow"), HookOutcome.ALLOWED, HookOutcome.ALLOWED),
        (0, '{"continue":false}', HookOutcome.NO_OPINION, HookOutcome.NO_OPINION),
        (0, _decides("defer"), HookOutcome.DEFERRED, HookOutcome.DEFERRED),
        (0, "", HookOutcome.NO_OPINION, HookOutcome.NO_OPINION),
        (0, " \n", HookOutcome.NO_OPINION, HookOutcome.NO_OPINION),
        (0, "{}", HookOutcome.NO_OPINION, HookOutcome.NO_OPINION),
        (1, DENY, HookOutcome.FAILED_OPEN, HookOutcome.FAILED_CLOSED),
        (127, "", HookOutcome.FAILED_OPEN, HookOutcome.FAILED_CLOSED),
        (-11, "", HookOutcome.FAILED_OPEN, HookOutcome.FAILED_CLOSED),
        (None, "", HookOutcome.FAILED_OPEN, HookOutcome.FAILED_CLOSED),
        (0, _decides("perhaps"), HookOutcome.FAILED_OPEN, HookOutcome.FAILED_CLOSED),
        (0, _decides(3), HookOutcome.FAILED_OPEN, HookOutcome.FAILED_CLOSED),
        (0, '{"decision":7}', HookOutcome.FAILED_OPEN, HookOutcome.FAILED_CLOSED),
        (0, "not json deny", HookOutcome.FAILED_OPEN, HookOutcome.FAILED_OPEN),
        (0, "[1]", HookOutcome.FAILED_OPEN, HookOutcome.FAILED_OPEN),
    ],
)
def test_each_end_of_a_hook_has_its_meaning(
    exit_code: int | None, stdout: str, outcome: HookOutcome, with_block: HookOutcome
) -> None:
    assert hook_outcome(exit_code, stdout) is outcome
    assert hook_outcome(exit_code, stdout, block_on_failure=True) is with_block


def test_exactly_these_outcomes_keep_the_call_from_running() -> None:
    assert {outcome for outcome in HookOutcome if outcome.blocks} == {
        HookOutcome.BLOCKED,
        HookOutcome.ASKED,
        HookOutcome.DEFERRED,
        HookOutcome.FAILED_CLOSED,
    }


@given(st.integers().filter(lambda code: code not in (0, 2)), st.text())
def test_no_text_makes_a_failing_hook_block(exit_code: int, stdout: str) -> None:
    assert hook_outcome(exit_code, stdout) is HookOutcome.FAILED_OPEN
