"""Streams and session logs of Codex: captures of codex-cli 0.171.0, and what older versions wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skilltrial.data.outcomes import Outcome
from skilltrial.data.tables import TABLES
from skilltrial.tasks.dispatch.facts import ProcessFacts
from skilltrial.tasks.dispatch.outcome import classify
from skilltrial.tasks.ingest.parsers.codex import CodexParser, looks_like
from skilltrial.tasks.ingest.records import Usage
from tests.ingest.bug_input import FIXTURES, Reading, bug_input, read, read_text
from tests.ingest.sinks import MemorySink

IDENTITY = {"eval_id": "e", "condition": "c", "repetition": 1, "attempt": 1, "round": 1}


def capture(name: str) -> Reading:
    return read(FIXTURES / "captures" / "other" / f"{name}.jsonl")


def item(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"item.{kind}", "item": {"id": "item_0", **fields}}


def test_b45_the_usage_of_the_last_turn_is_the_total() -> None:
    summary = bug_input("B45").summary
    assert summary.usage_main == Usage(30, 15, 8, None, source="running_total")
    assert (summary.results, summary.finished, summary.final_text) == (2, True, "x")


def test_b43_a_failed_turn_says_why_once() -> None:
    summary = bug_input("B43").summary
    assert (summary.failed, summary.error_texts) == ("turn_failed", ["Selected model is at capacity."])
    assert summary.usage_main is None
    assert classify(ProcessFacts(), summary).outcome is Outcome.OVERLOADED


def test_calls_carry_role_arguments_and_answer() -> None:
    [first, second] = capture("codex-patch-ok").table("tool_calls")
    assert (first["tool"], first["role"], first["result"], first["is_error"]) == ("file_change", "patch", "", False)
    assert [change["kind"] for change in json.loads(first["input"])["changes"]] == ["update", "add"]
    assert [change["kind"] for change in json.loads(second["input"])["changes"]] == ["delete"]
    assert first["denied"] is None


@pytest.mark.parametrize(
    ("fields", "is_error"),
    [
        ({"exit_code": 0, "status": "completed"}, False),
        ({"exit_code": 1, "status": "failed"}, True),
        ({"exit_code": None, "status": "failed"}, True),
        ({"status": "completed"}, False),
        ({}, None),
    ],
)
def test_a_command_fails_by_its_exit_code_first(tmp_path: Path, fields: dict[str, Any], is_error: bool | None) -> None:
    record = item("completed", type="command_execution", command="x", aggregated_output="out", **fields)
    [row] = read_text(tmp_path, record).table("tool_calls")
    assert (row["is_error"], row["result"], row["role"]) == (is_error, "out", "shell")


def test_a_command_that_outlives_the_turn_stays_unanswered() -> None:
    found = capture("codex-long-cmd")
    assert (found.summary.tool_calls, found.summary.tool_calls_answered) == (1, 0)
    [row] = found.table("tool_calls")
    assert (row["answered"], row["result"], row["is_error"]) == (False, None, None)


def test_an_mcp_tool_without_approval_is_the_one_refusal_in_the_events() -> None:
    found = capture("codex-mcp-noapprove")
    [denial] = found.table("denials")
    assert (denial["tool"], denial["source"], denial["evidence"]) == ("mcp__lab__echo", "permission", ["event"])
    assert (found.summary.denials, found.summary.notes) == (1, ["denials_partly_reported"])
    assert capture("codex-mcp").summary.denials is None


def test_images_of_an_mcp_answer_are_counted_and_not_kept(tmp_path: Path) -> None:
    content = [{"type": "text", "text": "a"}, {"type": "image", "data": "xx"}, {"type": "odd"}]
    record = item("completed", type="mcp_tool_call", server="s", tool="t", arguments={}, result={"content": content})
    [row] = read_text(tmp_path, record).table("tool_calls")
    assert (row["tool"], row["result"], row["result_images"]) == ("mcp__s__t", 'a\n{"type":"odd"}', 1)


def test_a_sub_agent_makes_the_tokens_of_the_whole_tree_unknown() -> None:
    summary = capture("codex-subagent").summary
    assert summary.usage_main is not None
    assert summary.usage_all == {}


def test_retries_are_no_failures(tmp_path: Path) -> None:
    retry = {"type": "error", "message": "Reconnecting... 1/5 (connection refused)"}
    found = read_text(tmp_path, {"type": "turn.started"}, retry, {"type": "turn.completed", "usage": {}})
    assert (found.summary.api_retries, found.summary.error_texts, found.summary.notes) == (1, [], [])
    assert found.summary.usage_main is None
    assert read_text(tmp_path, {"type": "turn.started"}, retry).summary.last_record == "error/api_retry"


def test_an_error_before_the_end_of_a_good_turn_is_noted(tmp_path: Path) -> None:
    warning = {"type": "error", "message": "odd"}
    done = {"type": "turn.completed", "usage": {"input_tokens": 1}}
    assert read_text(tmp_path, warning, done).summary.notes == ["nonfatal_error"]
    assert read_text(tmp_path, {"type": "turn.started"}, warning).summary.error_texts == ["odd"]


def test_items_of_unknown_types_are_counted(tmp_path: Path) -> None:
    coverage = read_text(tmp_path, {"type": "thread.started"}, item("completed", type="future")).summary.coverage
    assert (coverage.parsed, coverage.unknown_type, coverage.unknown_types) == (1, 1, {"item.completed"})


def test_a_session_log_has_every_refusal_and_the_times() -> None:
    found = capture("codex-hook-exit2.rollout")
    summary = found.summary
    assert (summary.cli_version, summary.model, summary.permission_mode) == ("0.171.0", "gpt-5.5", "never")
    assert [(row["tool"], row["denied"], row["is_error"]) for row in found.table("tool_calls")] == [
        ("exec_command", True, True),
        ("exec_command", False, False),
        ("apply_patch", True, True),
    ]
    assert [(row["source"], row["reason"]) for row in found.table("denials")] == [
        ("hook", "lab guard: exit2 reason")
    ] * 2
    assert all(row["started_at"] <= row["ended_at"] for row in found.table("tool_calls"))
    assert [(row["role"], row["synthetic"]) for row in found.table("messages")] == [
        ("user", True),
        ("user", False),
        ("assistant", False),
    ]
    assert summary.usage_main == capture("codex-hook-exit2").summary.usage_main


def test_an_interrupted_turn_of_a_session_log_is_aborted() -> None:
    summary = capture("codex-sigint-tool.rollout").summary
    assert (summary.finished, summary.failed, summary.error_texts) == (True, "aborted", ["interrupted"])


@pytest.mark.parametrize(
    ("output", "text", "is_error"),
    [
        ('{"output":"x","metadata":{"exit_code":3}}', "x", True),
        ([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}], "a\nb", None),
        ("Process exited with code 0\nOutput:\n", "Process exited with code 0\nOutput:\n", False),
        ("{broken", "{broken", None),
    ],
)
def test_answers_of_a_session_log_have_several_shapes(
    tmp_path: Path, output: object, text: str, is_error: bool | None
) -> None:
    call = {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "c"}
    answer = {"type": "function_call_output", "call_id": "c", "output": output}
    found = read_text(tmp_path, *({"type": "response_item", "payload": payload} for payload in (call, answer)))
    [row] = found.table("tool_calls")
    assert (row["input"], row["result"], row["is_error"]) == ('{"command":["ls"]}', text, is_error)


@pytest.mark.parametrize("record", [{"type": "step_start", "sessionID": "s"}, {"type": "system"}, {}, {"type": ["a"]}])
def test_records_of_others_do_not_look_like_codex(record: dict[str, Any]) -> None:
    assert not looks_like(record)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**53) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "type", "text", "command", "status", "error", "result", "usage"]), inner
        )
    ),
    max_leaves=8,
)


@given(
    st.lists(
        st.fixed_dictionaries(
            {"type": st.sampled_from(["item.started", "item.completed", "turn.completed", "turn.failed", "error"])},
            optional={"item": JSON, "usage": JSON, "error": JSON, "message": JSON},
        ),
        max_size=6,
    )
)
def test_no_shape_of_a_record_breaks_the_parser_or_a_table(records: list[dict[str, Any]]) -> None:
    sink = MemorySink()
    parser = CodexParser(sink, lambda tool: "other")
    for record in records:
        parser.feed(record)
    summary = parser.finish()
    for table, rows in sink.rows.items():
        TABLES[table].frame([{**IDENTITY, **row} for row in rows])
    assert summary.tool_calls == len(sink.rows.get("tool_calls", []))
