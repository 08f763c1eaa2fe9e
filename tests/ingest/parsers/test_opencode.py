"""Streams of OpenCode: captures of opencode 1.18.33, and what other versions wrote."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skilltrial.data.outcomes import Outcome
from skilltrial.data.tables import TABLES
from skilltrial.tasks.dispatch.facts import ProcessFacts
from skilltrial.tasks.dispatch.outcome import classify
from skilltrial.tasks.ingest.parsers.opencode import OpencodeParser, looks_like
from skilltrial.tasks.ingest.records import Usage
from tests.ingest.bug_input import FIXTURES, Reading, bug_input, read, read_text
from tests.ingest.sinks import MemorySink

IDENTITY = {"eval_id": "e", "condition": "c", "repetition": 1, "attempt": 1, "round": 1}


def capture(name: str) -> Reading:
    return read(FIXTURES / "captures" / "other" / f"{name}.jsonl")


def event(kind: str, **part: Any) -> dict[str, Any]:
    return {"type": kind, "timestamp": 1_796_073_765_945, "sessionID": "ses_1", "part": part}


def finish(reason: str | None, **tokens: Any) -> dict[str, Any]:
    return event("step_finish", reason=reason, tokens=tokens, cost=0.5)


def test_b48_a_refused_question_ends_the_run_without_a_word() -> None:
    found = bug_input("B48")
    assert (found.summary.failed, found.summary.final_text, found.summary.results) == ("aborted", "", 0)
    assert [(row["tool_use_id"], row["source"]) for row in found.table("denials")] == [("c1", "permission")]
    assert classify(ProcessFacts(), found.summary).outcome is Outcome.AGENT_ERROR


def test_b52_the_exit_code_tells_an_error_and_the_part_its_id() -> None:
    found = bug_input("B52")
    rows = [(row["tool_use_id"], row["is_error"]) for row in found.table("tool_calls")]
    assert rows == [("c1", True), ("chatcmpl-tool-1", False)]
    assert (found.summary.finished, found.summary.results, found.summary.final_text) == (False, 0, "end")


def test_calls_are_told_with_their_times_and_errors() -> None:
    rows = capture("opencode-write-edit").table("tool_calls")
    assert [(row["tool"], row["role"], row["is_error"]) for row in rows] == [
        ("write", "write", False),
        ("read", "read", False),
        ("edit", "write", False),
        ("edit", "write", True),
    ]
    assert rows[0]["started_at"] == datetime(2026, 11, 30, 21, 21, 31, 822_000, UTC)
    assert rows[0]["message_id"] is not None


def test_tokens_and_money_add_up_over_the_steps(tmp_path: Path) -> None:
    steps = (
        finish("tool-calls", input=10, output=2, reasoning=1, cache={"read": 5, "write": 7}),
        finish("stop", input=20, output=3, cache={"read": 6}),
    )
    summary = read_text(tmp_path, *steps).summary
    assert summary.usage_main == Usage(30, 5, 11, 7, 1.0, source="other")
    assert summary.usage_all == {None: summary.usage_main}
    assert summary.results == 1


def test_a_step_without_tokens_leaves_them_untold(tmp_path: Path) -> None:
    summary = read_text(tmp_path, event("step_finish", reason="stop")).summary
    assert (summary.usage_main, summary.results) == (None, 1)


def test_a_rule_refuses_and_the_run_goes_on() -> None:
    found = capture("opencode-perm-deny-pattern")
    assert [row["denied"] for row in found.table("tool_calls")] == [True, True, False]
    reason = "The user has specified a rule which prevents you from using this specific tool call."
    assert [row["reason"] for row in found.table("denials")] == [reason, reason]
    assert (found.summary.results, found.summary.failed) == (1, None)


def test_our_guard_is_told_from_other_errors(tmp_path: Path) -> None:
    def call(error: str) -> dict[str, Any]:
        return event("tool_use", tool="bash", callID=error, state={"status": "error", "input": {}, "error": error})

    found = read_text(tmp_path, call("skilltrial guard: outside"), call("some plugin: no"))
    assert [(row["tool_use_id"], row["source"]) for row in found.table("denials")] == [
        ("skilltrial guard: outside", "guard")
    ]


def test_skills_are_told_and_a_miss_with_them() -> None:
    summary = capture("opencode-skills").summary
    assert summary.skill_calls == ["proj-opencode-name", "not-there"]
    assert summary.unknown_skills == ["not-there"]


def test_a_tool_that_is_not_there_keeps_its_name_and_is_no_denial(tmp_path: Path) -> None:
    state = {"status": "completed", "input": {"tool": "bash", "error": "unavailable"}, "output": "invalid"}
    found = read_text(tmp_path, event("tool_use", tool="invalid", callID="c", state=state))
    [row] = found.table("tool_calls")
    assert (row["tool"], row["is_error"], row["denied"]) == ("bash", True, False)


def test_the_status_of_an_api_error_decides_the_outcome() -> None:
    summary = capture("opencode-err-401").summary
    assert (summary.results, summary.failed, summary.api_errors) == (0, "error", ["authentication_error"])
    assert classify(ProcessFacts(), summary).outcome is Outcome.AUTH


@pytest.mark.parametrize(
    ("reason", "finished", "failed"),
    [("stop", True, None), ("length", True, "length"), ("tool-calls", False, None), (None, False, None)],
)
def test_only_a_stop_is_a_good_end(tmp_path: Path, reason: str | None, finished: bool, failed: str | None) -> None:
    summary = read_text(tmp_path, event("step_start"), finish(reason, input=1)).summary
    assert (summary.finished, summary.failed, summary.results) == (finished, failed, int(reason == "stop"))


def test_a_sub_agent_makes_the_tokens_of_the_whole_tree_unknown(tmp_path: Path) -> None:
    call = event("tool_use", tool="task", callID="c", state={"status": "completed", "input": {}, "output": ""})
    summary = read_text(tmp_path, call, finish("stop", input=1)).summary
    assert summary.usage_main is not None
    assert summary.usage_all == {}


def test_an_answer_apart_from_its_call_finds_it_by_the_tool(tmp_path: Path) -> None:
    call = {"type": "tool_use", "sessionID": "s", "part": {"id": "t", "name": "grep", "input": {"pattern": "hi"}}}
    answer = {"type": "tool_result", "tool": "grep", "result": {"matches": 2}}
    [row] = read_text(tmp_path, call, answer).table("tool_calls")
    assert (row["tool_use_id"], row["result"], row["answered"], row["is_error"]) == ("t", '{"matches":2}', True, None)


@pytest.mark.parametrize("record", [{"type": "text"}, {"type": "assistant", "sessionID": "s"}, {}, {"type": {}}])
def test_records_of_others_do_not_look_like_opencode(record: dict[str, Any]) -> None:
    assert not looks_like(record)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**53) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["tool", "callID", "state", "status", "input", "error", "time", "end"]), inner
        )
    ),
    max_leaves=8,
)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"type": st.sampled_from(["tool_use", "text", "step_finish", "error", "tool_result", "step_start"])},
            optional={"part": JSON, "error": JSON, "timestamp": JSON, "sessionID": JSON, "usage": JSON, "tool": JSON},
        ),
        max_size=6,
    )
)
def test_no_shape_of_a_record_breaks_the_parser_or_a_table(records: list[dict[str, Any]]) -> None:
    sink = MemorySink()
    parser = OpencodeParser(sink, lambda tool: "other")
    for record in records:
        parser.feed(record)
    summary = parser.finish()
    for table, rows in sink.rows.items():
        TABLES[table].frame([{**IDENTITY, **row} for row in rows])
    assert summary.tool_calls == len(sink.rows.get("tool_calls", []))
