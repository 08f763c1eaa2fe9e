"""What the outcome of a PreToolUse hook means for the tool call (claude 2.1.332, measured).

A hook refuses by exit code 2 or by JSON at exit code 0. Everything else lets the call through, a crash, a
time-out and a missing program included, unless the hook was installed with `onFailure: "block"`.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Final


class HookOutcome(StrEnum):
    """What becomes of the call."""

    ALLOWED = "allowed"  # the hook says so, which also answers what the CLI would ask a person
    NO_OPINION = "no_opinion"  # the call runs if nothing else refuses it
    BLOCKED = "blocked"
    ASKED = "asked"  # put before a person; without one, refused
    DEFERRED = "deferred"  # not run, and the process ends
    FAILED_OPEN = "failed_open"  # the hook gave no usable answer, and the call runs
    FAILED_CLOSED = "failed_closed"  # the hook gave no usable answer, and the call is refused

    @property
    def blocks(self) -> bool:
        """Whether the call does not run in a session without a person."""
        return self in (HookOutcome.BLOCKED, HookOutcome.ASKED, HookOutcome.DEFERRED, HookOutcome.FAILED_CLOSED)


BLOCKING_EXIT: Final = 2
"""The one exit code by which a hook refuses."""

_DECISIONS: Final = {
    "allow": HookOutcome.ALLOWED,
    "deny": HookOutcome.BLOCKED,
    "ask": HookOutcome.ASKED,
    "defer": HookOutcome.DEFERRED,
}
_LEGACY: Final = {"approve": HookOutcome.ALLOWED, "block": HookOutcome.BLOCKED}


def hook_outcome(exit_code: int | None, stdout: str, *, block_on_failure: bool = False) -> HookOutcome:
    """What a command hook's end means. A null exit code: it timed out or could not be started.

    `block_on_failure` is `onFailure: "block"`. It does not cover text at exit code 0 that is no JSON: the CLI
    takes that for a message, and the call runs.
    """
    if exit_code == BLOCKING_EXIT:
        return HookOutcome.BLOCKED
    failed = HookOutcome.FAILED_CLOSED if block_on_failure else HookOutcome.FAILED_OPEN
    if exit_code != 0:
        return failed
    text = stdout.strip()
    if not text:
        return HookOutcome.NO_OPINION
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return HookOutcome.FAILED_OPEN
    if not isinstance(answer, dict):
        return HookOutcome.FAILED_OPEN
    return _decision(answer, failed)


def _decision(answer: dict[str, object], failed: HookOutcome) -> HookOutcome:
    """`{"continue": false}` is no decision: the call still runs, and the session ends behind it."""
    specific = answer.get("hookSpecificOutput")
    if isinstance(specific, dict) and "permissionDecision" in specific:
        told = specific["permissionDecision"]
        return _DECISIONS.get(told, failed) if isinstance(told, str) else failed
    if "decision" in answer:
        told = answer["decision"]
        return _LEGACY.get(told, failed) if isinstance(told, str) else failed
    return HookOutcome.NO_OPINION
