"""Several turns, results and sessions in one Claude Code stream: none counts twice, none is made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skilltrial.tasks.ingest.account import Accountant
from skilltrial.tasks.ingest.rounds import round_usage
from tests.ingest.bug_input import read_text

Record = dict[str, Any]


def init(session: str = "a", **more: Any) -> Record:
    told = {"session_id": session, "claude_code_version": "2.1.332"}
    return {"type": "system", "subtype": "init"} | told | more


def said(identifier: str, text: str) -> Record:
    message = {"id": identifier, "model": "m", "content": [{"type": "text", "text": text}]}
    return {"type": "assistant", "message": message}


def result(text: str, cost: float | None, session: str = "a", **more: Any) -> Record:
    usage = {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    told: Record = {"session_id": session, "uuid": text, "subtype": "success", "is_error": False, "usage": usage}
    return {"type": "result", "result": text} | told | ({} if cost is None else {"total_cost_usd": cost}) | more


def test_sessions_of_one_stream_are_added_up_in_tokens_and_in_money(tmp_path: Path) -> None:
    found = read_text(tmp_path, init(), result("one", 0.5), init("b"), result("two", 0.25, "b")).summary
    assert round_usage(found).cost_usd == 0.75
    assert found.usage_main is not None
    assert found.usage_main.input_tokens == 20


def test_a_session_that_does_not_tell_its_cost_leaves_the_whole_unknown(tmp_path: Path) -> None:
    found = read_text(tmp_path, init(), result("one", None), init("b"), result("two", 0.25, "b")).summary
    assert round_usage(found).cost_usd is None


@pytest.mark.parametrize("begun", [[init()], [init(), said("m2", "and then")], [said("m2", "and then")]])
def test_a_turn_after_the_result_without_one_of_its_own_is_told(begun: list[Record], tmp_path: Path) -> None:
    found = read_text(tmp_path, init(), said("m1", "started"), result("started", 0.5), *begun).summary
    assert found.reopened
    assert found.usage_main is not None
    assert not found.usage_main.exact
    assert not any(usage.exact for usage in found.usage_all.values())


def test_records_that_only_tidy_up_after_the_result_open_no_turn(tmp_path: Path) -> None:
    hook = {"type": "system", "subtype": "hook_response", "hook_event": "SessionEnd", "session_id": "a"}
    helper = said("s1", "in the background") | {"parent_tool_use_id": "t1"}
    found = read_text(tmp_path, init(), said("m1", "x"), result("x", 0.5), hook, helper).summary
    assert not found.reopened


def test_a_turn_that_came_to_its_result_is_closed(tmp_path: Path) -> None:
    found = read_text(tmp_path, init(), result("one", 0.5), init(), said("m2", "two"), result("two", 0.75)).summary
    assert not found.reopened
    assert (found.final_text, round_usage(found).cost_usd) == ("two", 0.75)


def test_the_highest_index_is_the_last_result_until_another_process_begins(tmp_path: Path) -> None:
    first = [init(), result("later", 0.5, result_index=1), result("earlier", 0.25, result_index=0)]
    assert read_text(tmp_path, *first).summary.final_text == "later"
    again = read_text(tmp_path, *first, init(), result("resumed", 0.75, result_index=0)).summary
    assert (again.final_text, round_usage(again).cost_usd) == ("resumed", 0.75)


def test_a_result_without_usage_makes_the_sum_a_lower_bound(tmp_path: Path) -> None:
    found = read_text(tmp_path, init(), result("one", 0.5), result("two", 0.6, usage={})).summary
    assert found.usage_main is not None
    assert (found.usage_main.input_tokens, found.usage_main.exact) == (10, False)


@pytest.mark.parametrize(
    ("answer", "breaches"),
    [("Exit code 3\nboom", ["t1"]), ("PreToolUse:Bash hook error: no", [])],
)
def test_a_denied_command_that_failed_by_itself_ran_all_the_same(
    answer: str, breaches: list[str], tmp_path: Path
) -> None:
    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "x"}}
    hook = {"type": "system", "subtype": "hook_response", "hook_event": "PreToolUse", "hook_name": "PreToolUse:Bash"}
    block = {"type": "tool_result", "tool_use_id": "t1", "content": answer, "is_error": True}
    found = read_text(
        tmp_path,
        {"type": "assistant", "message": {"id": "m", "content": [call]}},
        hook | {"exit_code": 2, "outcome": "error"},
        {"type": "user", "message": {"content": [block]}},
    )
    assert found.summary.guard_breaches == breaches


def test_a_resumed_session_of_another_id_is_charged_what_it_added(tmp_path: Path) -> None:
    for name, session, cost in (("first", "a", 0.5), ("second", "b", 0.75)):
        records = [init(session), result(name, cost, session)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    (tmp_path / "second.meta.json").write_text('{"exit_code": 0, "resumed_from": "a"}')
    accountant = Accountant()
    accountant.read(tmp_path / "first.jsonl")
    assert accountant.read(tmp_path / "second.jsonl").round_cost_usd == 0.25
