"""The stream has the real CLI's shape, compared with lines recorded from claude 2.1.332."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skilltrial.tasks.dispatch.scripted.stream import VERSION, encoded, new_uuid
from tests.dispatch.scripted.agent import SESSION, Agent, Json, bash, tool

RECORDED = Path(__file__).parents[2] / "fixtures" / "scripted" / "claude-2.1.332.jsonl"
OURS_ALONE = {"harness", "requested_model"}


def recorded() -> dict[str, Json]:
    lines = [json.loads(line) for line in RECORDED.read_text("utf-8").splitlines()]
    return {line["name"]: line["event"] for line in lines}


def first(events: list[Json], kind: str, block: str) -> Json:
    return next(e for e in events if e["type"] == kind and e["message"]["content"][0]["type"] == block)


@pytest.fixture
def ours(agent: Agent) -> dict[str, Json]:
    """Our counterpart of every recorded line."""
    agent.stage("notes", "---\nname: notes\n---\n\nBody.\n")
    (agent.cwd / "old.txt").write_text("old\n", "utf-8")
    hook = {"matcher": "Bash", "hooks": [{"type": "command", "command": "echo no >&2; exit 2"}]}
    nonsense = {"hookSpecificOutput": {"permissionDecision": "perhaps"}}
    unsure = {"matcher": "*", "hooks": [{"type": "command", "command": f"echo '{json.dumps(nonsense)}'"}]}
    plain = agent.run(
        [
            {"think": "Hm.", "say": "Hello.", **bash("ls")},
            bash("python3 -c 1"),
            tool("Write", file_path="{cwd}/new.txt", content="x\n"),
            tool("Read", file_path="{cwd}/old.txt"),
            tool("Edit", file_path="{cwd}/old.txt", old_string="old", new_string="new"),
            tool("Edit", file_path="{cwd}/old.txt", old_string="absent", new_string="new"),
            tool("Skill", skill="notes"),
            {"say": "Done."},
        ],
        mode="acceptEdits",
    )
    hooked = Agent(agent.root / "hooked").run(
        [bash("ls")], "--settings", json.dumps({"hooks": {"PreToolUse": [hook]}}), "--include-hook-events"
    )
    doubtful = Agent(agent.root / "doubtful").run(
        [bash("ls")], "--settings", json.dumps({"hooks": {"PreToolUse": [unsure]}})
    )
    limited = Agent(agent.root / "limited").run([{"fail": {"kind": "rate_limit", "retries": 1}}])
    turns = Agent(agent.root / "turns").run([bash("ls"), bash("ls")], "--max-turns", "1")
    answers = plain.tool_results
    return {
        "init": plain.init,
        "text": first(plain.events, "assistant", "text"),
        "thinking": first(plain.events, "assistant", "thinking"),
        "tool_use": first(plain.events, "assistant", "tool_use"),
        "bash_ok": answers[0],
        "bash_denied": answers[1],
        "write_ok": answers[2],
        "read_ok": answers[3],
        "edit_ok": answers[4],
        "invalid": answers[5],
        "skill_ok": answers[6],
        "skill_body": first(plain.events, "user", "text"),
        "permission_denied": plain.of("system", "permission_denied")[0],
        "result": plain.result,
        "hook_started": hooked.of("system", "hook_started")[0],
        "hook_response": hooked.of("system", "hook_response")[0],
        "hook_denied": hooked.tool_results[0],
        "no_verdict": doubtful.of("system", "informational")[0],
        "api_retry": limited.of("system", "api_retry")[0],
        "api_error": limited.of("assistant")[0],
        "api_error_result": limited.result,
        "max_turns": turns.result,
    }


def test_every_line_has_the_keys_of_the_recorded_line(ours: dict[str, Json]) -> None:
    theirs = recorded()
    # without a request there is no identifier of one, and the interrupted session is compared elsewhere
    absent = {"api_error": {"request_id"}}
    for name, event in ours.items():
        assert set(event) - OURS_ALONE == set(theirs[name]) - absent.get(name, set()), name
        if isinstance(event.get("message"), dict):
            assert set(event["message"]) == set(theirs[name]["message"]), name
            ours_block, their_block = event["message"]["content"][0], theirs[name]["message"]["content"][0]
            assert set(ours_block) == set(their_block), name
    assert set(theirs) - set(ours) == {"interrupted"}


def test_structured_results_have_the_keys_of_the_recorded_ones(ours: dict[str, Json]) -> None:
    theirs = recorded()
    for name in ("bash_ok", "write_ok", "read_ok", "edit_ok", "skill_ok"):
        assert set(ours[name]["tool_use_result"]) == set(theirs[name]["tool_use_result"]), name
        assert ours[name]["tool_result_meta"][0].keys() == theirs[name]["tool_result_meta"][0].keys(), name
    for name in ("bash_denied", "hook_denied"):
        mine, real = ours[name]["tool_result_meta"][0], theirs[name]["tool_result_meta"][0]
        assert {**mine, "id": ""} == {**real, "id": ""}, name


def test_nothing_passes_for_a_model(ours: dict[str, Json]) -> None:
    assert ours["init"]["model"] == "scripted"
    assert ours["init"]["harness"] == "scripted"
    assert ours["init"]["claude_code_version"] == f"{VERSION} (scripted)"
    assert ours["init"]["apiKeySource"] == "none"
    assert ours["text"]["message"]["model"] == "scripted"
    assert ours["result"]["harness"] == "scripted"
    assert ours["result"]["total_cost_usd"] == 0
    assert set(ours["result"]["modelUsage"]) == {"scripted"}
    usage = ours["result"]["usage"]
    assert [usage[key] for key in usage if key.endswith("_tokens")] == [0, 0, 0, 0]


def test_blocks_of_one_message_share_its_identifier_and_a_tool_result_ends_it(agent: Agent) -> None:
    run = agent.run([{"think": "a", "say": "b", **bash("true")}, {"say": "c"}])
    identifiers = [event["message"]["id"] for event in run.of("assistant")]
    assert identifiers[0] == identifiers[1] == identifiers[2] != identifiers[3]
    requests = [event["request_id"] for event in run.of("assistant")]
    assert requests == ["req_scripted000001"] * 3 + ["req_scripted000002"]


def test_every_event_carries_the_session_and_a_uuid_of_its_own(agent: Agent) -> None:
    run = agent.run([{"say": "a", **bash("true")}, {"say": "b"}])
    assert {event["session_id"] for event in run.events} == {SESSION}
    assert len({event["uuid"] for event in run.events}) == len(run.events)


def test_a_line_never_breaks_inside_and_never_holds_a_lone_surrogate() -> None:
    line = encoded({"text": "a\u2028b\u2029c\nd\x00e\ud800f"})
    assert line == b'{"text":"a\\u2028b\\u2029c\\nd\\u0000e?f"}'


def test_uuids_are_of_version_four() -> None:
    value = new_uuid()
    assert (len(value), value[14], value[19] in "89ab") == (36, "4", True)
