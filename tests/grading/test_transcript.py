"""Assertions on what the agent called and said."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import orjson
import pytest

from skilltrial.data.evals import TranscriptCheck
from skilltrial.data.grading import Verdict
from skilltrial.data.plan import Cell
from skilltrial.data.store import AttemptFolder
from skilltrial.tasks.grading.transcript import check, read_transcript
from tests.grading.fragments import row, write_fragment

CELL = Cell(eval_id="e", condition="c", repetition=1, block=0, digest="d")
Entry = tuple[str, dict[str, Any]]


def call(tool: str, given: str = "{}", **values: Any) -> Entry:
    roles = {"Write": "write", "Edit": "write", "Bash": "shell", "Read": "read"}
    size = len(given.encode())
    return "call", {
        "tool": tool,
        "role": roles.get(tool, "other"),
        "input": given,
        "input_bytes": size,
        "answered": True,
        "is_error": False,
        "denied": False,
        **values,
    }


def said(text: str, **values: Any) -> Entry:
    size = len(text.encode())
    return "message", {"role": "assistant", "kind": "text", "text": text, "text_bytes": size, **values}


@pytest.fixture
def attempt(tmp_path: Path) -> AttemptFolder:
    return AttemptFolder(tmp_path / "attempt-1")


def record(attempt: AttemptFolder, *rounds: Iterable[Entry], **coverage: int) -> None:
    """Write the fragments of a conversation, each round given in its order."""
    calls, messages = [], []
    for number, entries in enumerate(rounds, 1):
        made, spoken = 0, 0
        for kind, values in entries:
            if kind == "call":
                calls.append(row("tool_calls", CELL, round=number, order=made, **values))
                made += 1
            else:
                places = {"order": spoken, "tool_calls_before": made}
                messages.append(row("messages", CELL, round=number, **places, **values))
                spoken += 1
    write_fragment(attempt, "tool_calls", reversed(calls))
    write_fragment(attempt, "messages", reversed(messages))
    counts = {"lines": 9, "parsed": 9, **coverage}
    write_fragment(attempt, "parse_coverage", [row("parse_coverage", CELL, round=1, **counts)])


def decide(
    attempt: AttemptFolder,
    pattern: str,
    must_precede: Literal["completion_claim", "first_write", "any"] = "any",
    target: Literal["tool_invocation_matches", "assistant_message_matches"] = "tool_invocation_matches",
) -> Verdict:
    transcript = read_transcript(attempt)
    assert not isinstance(transcript, str)
    assertion = TranscriptCheck(
        id="t", type="transcript_check", check=target, pattern=pattern, must_precede=must_precede
    )
    return check(assertion, transcript)


def test_a_call_is_matched_as_its_name_and_its_compact_arguments(attempt: AttemptFolder) -> None:
    record(attempt, [call("Read", '{"file_path":"a"}'), call("Bash", '{"command":"pytest -q"}')])

    verdict = decide(attempt, r'^Bash \{"command":"pytest')

    assert verdict == Verdict(passed=True, evidence='tool call 2 of 2 matches: Bash {"command":"pytest -q"}')
    assert decide(attempt, "make") == Verdict(passed=False, evidence="/make/ matches none of 2 tool calls")


def test_a_call_without_arguments_is_its_name_alone(attempt: AttemptFolder) -> None:
    record(attempt, [call("ListFiles", "")])

    assert decide(attempt, "^ListFiles$").passed is True


def test_a_refused_call_does_not_match_but_one_of_unknown_fate_does(attempt: AttemptFolder) -> None:
    record(attempt, [call("Bash", '{"command":"rm"}', denied=True), call("Bash", '{"command":"ls"}', denied=None)])

    assert decide(attempt, "rm").passed is False
    assert decide(attempt, "ls").passed is True


def test_calls_of_sub_agents_match_but_what_they_say_does_not(attempt: AttemptFolder) -> None:
    record(attempt, [call("Grep", parent_tool_use_id="a"), said("sub", parent_tool_use_id="a"), said("main")])

    assert decide(attempt, "Grep").passed is True
    assert decide(attempt, "sub", target="assistant_message_matches").passed is False
    assert decide(attempt, "main", target="assistant_message_matches").evidence == "message 1 of 1 matches: main"


def test_neither_thinking_nor_the_persons_words_nor_the_clis_are_messages_of_the_agent(
    attempt: AttemptFolder,
) -> None:
    record(attempt, [said("x", kind="thinking"), said("x", role="user"), said("x", synthetic=True)])

    assert decide(attempt, "x", target="assistant_message_matches").evidence == "/x/ matches none of 0 messages"


def test_before_the_first_write_means_strictly_before_it(attempt: AttemptFolder) -> None:
    record(attempt, [call("Read"), call("Write"), call("Bash", '{"command":"test"}')])

    assert decide(attempt, "Read", "first_write").passed is True
    assert decide(attempt, "Write", "first_write").passed is False
    assert decide(attempt, "Bash|Write", "first_write").evidence == (
        "/Bash|Write/ matches 2 of 3 tool calls, but none before the first write"
    )


def test_refused_and_failed_writes_are_no_writes(attempt: AttemptFolder) -> None:
    record(attempt, [call("Write", denied=True), call("Edit", is_error=True), call("Bash"), call("Write")])

    assert decide(attempt, "Bash", "first_write").passed is True
    assert decide(attempt, "Edit", "first_write").passed is True


@pytest.mark.parametrize(
    ("command", "writes"),
    [
        ("echo x > new.txt", True),
        ("cd sub && sed -i s/a/b/ app.py", True),
        ("cat <<E >{project}/a\nx\nE", True),
        ("ls 2>/dev/null", False),
        ("echo x > /tmp/elsewhere", False),
        ("make", False),
        ("((", False),
    ],
)
def test_a_shell_command_that_plainly_writes_in_the_environment_is_a_write(
    attempt: AttemptFolder, command: str, writes: bool
) -> None:
    text = command.replace("{project}", str(attempt.environment))
    given = orjson.dumps({"command": text}).decode()
    record(attempt, [call("Bash", given), call("Read"), call("Write")])

    assert decide(attempt, "Read", "first_write").passed is not writes


def test_a_refused_shell_command_wrote_nothing_and_a_failed_one_may_have(attempt: AttemptFolder) -> None:
    given = '{"command":"echo x > a; false"}'
    record(attempt, [call("Bash", given, denied=True), call("Read"), call("Bash", given, is_error=True), call("Grep")])

    assert decide(attempt, "Read", "first_write").passed is True
    assert decide(attempt, "Grep", "first_write").passed is False


def test_without_any_write_everything_stands_before_it(attempt: AttemptFolder) -> None:
    record(attempt, [call("Bash")])

    assert decide(attempt, "Bash", "first_write").passed is True


def test_the_completion_claim_is_the_main_agents_last_message_of_all_rounds(attempt: AttemptFolder) -> None:
    record(
        attempt,
        [call("Bash", '{"command":"one"}'), said("done?")],
        [call("Bash", '{"command":"two"}'), said("done"), call("Bash", '{"command":"three"}')],
    )

    assert decide(attempt, "two", "completion_claim").passed is True
    assert decide(attempt, "three", "completion_claim").evidence == (
        "/three/ matches 1 of 3 tool calls, but none before the agent's last message"
    )
    assert decide(attempt, "done", "completion_claim", "assistant_message_matches").passed is True
    assert decide(attempt, "done$", "completion_claim", "assistant_message_matches").passed is False


def test_a_message_stands_before_the_calls_that_follow_it(attempt: AttemptFolder) -> None:
    record(attempt, [call("Read"), said("I will write"), call("Write"), said("I wrote")])

    assert decide(attempt, "will", "first_write", "assistant_message_matches").passed is True
    assert decide(attempt, "wrote", "first_write", "assistant_message_matches").passed is False


def test_later_rounds_come_after_earlier_ones_whatever_their_numbers_within(attempt: AttemptFolder) -> None:
    record(attempt, [call("Read"), call("Read"), call("Write")], [call("Bash")])

    assert decide(attempt, "Bash", "first_write").passed is False


def test_cut_arguments_that_might_match_leave_no_verdict(attempt: AttemptFolder) -> None:
    record(attempt, [call("Read"), call("Bash", '{"command":"aaa', input_bytes=99_999)])

    assert decide(attempt, "aaa").passed is True
    verdict = decide(attempt, "needle")
    assert verdict.passed is None
    assert verdict.error == "arguments cut: 1 tool calls are known only in part"
    assert decide(attempt, "aaa$").passed is None
    assert decide(attempt, "Read|needle").passed is True


def test_cut_arguments_after_the_limit_matter_to_nobody(attempt: AttemptFolder) -> None:
    record(attempt, [call("Write"), call("Bash", '{"command":"aaa', input_bytes=99_999)])

    assert decide(attempt, "needle", "first_write").passed is False


def test_a_size_in_bytes_does_not_make_a_whole_text_look_cut(attempt: AttemptFolder) -> None:
    record(attempt, [call("Bash", '{"command":"é€"}')])

    assert decide(attempt, "needle").passed is False


def test_lines_that_could_not_be_read_are_told_of_when_nothing_matches(attempt: AttemptFolder) -> None:
    record(attempt, [call("Read")], malformed=2, truncated=1)

    assert decide(attempt, "needle").evidence == (
        "/needle/ matches none of 1 tool calls; 3 lines of the stream could not be read"
    )


def test_without_fragments_there_is_no_transcript(attempt: AttemptFolder) -> None:
    assert read_transcript(attempt) == (
        "there is no transcript: the stream was not read into tool_calls, messages, parse_coverage"
    )


def test_a_stream_of_which_nothing_was_understood_is_no_transcript(attempt: AttemptFolder) -> None:
    record(attempt, [], lines=3, parsed=0, malformed=3)

    assert read_transcript(attempt) == "there is no transcript: no line of the stream was understood"
