"""Every known way in which readers of Claude Code streams went wrong, with the values that are right."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from skilltrial.tasks.ingest.records import Usage
from skilltrial.tasks.ingest.rounds import round_usage
from skilltrial.tasks.ingest.usage import KINDS, total
from tests.ingest.bug_input import FIXTURES, bug_input, expected, read, read_text


def tokens(usage: Usage | None) -> dict[str, int | None]:
    assert usage is not None
    return {kind: getattr(usage, kind) for kind in KINDS}


def test_b01_a_stream_without_result_has_no_cost_and_only_lower_bounds() -> None:
    found, right = bug_input("B01"), expected("B01")
    summary = found.summary
    assert (summary.results, summary.last_result, summary.finished) == (0, None, False)
    assert summary.tool_calls == summary.tool_calls_answered == right["tool_calls"]
    assert summary.final_text == right["final_text"]
    known = {kind: right["usage"][kind] for kind in KINDS if kind != "output_tokens"}
    assert tokens(summary.usage_main) == known | {"output_tokens": 3}
    assert summary.usage_main is not None
    assert (summary.usage_main.exact, summary.usage_main.source) == (False, "message_start")
    assert summary.usage_main.cost_usd is right["cost_usd"]
    assert [row["cost_usd"] for row in found.table("usage")] == [None, None]


def test_b02_the_result_is_the_last_record() -> None:
    summary = bug_input("B02").summary
    assert (summary.results, summary.last_record, summary.final_text) == (1, "result/success", "ok")
    assert round_usage(summary).cost_usd == expected("B02")["cost_usd"]


def test_b03_a_stall_after_an_answer_shows_its_last_record_and_no_open_call() -> None:
    found, right = bug_input("B03"), expected("B03")
    assert found.summary.last_record == right["last_event"]
    assert found.summary.tool_calls == right["tool_calls"]
    assert [row for row in found.table("tool_calls") if not row["answered"]] == right["unanswered_tool_calls"]
    assert found.summary.final_text is None


def test_b06_is_error_wins_and_synthetic_messages_are_no_answers() -> None:
    found, right = bug_input("B06"), expected("B06")
    result = found.summary.last_result
    assert result is not None
    assert (result.is_error, result.terminal_reason) == (True, right["reason"])
    assert result.api_error_status == right["api_status"]
    assert round_usage(found.summary).cost_usd == right["cost_usd"]
    assert found.summary.synthetic_messages == right["synthetic_messages"]
    assert found.summary.model_messages == right["model_turns_counted"]
    assert [row["synthetic"] for row in found.table("messages")] == [True]
    assert found.summary.final_text is None
    assert found.summary.api_errors == ["oauth_org_not_allowed"]
    assert found.summary.error_texts == ["Your organization has turned off access."]


def test_b07_servers_that_are_not_connected_are_noted() -> None:
    found = bug_input("B07")
    waiting = [e["name"] for e in found.summary.surfaces["mcp_server"].entries if e["status"] != "connected"]
    assert waiting == expected("B07")["mcp_not_connected"]
    assert "mcp_not_connected" in found.summary.notes


def test_b08_a_denial_on_a_success_is_a_row_and_marks_its_call() -> None:
    found, [right] = bug_input("B08"), expected("B08")["denials"]
    [denial] = found.table("denials")
    assert (denial["tool_use_id"], denial["tool"]) == (right["tool_use_id"], right["tool_name"])
    assert denial["evidence"] == [right["source"]]
    assert denial["source"] == "permission"
    assert denial["input_keys"] == ["content", "file_path"]
    assert denial["reason"].startswith("Permission to use Write has been denied")
    assert found.summary.denials == expected("B08")["denial_count"]
    assert [row["denied"] for row in found.table("tool_calls")] == [True]


def test_b10_a_message_in_three_events_counts_once() -> None:
    found, right = bug_input("B10"), expected("B10")
    assert found.summary.model_messages == right["api_messages"]
    assert tokens(found.summary.usage_main) == right["usage"]


def test_b11_growing_usage_without_result_keeps_the_largest_output() -> None:
    found, right = bug_input("B11"), expected("B11")
    assert found.summary.model_messages == right["api_messages"]
    assert tokens(found.summary.usage_main) == right["usage"]
    assert found.summary.tool_calls == right["tool_calls"]
    assert [row["text"] for row in found.table("messages")] == ["x y"]


def test_b12_partial_messages_add_neither_tokens_nor_text() -> None:
    found, right = bug_input("B12"), expected("B12")
    assert tokens(found.summary.usage_main) == right["usage"]
    assert found.summary.final_text == right["final_text"]
    assert "".join(row["text"] for row in found.table("messages")) == right["assistant_text_concat"]


def test_b12_without_its_result_the_message_delta_tells_the_true_output(tmp_path: Path) -> None:
    lines = (FIXTURES / "bug_inputs/B12/input.jsonl").read_bytes().splitlines(keepends=True)
    path = tmp_path / "cut.jsonl"
    path.write_bytes(b"".join(lines[:-1]))
    main = read(path).summary.usage_main
    assert tokens(main) == expected("B12")["usage"]
    assert main is not None
    assert (main.exact, main.source) == (True, "message_delta")


def test_b13_main_agent_and_whole_tree_are_told_apart() -> None:
    found, right = bug_input("B13"), expected("B13")
    assert tokens(found.summary.usage_main) == right["main_usage"]
    assert tokens(total(found.summary.usage_all.values())) == right["total_usage"]
    assert round_usage(found.summary).cost_usd == right["cost_usd"]
    parents = [row["parent_tool_use_id"] for row in found.table("tool_calls")]
    assert parents.count(None) == right["tool_calls_main"]
    assert {"t1": parents.count("t1")} == right["subagents"]
    assert [(row["scope"], row["model"], row["cost_usd"]) for row in found.table("usage")] == [
        ("main", None, None),
        ("all", "claude-sonnet-4-6", 0.06),
        ("all", "claude-haiku-4-5-20251001", 0.03),
    ]


@pytest.mark.parametrize("file", ["resumed_new_cli.jsonl", "resumed_old_cli.jsonl"])
def test_b15_a_resumed_round_costs_what_it_added(file: str) -> None:
    right = expected("B15")["cases"][file]
    first = round_usage(bug_input("B15", "prior.jsonl").summary)
    resumed = bug_input("B15", file).summary
    assert resumed.last_result is not None
    assert resumed.last_result.session_cost_usd == right["cost_reported"]
    usage = round_usage(resumed, first.totals)
    assert usage.cost_usd == right["cost_this_run"]
    assert usage.totals.cost_usd == right["session_total"]
    assert {tokens(part)["output_tokens"] for part in usage.by_model.values()} == {200}


def test_b15_a_total_of_an_unknown_kind_gives_no_cost() -> None:
    first = round_usage(bug_input("B15", "prior.jsonl").summary)
    resumed = bug_input("B15", "resumed_new_cli.jsonl").summary
    resumed.cli_version = None
    usage = round_usage(resumed, first.totals)
    assert (usage.cost_usd, usage.notes) == (None, ("cost_kind_unknown",))


def test_b17_background_work_that_did_not_end_is_listed() -> None:
    assert bug_input("B17").summary.unfinished_tasks == expected("B17")["unfinished_background_tasks"]


def test_b19_a_line_above_a_mebibyte_keeps_sizes_and_no_image(tmp_path: Path) -> None:
    data = "".join(random.Random(19).choices("ABCDEFGHIJKLMNOP", k=700_000))
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    call = {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "/tmp/shot.png"}}
    answer = {"type": "tool_result", "tool_use_id": "t1", "content": [image]}
    found = read_text(
        tmp_path,
        {"type": "assistant", "message": {"id": "m", "role": "assistant", "content": [call]}},
        {"type": "user", "message": {"role": "user", "content": [answer]}, "tool_use_result": {"file": data}},
        {"type": "result", "subtype": "success", "is_error": False, "result": "A chart."},
    )
    [row] = found.table("tool_calls")
    assert (found.summary.tool_calls, found.summary.tool_calls_answered, row["result_images"]) == (1, 1, 1)
    assert (row["result"], row["result_bytes"]) == ("", 700_000)
    assert found.summary.coverage.longest_line_bytes > 1 << 20
    assert (found.summary.coverage.lines, found.summary.coverage.parsed) == (3, 3)


def test_b20_text_is_utf8_whatever_the_platform() -> None:
    found, right = bug_input("B20"), expected("B20")
    assert found.summary.final_text == right["final_text"]
    assert found.summary.coverage.replaced_bytes is False


def test_b21_a_cut_character_is_replaced_and_its_event_kept() -> None:
    found, right = bug_input("B21"), expected("B21")
    coverage = found.summary.coverage
    assert (coverage.malformed, coverage.replaced_bytes) == (right["undecodable_lines"], right["replaced_bytes"])
    assert found.summary.tool_calls == right["tool_calls"]
    assert found.summary.tool_calls_answered == right["tool_calls_answered"]
    assert "\ufffd" in found.table("tool_calls")[0]["result"]


def test_b22_a_call_that_ran_although_a_hook_denied_it_is_a_breach() -> None:
    found, right = bug_input("B22"), expected("B22")
    assert found.summary.guard_breaches == right["guard_breaches"]
    assert found.summary.denials == right["denial_count"]


def test_b32_a_skill_call_after_another_tool_is_found() -> None:
    found, right = bug_input("B32"), expected("B32")
    calls = found.table("tool_calls")
    assert found.summary.skill_calls == right["skill_calls"]
    assert calls[0]["tool"] == right["first_tool"]
    assert calls[right["skill_call_index"]]["skill"] == right["skill"]
    assert calls[right["skill_call_index"]]["role"] == "skill"


def test_b33_a_command_is_not_on_the_roster_of_skills() -> None:
    found, right = bug_input("B33"), expected("B33")
    listed = {(row["kind"], row["name"]) for row in found.table("session_surface")}
    assert (("skill", right["skill"]) in listed) is right["registered_as_skill"]
    assert (("command", right["skill"]) in listed) is right["registered_as_command"]


def test_b34_skills_of_other_runs_are_on_the_roster() -> None:
    found, right = bug_input("B34"), expected("B34")
    assert found.summary.skills is not None
    assert {right["skill"], right["sibling_triggered"]} < set(found.summary.skills)
    assert found.summary.skill_calls == [right["sibling_triggered"]]


def test_b37_a_plugin_that_was_not_loaded_is_absent_and_its_skill_unknown() -> None:
    found, right = bug_input("B37"), expected("B37")
    assert found.summary.plugins == right["loaded_plugins"]
    assert found.summary.unknown_skills == right["unknown_skill_calls"]
    assert "unknown_skill" in found.summary.notes


def test_b39_a_resume_without_session_has_only_its_errors_and_a_strange_id() -> None:
    summary = bug_input("B39").summary
    assert bool(summary.init_session_ids) is expected("B39")["init_seen"]
    assert summary.session_ids == ["99999999-0000-4000-8000-000000000000"]
    assert summary.last_result is not None
    assert summary.last_result.text is None
    assert summary.error_texts == ["No conversation found with session ID: 11111111-2222-4333-8444-555555555501"]
    assert round_usage(summary).cost_usd == 0
    assert summary.final_text is None


def test_b41_the_status_of_each_server_is_kept() -> None:
    found, right = bug_input("B41"), expected("B41")
    rows = found.table("session_surface")
    assert {row["name"]: row["status"] for row in rows if row["kind"] == "mcp_server"} == right["mcp"]
    tools = [row["name"] for row in rows if row["kind"] == "tool"]
    counted = {server: sum(tool.startswith(f"mcp__{server}__") for tool in tools) for server in right["mcp"]}
    assert counted == right["mcp_tools"]


def test_b54_an_empty_stream_tells_nothing() -> None:
    found = bug_input("B54")
    assert (found.summary.harness, found.summary.coverage.lines, found.rows) == ("unknown", 0, {})


def test_b55_a_pretty_printed_array_gives_the_same_rows() -> None:
    found, right = bug_input("B55", "input.json"), expected("B55")
    assert (found.summary.coverage.lines, found.summary.coverage.parsed) == (right["events"], right["events"])
    assert found.summary.tool_calls == right["tool_calls"]
    assert found.summary.denials == right["denial_count"]
    assert found.summary.results == 1


def test_b56_an_empty_last_word_is_empty_and_not_absent() -> None:
    found, right = bug_input("B56"), expected("B56")
    assert found.summary.final_text == right["final_text"]
    assert found.summary.notes == right["notes"]
    main = tokens(found.summary.usage_main)
    assert {kind: main[kind] for kind in right["usage"]} == right["usage"]


def test_b58_a_cost_of_zero_is_zero_and_nothing_is_made_of_an_empty_usage() -> None:
    found, right = bug_input("B58"), expected("B58")
    assert round_usage(found.summary).cost_usd == right["cost_usd"]
    assert [(row["scope"], row["source"]) for row in found.table("usage")] == [("main", "result"), ("all", "result")]


def test_b58_an_empty_usage_in_the_result_is_not_told(tmp_path: Path) -> None:
    result: dict[str, Any] = {"type": "result", "subtype": "success", "is_error": False, "usage": {}}
    summary = read_text(tmp_path, result).summary
    assert (summary.usage_main, summary.usage_all, round_usage(summary).cost_usd) == (None, {}, None)


def test_b60_foreign_lines_are_counted_by_kind() -> None:
    found, right = bug_input("B60"), expected("B60")
    coverage, skipped = found.summary.coverage, right["skipped_lines"]
    assert coverage.malformed == skipped["not_json"] + skipped["not_object"]
    assert coverage.blank == skipped["blank"]
    assert coverage.truncated == skipped["truncated_last"]
    assert coverage.nul_bytes == right["nul_bytes"]
    assert coverage.lines == 9
    assert found.summary.tool_calls == right["tool_calls"]
    assert found.summary.tool_calls_answered == right["tool_calls_answered"]
    assert found.summary.results == 0
