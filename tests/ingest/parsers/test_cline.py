"""Streams of Cline: captures of cline 3.0.65, and the say/ask records of older versions."""

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
from skilltrial.tasks.ingest.parsers.cline import ClineParser, looks_like
from skilltrial.tasks.ingest.records import Usage
from tests.ingest.bug_input import FIXTURES, Reading, bug_input, read, read_text
from tests.ingest.sinks import MemorySink

IDENTITY = {"eval_id": "e", "condition": "c", "repetition": 1, "attempt": 1, "round": 1}


def capture(name: str) -> Reading:
    return read(FIXTURES / "captures" / "other" / f"{name}.jsonl")


def event(**fields: Any) -> dict[str, Any]:
    return {"ts": "2026-01-01T00:00:00Z", "type": "agent_event", "event": fields}


def test_b53_an_abort_keeps_text_tokens_and_cost() -> None:
    found = bug_input("B53")
    summary = found.summary
    assert (summary.failed, summary.final_text, summary.model) == ("aborted", "partial", "m")
    assert summary.usage_main == Usage(50, 6, 40, 0, 0.001)
    assert [row["text"] for row in found.table("messages")] == ["partial"]
    assert classify(ProcessFacts(exit_code=0), summary).outcome is Outcome.AGENT_ERROR


def test_a_sub_agent_is_told_by_the_hook_events_before_its_own() -> None:
    found = capture("cline-spawn-agent")
    assert [(row["tool"], row["parent_tool_use_id"]) for row in found.table("tool_calls")] == [
        ("spawn_agent", None),
        ("run_commands", "call_1_0"),
    ]
    assert [(row["text"], row["parent_tool_use_id"]) for row in found.table("messages")] == [
        ("sub done", "call_1_0"),
        ("parent done", None),
    ]
    summary = found.summary
    assert summary.final_text == "parent done"
    assert summary.usage_main is not None
    assert summary.usage_main.input_tokens == 500
    assert {model: usage.input_tokens for model, usage in summary.usage_all.items()} == {"mock-model": 1000}


@pytest.mark.parametrize(
    ("name", "sources"),
    [
        ("cline-noapprove", ["permission", "permission"]),
        ("cline-plan", ["plan_mode"]),
        ("cline-plugin-local", ["unknown"]),
        ("cline-misc", []),
    ],
)
def test_refusals_are_told_from_errors_of_the_same_shape(name: str, sources: list[str]) -> None:
    found = capture(name)
    assert [row["source"] for row in found.table("denials")] == sources
    assert found.summary.denials == len(sources)
    assert sum(row["denied"] for row in found.table("tool_calls")) == len(sources)


def test_our_guard_is_named(tmp_path: Path) -> None:
    start = event(type="content_start", contentType="tool", toolName="editor", toolCallId="c", input={"path": "x"})
    error = {"error": "skilltrial guard: outside"}
    end = event(type="content_end", contentType="tool", toolName="editor", toolCallId="c", output=error, error="e")
    [row] = read_text(tmp_path, start, end).table("denials")
    assert (row["source"], row["tool"], row["input_keys"]) == ("guard", "editor", ["path"])


def test_a_part_that_failed_makes_the_answer_an_error() -> None:
    rows = capture("cline-misc").table("tool_calls")
    assert [(row["tool"], row["is_error"]) for row in rows] == [
        ("read_files", True),
        ("search_codebase", False),
        ("fetch_web_content", True),
        ("no_such_tool", True),
        ("run_commands", True),
    ]
    assert rows[0]["result"].startswith("1 | hello repo\nError reading file")


def test_an_abort_behind_a_completed_result_wins() -> None:
    summary = capture("cline-sigterm-tool").summary
    assert (summary.results, summary.failed, summary.last_record) == (1, "aborted", "run_aborted")


def test_a_failed_run_has_its_error_as_text_and_not_as_answer(tmp_path: Path) -> None:
    record = {"ts": "x", "type": "run_result", "finishReason": "error", "text": "401 Unauthorized", "usage": {}}
    summary = read_text(tmp_path, record).summary
    assert (summary.failed, summary.final_text, summary.error_texts) == ("error", None, ["401 Unauthorized"])
    assert classify(ProcessFacts(), summary).outcome is Outcome.AUTH


def test_without_a_result_the_events_give_a_lower_bound(tmp_path: Path) -> None:
    steps = [
        event(type="usage", inputTokens=10, outputTokens=1, cacheReadTokens=2, totalCost=0.25),
        event(type="usage", inputTokens=20, outputTokens=2, totalCost=0.75),
    ]
    summary = read_text(tmp_path, *steps).summary
    assert summary.usage_main == Usage(30, 3, 2, None, 0.75, exact=False, source="other")


def test_old_records_tell_text_tokens_and_end(tmp_path: Path) -> None:
    figures = json.dumps({"tokensIn": 100, "tokensOut": 5, "cacheReads": 7, "cost": 0.5})
    says: list[tuple[str, str]] = [("text", "a task"), ("api_req_started", figures), ("completion_result", "DONE")]
    records = [{"type": "say", "say": what, "text": text, "ts": 1_768_847_967_916} for what, text in says]
    partial = {"type": "say", "say": "text", "text": "a ta", "ts": 1, "partial": True}
    found = read_text(tmp_path, *records, partial, {"type": "ask", "ask": "followup", "ts": 1})
    summary = found.summary
    assert (summary.results, summary.finished, summary.final_text) == (1, True, "DONE")
    assert summary.usage_main == Usage(100, 5, 7, None, 0.5, source="other")
    assert [row["text"] for row in found.table("messages")] == ["a task", "DONE"]
    assert (summary.coverage.parsed, summary.coverage.unknown_type) == (4, 1)


@pytest.mark.parametrize("record", [{"type": "error", "ts": 1}, {"type": "run_result"}, {"type": "say", "ts": 1}, {}])
def test_records_of_others_do_not_look_like_cline(record: dict[str, Any]) -> None:
    assert not looks_like(record)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**53) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "contentType", "toolCallId", "toolName", "input", "output", "error", "success"]),
            inner,
        )
    ),
    max_leaves=8,
)
EVENT = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["content_start", "content_end", "usage", "error"]),
        "contentType": st.sampled_from(["tool", "text"]),
    },
    optional={"toolCallId": JSON, "output": JSON, "error": JSON, "text": JSON, "input": JSON, "inputTokens": JSON},
)


@given(
    st.lists(
        st.fixed_dictionaries({"type": st.just("agent_event"), "event": EVENT})
        | st.fixed_dictionaries(
            {"type": st.sampled_from(["run_result", "hook_event", "run_aborted"])},
            optional={"usage": JSON, "text": JSON, "agentId": JSON, "parentAgentId": JSON, "hookEventName": JSON},
        ),
        max_size=6,
    )
)
def test_no_shape_of_a_record_breaks_the_parser_or_a_table(records: list[dict[str, Any]]) -> None:
    sink = MemorySink()
    parser = ClineParser(sink, lambda tool: "other")
    for record in records:
        parser.feed(record)
    summary = parser.finish()
    for table, rows in sink.rows.items():
        TABLES[table].frame([{**IDENTITY, **row} for row in rows])
    assert summary.tool_calls == len(sink.rows.get("tool_calls", []))
