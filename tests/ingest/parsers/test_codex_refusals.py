"""The sentences by which Codex refuses a call."""

from __future__ import annotations

import pytest

from skilltrial.tasks.ingest.parsers.codex_refusals import Refusal, refusal_of, refusals_in_stderr

ROUTER = "2026-11-30T21:10:31.071835Z ERROR codex_core::tools::router: error="


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        (
            "Command blocked by PreToolUse hook: no. Command: echo a",
            Refusal("command_execution", "hook", "no"),
        ),
        (
            "Command blocked by PreToolUse hook: no. Command: *** Begin Patch\n*** Add File: a",
            Refusal("file_change", "hook", "no"),
        ),
        (
            "Command blocked by PreToolUse hook: skilltrial guard: outside. Command: echo a",
            Refusal("command_execution", "guard", "skilltrial guard: outside"),
        ),
        (
            'exec_command failed: CreateProcess { message: "Rejected(\\"`/bin/bash -lc x` rejected: no touching\\")" }',
            Refusal("command_execution", "permission", "no touching"),
        ),
        (
            'X { message: "Rejected(\\"approval required by policy, but AskForApproval is set to Never\\")" }',
            Refusal(
                "command_execution", "permission", "approval required by policy, but AskForApproval is set to Never"
            ),
        ),
        (
            "patch rejected: writing outside of the project; rejected by user approval settings",
            Refusal("file_change", "sandbox", "writing outside of the project; rejected by user approval settings"),
        ),
        ("unsupported call: update_plan", None),
        ("apply_patch verification failed: no such lines", None),
        ("write_stdin failed: Unknown process id 1", None),
        ("", None),
    ],
)
def test_a_sentence_tells_who_refused_what(text: str, refusal: Refusal | None) -> None:
    assert refusal_of(text) == refusal


def test_an_escalation_that_nobody_can_approve_is_refused_by_permission() -> None:
    text = "approval policy is Never; reject command — you cannot ask for escalated permissions"
    assert refusal_of(text) == Refusal("command_execution", "permission", text)


def test_stderr_is_read_line_by_line() -> None:
    stderr = (
        "Reading additional input from stdin...\n"
        f"{ROUTER}Command blocked by PreToolUse hook: a. Command: *** Begin Patch\n*** Add File: x\n"
        f"{ROUTER}unsupported call: x\nERROR tls handshake\n"
        f"{ROUTER}patch rejected: outside\n"
    )
    assert refusals_in_stderr(stderr) == [
        Refusal("file_change", "hook", "a"),
        Refusal("file_change", "sandbox", "outside"),
    ]
