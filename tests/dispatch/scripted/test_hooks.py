"""PreToolUse hooks answer as those of claude 2.1.332 do (recorded): they fail open unless told otherwise."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from skilltrial.tasks.dispatch.scripted.settings import Settings
from tests.dispatch.scripted.agent import Agent, Json, Run, bash, tool

DENY = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}}


def answering(decision: str, reason: str = "policy 42", **more: object) -> Json:
    return {"hookSpecificOutput": {"permissionDecision": decision, "permissionDecisionReason": reason, **more}}


def settings(*hooks: Json, matcher: str = "*", **more: object) -> str:
    return json.dumps({"hooks": {"PreToolUse": [{"matcher": matcher, "hooks": list(hooks)}]}, **more})


def saying(agent: Agent, answer: object, name: str = "hook.json", **more: object) -> Json:
    """A command hook that prints an answer."""
    path = agent.root / name
    path.write_text(answer if isinstance(answer, str) else json.dumps(answer), "utf-8")
    return {"type": "command", "command": f"cat {path}", **more}


def command(text: str, **more: object) -> Json:
    return {"type": "command", "command": text, **more}


def run(agent: Agent, *hooks: Json, mode: str = "bypassPermissions", matcher: str = "*") -> Run:
    """One call of Bash that makes a file, under hooks."""
    steps = [bash("touch made; echo ran"), {"say": "Done."}]
    return agent.run(steps, "--settings", settings(*hooks, matcher=matcher), "--include-hook-events", mode=mode)


def responses(found: Run) -> list[tuple[object, object]]:
    return [(e.get("exit_code"), e["outcome"]) for e in found.of("system", "hook_response")]


def test_a_denial_blocks_the_call_and_is_listed_but_not_announced(agent: Agent) -> None:
    found = run(agent, saying(agent, answering("deny")))
    assert found.answers == ["PreToolUse:Bash hook error: policy 42"]
    assert not (agent.cwd / "made").exists()
    assert [denial["tool_name"] for denial in found.result["permission_denials"]] == ["Bash"]
    assert found.of("system", "permission_denied") == []
    assert responses(found) == [(0, "success")]


def test_exit_code_two_blocks_with_what_standard_error_says(agent: Agent) -> None:
    found = run(agent, command("echo blocked >&2; exit 2"))
    assert found.answers == ["PreToolUse:Bash hook error: [echo blocked >&2; exit 2]: blocked\n"]
    assert responses(found) == [(2, "error")]


def test_the_old_form_of_a_denial_blocks_as_well(agent: Agent) -> None:
    found = run(agent, saying(agent, {"decision": "block", "reason": "old"}))
    assert found.answers == ["PreToolUse:Bash hook error: old"]


def test_asking_is_a_refusal_that_is_announced(agent: Agent) -> None:
    found = run(agent, saying(agent, answering("ask", "please ask")))
    assert found.answers == ["please ask"]
    (event,) = found.of("system", "permission_denied")
    assert (event["decision_reason_type"], event["decision_reason"]) == ("hook", "please ask")


def test_allowing_overrules_the_mode(agent: Agent) -> None:
    found = run(agent, saying(agent, answering("allow")), mode="dontAsk")
    assert found.answers == ["ran"]
    decision = found.tool_results[0]["tool_result_meta"][0]["permission_decision"]
    assert decision == {"decision": "accept", "source": "hook", "reason_type": "hook"}


def test_an_updated_input_is_what_runs(agent: Agent) -> None:
    found = run(agent, saying(agent, answering("allow", updatedInput={"command": "echo rewritten"})))
    assert found.answers == ["rewritten"]
    assert found.of("assistant")[0]["message"]["content"][0]["input"]["command"] == "touch made; echo ran"


def test_not_to_continue_ends_the_session_after_the_call(agent: Agent) -> None:
    found = run(agent, saying(agent, {"continue": False}))
    assert found.answers == ["ran"]
    result = found.result
    assert (result["subtype"], result["terminal_reason"], result["result"]) == ("success", "hook_stopped", "")
    assert found.code == 0


def test_deferring_ends_the_session_before_the_call(agent: Agent) -> None:
    found = run(agent, saying(agent, answering("defer")))
    assert found.answers == []
    result = found.result
    assert (result["terminal_reason"], result["deferred_tool_use"]["name"]) == ("tool_deferred", "Bash")
    assert not (agent.cwd / "made").exists()


@pytest.mark.parametrize(
    ("hook", "response", "warned"),
    [
        (command("exit 1"), (1, "error"), False),
        (command("/nowhere/hook"), (127, "error"), True),
        (command("kill -SEGV $$"), (-11, "error"), True),
        (command("exec sleep 60", timeout=0.2), (1, "cancelled"), True),
        (command('echo \'{"hookSpecificOutput":{"permissionDecision":"bogus"}}\''), (0, "error"), True),
        (command('echo log line; echo \'{"decision":"block"}\''), (0, "success"), False),
        (command("echo '{\"decision\":'"), (0, "success"), False),
        ({"type": "mcp_tool", "tool": "x"}, (None, "error"), True),
        ({"type": "http", "url": "http://127.0.0.1:9/"}, (None, "error"), True),
        ({"type": "http", "url": "http://192.0.2.1/"}, (None, "error"), True),
    ],
)
def test_a_hook_without_a_usable_answer_lets_the_call_run(
    agent: Agent, hook: Json, response: tuple[object, object], warned: bool
) -> None:
    found = run(agent, hook)
    assert found.answers == ["ran"]
    assert responses(found) == [response]
    assert bool(found.of("system", "informational")) is warned


@pytest.mark.parametrize(
    ("hook", "text"),
    [
        (command("echo crashed >&2; exit 1"), 'failed; blocking because onFailure is "block"\ncrashed'),
        (command("exec sleep 60", timeout=0.2), 'timed out; blocking because onFailure is "block"'),
        (
            {"type": "http", "url": "http://127.0.0.1:9/deny"},
            'failed; blocking because onFailure is "block"\nconnect ECONNREFUSED 127.0.0.1:9',
        ),
    ],
)
def test_a_failing_hook_blocks_when_told_to(agent: Agent, hook: Json, text: str) -> None:
    found = run(agent, {**hook, "onFailure": "block"})
    target = hook.get("command", hook.get("url"))
    assert found.answers == [f"PreToolUse:Bash hook error: [{target}]: {text}"]
    assert len(found.result["permission_denials"]) == 1


def test_garbled_output_with_exit_code_zero_runs_even_when_failures_block(agent: Agent) -> None:
    assert run(agent, command("echo noise", onFailure="block")).answers == ["ran"]


def test_the_warning_comes_once_for_a_session(agent: Agent) -> None:
    found = agent.run([bash("true"), bash("true")], "--settings", settings(command("/nowhere/hook")))
    (event,) = found.of("system", "informational")
    assert event["hook_no_verdict"]["timed_out"] is False
    assert found.of("system", "hook_started") == []


def test_the_strictest_of_several_hooks_counts(agent: Agent) -> None:
    hooks = [saying(agent, answering(name, name), f"{name}.json") for name in ("allow", "deny", "ask")]
    assert run(agent, *hooks).answers == ["PreToolUse:Bash hook error: deny"]


def test_hooks_are_handed_the_call(agent: Agent) -> None:
    run(agent, command("cat > asked.json"))
    asked = json.loads((agent.cwd / "asked.json").read_text("utf-8"))
    assert asked["hook_event_name"] == "PreToolUse"
    assert (asked["tool_name"], asked["tool_input"]) == ("Bash", {"command": "touch made; echo ran"})
    assert asked["cwd"] == str(agent.cwd)
    assert asked["permission_mode"] == "bypassPermissions"
    expected = {"session_id", "transcript_path", "prompt_id", "effort", "tool_use_id"}
    assert expected <= set(asked)


def test_invalid_calls_never_reach_a_hook(agent: Agent) -> None:
    steps = [tool("NoSuchTool"), tool("Edit", file_path="gone", old_string="a", new_string="b")]
    agent.run(steps, "--settings", settings(command("touch seen")))
    assert not (agent.cwd / "seen").exists()


@pytest.mark.parametrize(
    ("matcher", "blocked"),
    [("", True), ("Bash", True), ("Edit|Bash", True), ("Ba.*", True), ("Write", False), ("Bas", False), ("(", False)],
)
def test_matchers(agent: Agent, matcher: str, blocked: bool) -> None:
    found = run(agent, command("exit 2"), matcher=matcher)
    assert (found.answers != ["ran"]) is blocked


def test_an_agent_can_switch_off_a_hook_of_a_file_but_not_one_of_the_command_line(agent: Agent) -> None:
    local = agent.cwd / ".claude" / "settings.local.json"
    local.parent.mkdir()
    local.write_text(settings(command("exit 2"), matcher="Bash"), "utf-8")
    off = json.dumps({"disableAllHooks": True})
    steps = [bash("echo a"), tool("Write", file_path=str(local), content=off), bash("echo b")]
    found = agent.run(steps)
    assert found.answers[0].startswith("PreToolUse:Bash hook error")
    assert found.answers[2] == "b"
    held = settings(command("exit 2"), matcher="Bash", disableAllHooks=False)
    assert (
        agent_again(agent).run([bash("echo b")], "--settings", held).answers[0].startswith("PreToolUse:Bash hook error")
    )
    loose = settings(command("exit 2"), matcher="Bash")
    assert agent_again(agent, "third").run([bash("echo b")], "--settings", loose).answers == ["b"]


def agent_again(agent: Agent, name: str = "second") -> Agent:
    """Another agent with a copy of the project's settings."""
    other = Agent(agent.root / name)
    (other.cwd / ".claude").mkdir()
    text = (agent.cwd / ".claude" / "settings.local.json").read_text("utf-8")
    (other.cwd / ".claude" / "settings.local.json").write_text(text, "utf-8")
    return other


def test_one_invalid_entry_discards_every_hook_of_its_file(tmp_path: Path) -> None:
    good = {"matcher": "*", "hooks": [{"type": "command", "command": "x"}]}
    bad = {"matcher": "*", "hooks": [{"type": "unheard of"}]}
    given = {"hooks": {"PreToolUse": [good], "Stop": [bad]}}
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [good]}}), "utf-8")
    found = Settings(tmp_path, tmp_path / "config", given).hooks("PreToolUse", "Bash")
    assert [hook.target for hook in found] == ["x"]
    assert Settings(tmp_path / "else", tmp_path, given).hooks("PreToolUse", "Bash") == []


def test_settings_that_are_no_json_are_refused(agent: Agent) -> None:
    found = agent.run([], "--settings", "{nope")
    assert (found.code, found.stdout, found.stderr) == (1, b"", "Error: Invalid JSON provided to --settings\n")


@contextmanager
def hook_server(status: int, body: str) -> Iterator[tuple[str, list[Json]]]:
    """A loopback server that gives one answer to everything; its URL, and what it was asked."""
    asked: list[Json] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            asked.append({"path": self.path, "headers": dict(self.headers), "body": json.loads(data)})
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the name is the library's
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_an_http_hook_decides_and_sees_the_call(agent: Agent) -> None:
    with hook_server(200, json.dumps(answering("deny"))) as (url, asked):
        headers = {"X-Key": "$KEY", "X-Other": "${HOME}"}
        agent.environment["KEY"] = "abc"
        found = run(agent, {"type": "http", "url": f"{url}/guard?a=1", "headers": headers, "allowedEnvVars": ["KEY"]})
    assert found.answers == ["PreToolUse:Bash hook error: policy 42"]
    assert responses(found) == [(200, "success")]
    (request,) = asked
    assert request["path"] == "/guard?a=1"
    assert (request["headers"]["X-Key"], request["headers"]["X-Other"]) == ("abc", "")
    assert request["body"]["tool_name"] == "Bash"


@pytest.mark.parametrize(
    ("status", "body", "response", "output"),
    [
        (403, "no", (403, "error"), "HTTP 403 from {url}"),
        (500, "{}", (500, "error"), "HTTP 500 from {url}"),
        (200, "just text", (200, "error"), "just text"),
        (200, "", (200, "success"), ""),
        (200, "{}", (200, "success"), "{}"),
    ],
)
def test_an_http_hook_without_an_opinion_lets_the_call_run(
    agent: Agent, status: int, body: str, response: tuple[int, str], output: str
) -> None:
    with hook_server(status, body) as (url, _):
        found = run(agent, {"type": "http", "url": url})
    assert found.answers == ["ran"]
    assert responses(found) == [response]
    assert found.of("system", "hook_response")[0]["output"] == output.replace("{url}", url)
