"""What the real CLI does with the argv and the environment of the `claude-code` descriptor, against a scripted API."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import JsonValue

from skilltrial.descriptors.loading import descriptor
from skilltrial.tasks.preflight.loopback.scenarios import ApiError, Conversation, Script, Step, ToolUse
from skilltrial.tasks.preflight.loopback.server import LoopbackServer
from tests.real_cli.agent import KEY, Agent
from tests.real_cli.lane import lane

pytestmark = pytest.mark.real_cli

HARNESS = descriptor("claude-code")
DONE = Step(text="Done.")


def bash(command: str) -> ToolUse:
    return ToolUse(name="Bash", input={"command": command, "description": "Run it"})


def script(*steps: Step, repeat_last: bool = False, models: tuple[str, ...] = ()) -> Script:
    conversation = Conversation(name="work", prompt="work", steps=steps, repeat_last=repeat_last)
    return Script(conversations=(conversation,), models=models)


def prompts(body: dict[str, Any]) -> list[str]:
    """The texts of a request's first message, which holds the prompt."""
    content = body["messages"][0]["content"]
    return [content] if isinstance(content, str) else [block["text"] for block in content]


def test_version_is_read_by_the_descriptors_pattern(claude: Path, tmp_path: Path) -> None:
    argv = [part.replace("{binary}", str(claude)) for part in HARNESS.version.argv]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "CLAUDE_CONFIG_DIR": str(tmp_path)}
    told = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True).stdout
    match = re.search(HARNESS.version.pattern, told)
    assert match is not None
    assert lane().version.startswith(f"{match[1]} ")


@pytest.mark.parametrize("prompt", ["Please work.", '--help me work\n\nwith a {slot}, a "quote" and an ümlaut: $HOME'])
def test_prompt_comes_over_stdin_byte_for_byte(agent: Agent, prompt: str) -> None:
    bodies: list[dict[str, Any]] = []
    with LoopbackServer(script(DONE), bodies.append) as server:
        run = agent.run(server, prompt)
    assert (run.exit_code, run.stderr) == (0, "")
    assert (run.result["result"], run.result["is_error"]) == ("Done.", False)
    assert run.result["terminal_reason"] == "completed"
    assert run.init["session_id"] == run.session_id
    assert [prompts(body)[-1] for body in bodies] == [prompt]
    assert [entry.key_sent for entry in server.questions] == [True]
    assert KEY not in run.stdout.decode()


def test_staged_skill_is_on_the_roster_and_nothing_else_is(agent: Agent) -> None:
    agent.stage_skill("tidy-notes", "Tidies notes.")
    with LoopbackServer(script(DONE)) as server:
        run = agent.run(server, "Please work.")
    # `doctor` is built into the CLI and cannot be turned off; the model is not told of it
    assert sorted(run.init["skills"]) == ["doctor", "tidy-notes"]
    assert server.questions[0].skills == ("tidy-notes",)
    assert (run.init["plugins"], run.init["mcp_servers"]) == ([], [])


def test_roster_without_a_staged_skill_is_bare(agent: Agent) -> None:
    with LoopbackServer(script(DONE)) as server:
        run = agent.run(server, "Please work.")
    assert run.init["skills"] == ["doctor"]
    assert server.questions[0].skills == ()


def test_skill_call_is_answered_with_the_staged_body(agent: Agent) -> None:
    agent.stage_skill("tidy-notes", "Tidies notes.", body="Sort every heading.")
    call = Step(tools=(ToolUse(name=str(HARNESS.skills.tool), input={str(HARNESS.skills.argument): "tidy-notes"}),))
    with LoopbackServer(script(call, DONE)) as server:
        run = agent.run(server, "Please work.")
    (text, told), folder = run.tool_results[0], agent.project / ".claude/skills/tidy-notes"
    assert (text, told["is_error"]) == ("Launching skill: tidy-notes", None)
    synthetic = [record for record in run.of("user") if record.get("isSynthetic")]
    assert [record["message"]["content"][0]["text"] for record in synthetic] == [
        f"Base directory for this skill: {folder}\n\nSort every heading.\n"
    ]


def plant(folder: Path, word: str) -> None:
    """A user's configuration, each piece of it with a word that must not show up anywhere."""
    skill = folder / ".claude/skills" / f"{word}-skill"
    for parent in (skill, folder / ".claude/agents", folder / ".claude/commands"):
        parent.mkdir(parents=True)
    (skill / "SKILL.md").write_text(f"---\nname: {word}-skill\ndescription: {word}\n---\n{word}\n")
    (folder / ".claude/agents/helper.md").write_text(f"---\nname: {word}-agent\ndescription: {word}\n---\n{word}\n")
    (folder / ".claude/commands" / f"{word}-command.md").write_text(word)
    (folder / ".claude/settings.json").write_text(orjson.dumps({"env": {"PLANTED": word}, "model": word}).decode())
    for name in ("CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"):
        (folder / name).write_text(word)
    (folder / ".mcp.json").write_text(orjson.dumps({"mcpServers": {word: {"command": "true"}}}).decode())
    (folder / ".gitconfig").write_text(f"[user]\n\tname = {word}\n\temail = {word}@example.org\n")


def test_nothing_of_the_operator_is_visible(
    agent: Agent, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path_factory.mktemp("operator")
    plant(home, "operatorcanary")
    plant(agent.workspace.root, "ancestorcanary")  # the folder above the agent's project
    monkeypatch.setenv("HOME", str(home))
    for name in ("CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "OPERATOR_SECRET", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.setenv(name, f"{home}/operatorcanary")
    commands = ("env | sort", "git config --list", "git log -1 --format=%an || true")
    bodies: list[dict[str, Any]] = []
    with LoopbackServer(script(*(Step(tools=(bash(c),)) for c in commands), DONE), bodies.append) as server:
        run = agent.run(server, "Please work.", allowed_tools="Bash")
    assert run.exit_code == 0
    assert [told["is_error"] for _, told in run.tool_results] == [False, False, False]
    seen = run.stdout.decode() + run.stderr + orjson.dumps(bodies).decode()
    assert f"HOME={agent.workspace.home}" in run.tool_results[0][0]
    assert [word for word in ("operatorcanary", "ancestorcanary", str(home)) if word in seen] == []
    assert [record["skills"] for record in run.of("system", "init")] == [["doctor"]]


def test_bash_call_runs_in_the_project(agent: Agent) -> None:
    (agent.project / "a.txt").write_text("alpha\n")
    with LoopbackServer(script(Step(tools=(bash("pwd && cat a.txt"),)), DONE)) as server:
        run = agent.run(server, "Please work.")
    ((text, told),) = run.tool_results
    assert text == f"{agent.project}\nalpha"
    assert (told["is_error"], told["permission_decision"]["decision"]) == (False, "accept")
    assert run.result["permission_denials"] == []


def test_edit_lands_on_disk(agent: Agent) -> None:
    (agent.project / "a.txt").write_text("alpha\nbeta\n")
    edit = {"file_path": "{cwd}/a.txt", "old_string": "beta", "new_string": "gamma"}
    write = {"file_path": "{cwd}/new/b.txt", "content": "made\n"}
    calls = (ToolUse(name="Edit", input=edit), ToolUse(name="Write", input=write))
    with LoopbackServer(script(Step(tools=calls), DONE)) as server:
        run = agent.run(server, "Please work.")
    assert run.exit_code == 0
    assert (agent.project / "a.txt").read_text() == "alpha\ngamma\n"
    assert (agent.project / "new/b.txt").read_text() == "made\n"


@pytest.mark.parametrize("command", ["python3 -c 'print(1)'", "node -e '1'"])
def test_interpreter_is_denied_when_only_edits_are_accepted(agent: Agent, command: str) -> None:
    with LoopbackServer(script(Step(tools=(bash(command),)), DONE)) as server:
        run = agent.run(server, "Please work.")
    ((text, told),) = run.tool_results
    assert (text, told["is_error"]) == ("This command requires approval", True)
    assert told["permission_decision"] == {"decision": "reject", "source": "config"}
    (denied,) = run.of("system", "permission_denied")
    assert (denied["tool_name"], denied["tool_use_id"]) == ("Bash", told["id"])
    assert [(d["tool_name"], d["tool_use_id"]) for d in run.result["permission_denials"]] == [("Bash", told["id"])]
    assert (run.exit_code, run.result["is_error"]) == (0, False)


def test_allowed_tools_let_a_command_run_that_would_be_denied(agent: Agent) -> None:
    allowed = "Bash(python3 *),Bash(node *)"
    with LoopbackServer(script(Step(tools=(bash("python3 -c 'print(40 + 2)'"),)), DONE)) as server:
        run = agent.run(server, "Please work.", allowed_tools=allowed)
    assert [text for text, _ in run.tool_results] == ["42"]
    assert run.of("system", "permission_denied") == []


def test_every_flag_of_the_descriptor_is_accepted_at_once(agent: Agent) -> None:
    model = "claude-sonnet-4-5"
    with LoopbackServer(script(DONE)) as server:
        run = agent.run(server, "Please work.", model=model, allowed_tools="Bash", max_turns="5", budget_usd="1.5")
    assert (run.exit_code, run.stderr) == (0, "")
    assert (run.init["model"], server.questions[0].model) == (model, model)
    groups = set(HARNESS.dispatch.groups)
    assert groups == {"model_args", "permission_args", "allowed_tools_args", "turns_args", "budget_args"}


def test_every_disallowed_tool_exists_and_is_gone(agent: Agent) -> None:
    argv = HARNESS.dispatch.argv
    flag = argv.index("--disallowedTools")
    named = set(argv[flag + 1].split(","))
    open_dispatch = HARNESS.dispatch.model_copy(update={"argv": (*argv[:flag], *argv[flag + 2 :])})
    fixed = {k: v for k, v in HARNESS.environment.set.items() if k != "CLAUDE_CODE_DISABLE_CRON"}
    open_environment = HARNESS.environment.model_copy(update={"set": fixed})
    unrestricted = HARNESS.model_copy(update={"dispatch": open_dispatch, "environment": open_environment})
    with LoopbackServer(script(DONE)) as server:
        closed = set(agent.run(server, "Please work.").init["tools"])
        agent.harness = unrestricted
        opened = set(agent.run(server, "Please work.").init["tools"])
    assert opened - closed == named
    assert {"Bash", "Edit", "Read", "Skill", "Task", "Write"} <= closed


@pytest.mark.parametrize("mode", HARNESS.permissions.modes)
def test_every_permission_mode_is_accepted(agent: Agent, mode: str) -> None:
    override = {str(HARNESS.permissions.root_override): "1"}
    with LoopbackServer(script(DONE)) as server:
        run = agent.run(server, "Please work.", permission_mode=mode, set_environment=override)
    assert (run.exit_code, run.stderr) == (0, "")
    assert run.init["permissionMode"] == {"manual": "default"}.get(mode, mode)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, whom the CLI refuses")
@pytest.mark.parametrize("mode", HARNESS.permissions.modes)
def test_root_is_refused_exactly_the_modes_that_the_descriptor_names(agent: Agent, mode: str) -> None:
    with LoopbackServer(script(DONE)) as server:
        run = agent.run(server, "Please work.", permission_mode=mode)
    refused = mode in HARNESS.permissions.refused_as_root
    assert (run.exit_code, run.stdout == b"") == ((1, True) if refused else (0, False))
    assert ("cannot be used with root/sudo" in run.stderr) == refused


def test_inline_settings_outrank_a_projects_own(agent: Agent) -> None:
    (agent.project / ".claude").mkdir()
    own = {"disableAllHooks": True, "disableBundledSkills": False}
    (agent.project / ".claude/settings.json").write_text(orjson.dumps(own).decode())
    hook: JsonValue = {"type": "command", "command": "echo not today >&2; exit 2"}
    hooks: JsonValue = {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}
    with LoopbackServer(script(Step(tools=(bash("ls"),)), DONE)) as server:
        run = agent.run(server, "Please work.", settings={"hooks": hooks})
    ((text, told),) = run.tool_results
    assert "not today" in text
    assert told["permission_decision"]["source"] == "hook"
    assert (run.init["skills"], run.init["plugins"]) == (["doctor"], [])


def test_turns_are_limited(agent: Agent) -> None:
    with LoopbackServer(script(Step(tools=(bash("echo again"),)), repeat_last=True)) as server:
        run = agent.run(server, "Please work.", max_turns="2")
    assert (run.exit_code, run.result["subtype"], run.result["terminal_reason"]) == (1, "error_max_turns", "max_turns")
    assert len(server.questions) == 2


def test_overload_that_passes_is_waited_out(agent: Agent) -> None:
    passing = DONE.model_copy(update={"error": ApiError(status=529, message="Overloaded", times=2)})
    with LoopbackServer(script(passing)) as server:
        run = agent.run(server, "Please work.")
    assert (run.exit_code, run.result["result"]) == (0, "Done.")
    assert [entry.status for entry in server.questions] == [529, 529, 200]
    assert [retry["error_status"] for retry in run.of("system", "api_retry")] == [529, 529]


@pytest.mark.parametrize(("sandboxed", "tries"), [("", 3), ("1", 4)])
def test_lasting_overload_ends_as_an_api_error(agent: Agent, sandboxed: str, tries: int) -> None:
    """Of an overload the CLI retries twice, on a declared sandbox as often as CLAUDE_CODE_MAX_RETRIES says."""
    with LoopbackServer(script(Step(error=ApiError(status=529, message="Overloaded")))) as server:
        run = agent.run(server, "Please work.", set_environment={"IS_SANDBOX": sandboxed})
    assert [entry.status for entry in server.questions] == [529] * tries
    assert (run.exit_code, run.result["subtype"], run.result["is_error"]) == (1, "success", True)
    assert (run.result["terminal_reason"], run.result["api_error_status"]) == ("api_error", 529)


def test_broken_stream_is_asked_again_without_streaming(agent: Agent) -> None:
    with LoopbackServer(script(DONE.model_copy(update={"disconnect_after": 3}))) as server:
        run = agent.run(server, "Please work.")
    limit = int(HARNESS.environment.set["CLAUDE_CODE_MAX_RETRIES"])
    assert [entry.stream for entry in server.questions][: limit + 2] == [True] * (1 + limit) + [False]
    assert (run.exit_code, run.result["is_error"], run.result["terminal_reason"]) == (1, True, "api_error")
