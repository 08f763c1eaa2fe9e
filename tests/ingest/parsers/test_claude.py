"""What is read out of streams that claude 2.1.332 wrote, and out of shapes that no stream may break on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skilltrial.data.tables import TABLES
from skilltrial.tasks.ingest.parsers import make_parser, sniff
from skilltrial.tasks.ingest.rounds import round_usage
from skilltrial.tasks.ingest.stream import default_role, read_stream
from tests.ingest.bug_input import CAPTURES, FIXTURES, capture, read, read_text
from tests.ingest.sinks import MemorySink


def denials(name: str) -> list[tuple[str, str, str | None]]:
    return [(row["tool"], row["source"], row["reason_type"]) for row in capture(name).table("denials")]


def test_hook_denials_are_told_from_those_of_permissions() -> None:
    assert denials("e-hook-deny-json") == [("Bash", "hook", "hook"), ("Write", "hook", "hook")]
    assert denials("e-hook-deny-exit2") == [
        ("Bash", "hook", "hook"),
        ("Write", "hook", "hook"),
        ("Bash", "hook", "hook"),
    ]
    assert denials("e-hook-ask-bypass") == [
        ("Bash", "hook", "hook"),
        ("Write", "hook", "hook"),
        ("Bash", "hook", "hook"),
    ]
    assert {source for _, source, _ in denials("b-bash-acceptEdits")} == {"permission"}


def test_an_approver_that_says_no_or_answers_nonsense_is_the_source() -> None:
    assert {source for _, source, _ in denials("k-ppt-deny")} == {"approver"}
    assert {source for _, source, _ in denials("k-ppt-bad")} == {"approver"}
    assert denials("k-ppt-denyint") == [("Bash", "approver", None)]


def test_plan_mode_is_the_source_where_its_text_says_so() -> None:
    rows = capture("d-files-plan").table("denials")
    by_source = {row["source"] for row in rows if "while in plan mode" in row["reason"]}
    assert by_source == {"plan_mode"}
    assert len(rows) == 8


def test_what_the_sandbox_kept_from_happening_is_a_denial_where_the_call_failed() -> None:
    [row] = capture("c-sandbox-escape").table("denials")
    assert (row["tool"], row["source"], row["evidence"]) == ("Bash", "sandbox", ["text"])


@pytest.mark.parametrize("prefix", ["PreToolUse:Bash hook error: ", "PreToolUse:Bash hook error: [/a b/guard.py]: "])
def test_our_guard_is_known_by_the_mark_of_its_reason(prefix: str, tmp_path: Path) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "x"}}
    text = f"{prefix}skilltrial guard: writes outside"
    answer = {"type": "tool_result", "tool_use_id": "t1", "content": text, "is_error": True}
    decision = {"decision": "reject", "source": "hook", "reason_type": "hook"}
    found = read_text(
        tmp_path,
        {"type": "assistant", "message": {"id": "m", "content": [call]}},
        {
            "type": "user",
            "message": {"content": [answer]},
            "tool_result_meta": [{"id": "t1", "permission_decision": decision}],
        },
    )
    [row] = found.table("denials")
    assert (row["source"], row["reason"]) == ("guard", text)
    [row] = found.table("tool_calls")
    assert (row["denied"], row["decision"], row["decision_source"]) == (True, "reject", "hook")


def test_evidence_from_three_places_is_one_denial() -> None:
    rows = capture("e-hook-ask-bypass").table("denials")
    assert {tuple(row["evidence"]) for row in rows} == {("event", "tool_result_meta", "result")}
    assert [row["order"] for row in rows] == [0, 1, 2]


def test_a_refused_call_of_a_sub_agent_names_the_agent() -> None:
    found = capture("n-agent-denied")
    [row] = found.table("denials")
    assert row["agent_id"] is not None
    [call] = [call for call in found.table("tool_calls") if call["denied"]]
    assert call["parent_tool_use_id"] is not None
    assert call["tool_use_id"] == row["tool_use_id"]


def test_streams_without_any_report_are_judged_by_known_texts(tmp_path: Path) -> None:
    text = "Claude requested permissions to write to /x, but you haven't granted it yet."
    records: list[dict[str, Any]] = []
    for number, (content, failed) in enumerate([(text, True), ("ok", False), ("Exit code 1", True)]):
        call = {"type": "tool_use", "id": f"t{number}", "name": "Write", "input": {}}
        answer = {"type": "tool_result", "tool_use_id": f"t{number}", "content": content, "is_error": failed}
        records += [
            {"type": "assistant", "message": {"id": f"m{number}", "content": [call]}},
            {"type": "user", "message": {"content": [answer]}},
        ]
    found = read_text(tmp_path, *records)
    assert [(row["source"], row["evidence"]) for row in found.table("denials")] == [("permission", ["text"])]
    assert [row["denied"] for row in found.table("tool_calls")] == [True, False, None]
    result = {"type": "result", "subtype": "success", "is_error": False, "permission_denials": []}
    reported = read_text(tmp_path, *records, result)
    assert reported.table("denials") == []
    assert [row["denied"] for row in reported.table("tool_calls")] == [False, False, False]


def test_a_hook_that_was_obeyed_is_no_breach_and_a_silent_one_is_counted(tmp_path: Path) -> None:
    def hook(**answer: Any) -> dict[str, Any]:
        told = {"hook_event": "PreToolUse", "hook_name": "PreToolUse:Bash", "stdout": "", "outcome": "success"}
        return {"type": "system", "subtype": "hook_response", **told, **answer}

    def turn(identifier: str, failed: bool, *hooks: dict[str, Any]) -> list[dict[str, Any]]:
        call = {"type": "tool_use", "id": identifier, "name": "Bash", "input": {}}
        answer = {"type": "tool_result", "tool_use_id": identifier, "content": "", "is_error": failed}
        message = {"type": "assistant", "message": {"id": identifier, "content": [call]}}
        return [message, *hooks, {"type": "user", "message": {"content": [answer]}}]

    no = json.dumps({"hookSpecificOutput": {"permissionDecision": "deny"}})
    found = read_text(
        tmp_path,
        *turn("obeyed", True, hook(exit_code=2, outcome="error")),
        *turn("disobeyed", False, hook(exit_code=0, stdout=no)),
        *turn("over http", False, hook(exit_code=200, output=no)),
        *turn("crashed", False, hook(exit_code=1, outcome="error")),
        *turn("noise", False, hook(exit_code=0, stdout="log\n" + no)),
        *turn("allowed", False, hook(exit_code=0)),
    )
    assert found.summary.guard_breaches == ["disobeyed", "over http"]
    assert found.summary.silent_hooks == 2
    assert "silent_hooks" in found.summary.notes


def test_a_deny_among_parallel_calls_is_explained_by_the_one_that_was_refused(tmp_path: Path) -> None:
    calls: list[dict[str, Any]] = [{"type": "tool_use", "id": name, "name": "Bash", "input": {}} for name in ("a", "b")]
    deny = {"type": "system", "subtype": "hook_response", "hook_event": "PreToolUse", "hook_name": "PreToolUse:Bash"}
    answers = [
        {"type": "tool_result", "tool_use_id": name, "content": "", "is_error": failed}
        for name, failed in (("a", False), ("b", True))
    ]
    found = read_text(
        tmp_path,
        {"type": "assistant", "message": {"id": "m", "content": calls}},
        deny | {"exit_code": 2},
        *({"type": "user", "message": {"content": [answer]}} for answer in answers),
    )
    assert found.summary.guard_breaches == []


def test_usage_is_summed_over_the_results_of_a_process_and_totals_are_the_last() -> None:
    found = capture("n-bgbash")
    assert (found.summary.results, found.summary.init_session_ids) == (2, found.summary.session_ids)
    assert found.summary.usage_main is not None
    assert (found.summary.usage_main.input_tokens, found.summary.usage_main.output_tokens) == (300, 150)
    assert found.summary.usage_all["claude-opus-5-5"].input_tokens == 300
    assert round_usage(found.summary).cost_usd == 0.00468
    assert found.summary.unfinished_tasks == []
    assert found.summary.final_text == "after bg"


def test_a_resumed_round_of_the_newest_version_tells_its_own_usage() -> None:
    first = round_usage(capture("j-resume-base2").summary)
    second = round_usage(capture("j-resume-same").summary, first.totals)
    assert first.cost_usd == second.cost_usd == 0.00312
    assert second.totals.cost_usd == 0.00624
    assert [(usage.input_tokens, usage.output_tokens) for usage in second.by_model.values()] == [(200, 100)]


def test_sub_agents_are_in_the_tree_and_not_in_the_main_agents_usage() -> None:
    found = capture("n-agent-fg")
    assert found.summary.usage_main is not None
    assert found.summary.usage_main.input_tokens == 200
    assert found.summary.usage_all["claude-opus-5-5"].input_tokens == 400
    parents = [row["parent_tool_use_id"] for row in found.table("tool_calls")]
    assert parents == [None, found.table("tool_calls")[0]["tool_use_id"]]


def test_api_errors_are_told_in_the_clis_words() -> None:
    summary = capture("l-err529").summary
    assert summary.api_errors == ["overloaded", "overloaded", "server_error"]
    assert (summary.api_retries, summary.synthetic_messages, summary.model_messages) == (2, 1, 0)
    assert summary.last_result is not None
    assert (summary.last_result.is_error, summary.last_result.api_error_status) == (True, 529)
    assert summary.final_text is None
    assert round_usage(summary).cost_usd == 0


def test_a_killed_process_leaves_its_last_record_and_an_open_call() -> None:
    found = capture("m-KILL-slowbash")
    assert (found.summary.results, found.summary.last_record) == (0, "assistant/tool_use")
    [call] = found.table("tool_calls")
    assert (call["answered"], call["result"], call["is_error"], call["denied"]) == (False, None, None, None)


def test_the_roster_names_skills_plugins_and_servers() -> None:
    found = capture("h-default")
    kinds = {row["kind"] for row in found.table("session_surface")}
    assert kinds == {"skill", "plugin", "tool", "mcp_server", "agent", "command"}
    plugins = {row["name"]: row for row in found.table("session_surface") if row["kind"] == "plugin"}
    assert plugins["demo"]["source"] == "demo@labmarket"
    assert found.summary.skills is not None
    assert "demo:demo-skill" in found.summary.skills
    assert found.summary.cli_version == "2.1.332"


def test_hook_records_before_init_open_no_second_session(tmp_path: Path) -> None:
    found = read_text(
        tmp_path,
        {"type": "system", "subtype": "hook_started", "hook_event": "SessionStart", "session_id": "other"},
        {"type": "system", "subtype": "init", "session_id": "ours", "tools": [], "skills": []},
        {"type": "result", "subtype": "success", "is_error": False, "session_id": "ours", "result": "x"},
    )
    assert found.summary.session_ids == ["ours"]
    assert (found.summary.skills, found.summary.plugins) == ([], None)
    assert sorted(found.summary.surfaces) == ["skill", "tool"]


def test_the_bundled_agent_says_that_it_is_scripted(tmp_path: Path) -> None:
    init = {"type": "system", "subtype": "init", "session_id": "s", "harness": "scripted", "tools": ["Bash"]}
    version = "0.1.0 (scripted)"
    summary = read_text(tmp_path, init | {"claude_code_version": version}).summary
    assert (summary.harness, summary.cli_version) == ("scripted", version)


def test_a_stream_that_was_written_twice_counts_once(tmp_path: Path) -> None:
    name = "n-agent-fg"
    lines = (CAPTURES / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
    once = capture(name)
    for order in (lines + lines, [line for line in lines for _ in range(2)]):
        path = tmp_path / "twice.jsonl"
        path.write_bytes(b"".join(order))
        twice = read(path)
        assert twice.rows == once.rows
        assert (twice.summary.results, twice.summary.usage_main) == (once.summary.results, once.summary.usage_main)
        assert "repeated_records" in twice.summary.notes


def test_a_single_result_object_is_read() -> None:
    summary = capture("a-json").summary
    assert (summary.harness, summary.results, summary.tool_calls) == ("claude-code", 1, 0)
    assert summary.final_text == "Hello from the mock."


def test_a_session_log_is_read_without_a_result(tmp_path: Path) -> None:
    shared = {"sessionId": "s", "version": "2.1.0", "isSidechain": False, "timestamp": "2026-01-01T00:00:00Z"}
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}
    found = read_text(
        tmp_path,
        {"type": "summary", "summary": "x", "leafUuid": "u"},
        shared | {"type": "user", "uuid": "1", "message": {"role": "user", "content": "Do it."}},
        shared | {"type": "user", "uuid": "2", "isMeta": True, "message": {"role": "user", "content": "Caveat"}},
        shared | {"type": "assistant", "uuid": "3", "message": {"id": "m", "model": "x", "content": [call]}},
    )
    assert (found.summary.harness, found.summary.cli_version, found.summary.session_ids) == (
        "claude-code",
        "2.1.0",
        ["s"],
    )
    assert [(row["text"], row["synthetic"]) for row in found.table("messages")] == [("Do it.", False), ("Caveat", True)]
    assert (found.summary.results, found.summary.tool_calls) == (0, 1)
    [row] = found.table("tool_calls")
    assert row["started_at"].isoformat() == "2026-01-01T00:00:00+00:00"


def test_overlong_texts_are_cut_and_their_size_kept(tmp_path: Path) -> None:
    text = "é" * 20_000
    record = {"type": "assistant", "message": {"id": "m", "model": "x", "content": [{"type": "text", "text": text}]}}
    found = read_text(tmp_path, record)
    [row] = found.table("messages")
    assert (len(row["text"]), row["text_bytes"]) == (16_384, 40_000)
    assert found.summary.final_text == text


@pytest.mark.parametrize(
    "record",
    [
        {"type": "system", "subtype": "init", "session_id": "T-12", "tools": ["Bash"]},
        {"type": "system", "subtype": "init", "session_id": "x", "apiKeySource": "env", "model": "m"},
        {"type": "system", "subtype": "init", "session_id": "x", "tools": ["read_file"], "permission_mode": "default"},
        {"type": "assistant", "message": {"usage": {"input_tokens": 1, "max_tokens": 2}}},
    ],
    ids=["amp", "cursor", "qwen", "amp usage"],
)
def test_streams_of_other_tools_in_the_same_form_are_unknown(record: dict[str, Any], tmp_path: Path) -> None:
    found = read_text(tmp_path, record, {"type": "result", "subtype": "success", "result": "x"})
    assert (found.summary.harness, found.summary.parser, found.rows) == ("unknown", "unknown", {})
    assert (found.summary.coverage.parsed, found.summary.coverage.unknown_type) == (0, 2)


def test_types_not_known_are_counted_and_named(tmp_path: Path) -> None:
    init = {"type": "system", "subtype": "init", "claude_code_version": "9.9.9"}
    coverage = read_text(
        tmp_path, init, {"type": "system", "subtype": "new"}, {"type": "x"}, {"no": 1}
    ).summary.coverage
    assert coverage.unknown_types == {"system/new", "x", "(none)"}
    assert (coverage.parsed, coverage.unknown_type) == (1, 3)


def _streams() -> list[Path]:
    return sorted([*CAPTURES.glob("*.jsonl"), *(FIXTURES / "bug_inputs").glob("B*/*.jsonl")])


@pytest.mark.parametrize("path", _streams(), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_row_fits_its_table(path: Path) -> None:
    found = read(path)
    identity = {"eval_id": "e", "condition": "c", "repetition": 1, "attempt": 1, "round": 1}
    for name, rows in found.rows.items():
        frame = TABLES[name].frame([identity | row for row in rows])
        if "order" in frame.columns:
            assert frame["order"].to_list() == list(range(len(rows)))
    coverage = found.summary.coverage
    accounted = coverage.parsed + coverage.unknown_type + coverage.malformed + coverage.blank + coverage.truncated
    assert coverage.lines == accounted
    assert found.summary.tool_calls == len(found.table("tool_calls"))
    assert found.summary.tool_calls_answered == sum(row["answered"] for row in found.table("tool_calls"))


def test_a_cut_at_any_byte_never_shows_a_result_that_is_not_there(tmp_path: Path) -> None:
    content = (CAPTURES / "a-plain.jsonl").read_bytes()
    path = tmp_path / "cut.jsonl"
    for end in range(0, len(content.rstrip()), 7):
        path.write_bytes(content[:end])
        summary = read(path).summary
        assert summary.results == 0
        assert summary.usage_main is None or not summary.usage_main.exact
    path.write_bytes(content.rstrip(b"\n"))
    assert read(path).summary.results == 1


_KEYS = [
    *("type", "subtype", "message", "content", "id", "name", "input", "tool_use_id", "is_error", "usage", "text"),
    *("session_id", "uuid", "result", "errors", "timestamp", "permission_denials", "modelUsage", "tool_result_meta"),
    *("permission_decision", "parent_tool_use_id", "event", "hook_event", "task_id", "output_tokens", "exit_code"),
    *(
        "total_cost_usd",
        "result_index",
        "skills",
        "plugins",
        "tools",
        "mcp_servers",
        "stdout",
        "model",
        "source",
        "patch",
        "status",
    ),
]
_WORDS = [
    *("assistant", "user", "system", "result", "stream_event", "init", "hook_response", "PreToolUse", "task_started"),
    *("tool_use", "tool_result", "text", "message_start", "message_delta", "permission_denied", "api_retry", "t1"),
    *("rate_limit_event", "success", "<synthetic>", "Bash", "Skill"),
]
_scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), st.sampled_from(_WORDS), st.text(max_size=5)
)
_values = st.recursive(
    _scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(_KEYS), inner, max_size=6)),
    max_leaves=12,
)
_records = st.fixed_dictionaries(
    {"type": st.one_of(st.sampled_from(_WORDS), _values)}, optional={key: _values for key in _KEYS if key != "type"}
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(_records, max_size=6))
def test_records_of_any_shape_never_raise_and_give_rows_that_fit(records: list[dict[str, Any]]) -> None:
    sink = MemorySink()
    parser = make_parser("claude-stream-json", sink, default_role("claude-stream-json"))
    sniff(records)
    for record in json.loads(json.dumps(records), parse_constant=lambda _: None):
        if isinstance(record["type"], str):
            parser.feed(record)
    parser.finish()
    identity = {"eval_id": "e", "condition": "c", "repetition": 1, "attempt": 1, "round": 1}
    for name, rows in sink.rows.items():
        TABLES[name].frame([identity | row for row in rows])


@pytest.mark.parametrize("depth", [300, 1000])
def test_deeply_nested_values_are_taken(depth: int, tmp_path: Path) -> None:
    nested = "[" * depth + "]" * depth
    call = f'{{"type":"tool_use","id":"t","name":"Bash","input":{nested}}}'
    path = tmp_path / "deep.jsonl"
    path.write_text(
        f'{{"type":"assistant","message":{{"id":"m","content":[{call}]}}}}\n'
        f'{{"type":"result","subtype":"success","is_error":false,"errors":[{nested}]}}\n'
    )
    found = read(path)
    assert (found.summary.tool_calls, found.summary.results) == (1, 1)


def test_a_missing_file_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_stream(tmp_path / "absent.jsonl", MemorySink())


def test_records_without_uuid_that_were_written_twice_count_once(tmp_path: Path) -> None:
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
    records: list[dict[str, Any]] = [
        {"type": "assistant", "message": {"id": "m", "model": "x", "content": [{"type": "text", "text": "a"}]}},
        {"type": "assistant", "message": {"id": "m", "model": "x", "content": [call]}},
        {"type": "result", "subtype": "success", "is_error": False, "usage": {"output_tokens": 7}},
    ]
    once, twice = read_text(tmp_path, *records), read_text(tmp_path, *records, *records)
    assert twice.rows == once.rows
    assert twice.summary.results == 1
