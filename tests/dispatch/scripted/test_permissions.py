"""The permission table of claude 2.1.332 (recorded), and our reading of rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from skilltrial.tasks.dispatch.scripted.permissions import Decision, Place, Rule, decide, rule, rules, split_rules
from tests.dispatch.scripted.agent import Agent, bash, tool

APPROVAL = "This command requires approval"
ASKING = ("default", "acceptEdits", "plan")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    for name in ("cwd", "config"):
        (tmp_path / name).mkdir()
    return Place(tmp_path / "cwd", tmp_path / "config")


def shell(command: str, mode: str, place: Place, allow: list[Rule] | None = None) -> Decision:
    return decide("Bash", {"command": command}, mode, allow or [], [], place)


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "dontAsk", "plan"])
@pytest.mark.parametrize(
    "command",
    [
        *("ls", "pwd", "cat a.txt", "git status", "sed -n 1p a.txt", "grep -c x a.txt", "find . -name '*.txt'"),
        *("echo $HOME", "which node", "true && ls", "ls 2>&1 | head -3", "cat a.txt > /dev/null"),
    ],
)
def test_reading_commands_run_in_every_mode(command: str, mode: str, place: Place) -> None:
    assert shell(command, mode, place) == Decision(True, reason_type="subcommandResults")


@pytest.mark.parametrize("mode", ASKING)
@pytest.mark.parametrize(
    "command",
    [
        *("node -e 1", "python3 -c 'print(41+1)'", "npm test", "curl -s http://127.0.0.1:9/", "./script.sh"),
        *(
            "ls $(pwd)",
            "find . -delete",
            "sed -i s/a/b/ a.txt",
            "git commit -m x",
            "FOO=1 ls",
            "for f in *; do ls; done",
        ),
        "cat <<X\nx\nX",
    ],
)
def test_other_commands_require_approval(command: str, mode: str, place: Place) -> None:
    decision = shell(command, mode, place)
    assert (decision.allowed, decision.message) == (False, APPROVAL)
    assert (decision.denied_type, decision.denied_reason) == ("other", APPROVAL)
    assert decision.meta() == {
        "non_execution_kind": "user-rejected",
        "permission_decision": {"decision": "reject", "source": "config"},
    }


@pytest.mark.parametrize("mode", ASKING)
def test_the_part_that_requires_approval_is_named(mode: str, place: Place) -> None:
    decision = shell("ls; node -e '1'", mode, place)
    text = "This Bash command contains multiple operations. The following part requires approval: node -e '1'"
    assert (decision.message, decision.denied_type) == (text, "subcommandResults")
    assert shell("npm ci && npm test", mode, place).message.endswith("parts require approval: npm ci, npm test")


@pytest.mark.parametrize(
    "command",
    ["mkdir newdir", "touch t.txt", "rm -f a.txt", "cp a.txt b.txt", "mv b.txt c.txt", "echo hi > made.txt", "ls >> x"],
)
def test_only_accept_edits_lets_the_shell_change_files(command: str, place: Place) -> None:
    assert shell(command, "acceptEdits", place).allowed
    for mode in ("default", "plan"):
        message = shell(command, mode, place).message
        assert "needs approval. The path is inside the working directories for this session" in message
    assert shell("mkdir newdir", "default", place).message == (
        f"mkdir in '{place.cwd}/newdir' needs approval. The path is inside the working directories for this session "
        f"('{place.cwd}'), and Claude Code asks before a shell command creates, changes or removes files there."
    )


@pytest.mark.parametrize("mode", ASKING)
def test_paths_outside_are_blocked(mode: str, place: Place) -> None:
    assert shell("ls /etc", mode, place).message == (
        "ls in '/etc' was blocked. For security, Claude Code may only list files in the allowed working "
        f"directories for this session: '{place.cwd}'."
    )
    assert shell("cat /etc/hostname", mode, place).message.startswith(
        "cat in '/etc/hostname' was blocked. For security, Claude Code may only concatenate files from the allowed"
    )
    for command in ("rm -rf ../other", "echo x > /tmp/x", "cp a.txt ~/b", "cat ../x", "grep -r x /etc", "cd / && ls"):
        assert not shell(command, mode, place).allowed, command


def test_shell_cannot_change_settings_or_git_hooks(place: Place) -> None:
    for target in (".claude/settings.json", ".git/hooks/pre-commit"):
        assert not shell(f"echo x > {target}", "acceptEdits", place).allowed


def test_do_not_ask_refuses_with_its_own_text(place: Place) -> None:
    decision = shell("node -e 1", "dontAsk", place)
    assert decision.message.startswith(
        "Permission to use Bash has been denied because Claude Code is running in don't ask"
    )
    assert decision.meta() == {
        "non_execution_kind": "permission-rule",
        "permission_decision": {"decision": "reject", "source": "config", "reason_type": "mode"},
    }
    assert not shell("ls /etc", "dontAsk", place).allowed
    assert not shell("mkdir d", "dontAsk", place).allowed


def test_bypass_runs_everything(place: Place) -> None:
    for command in ("node -e 1", "rm -rf /nowhere", "echo x > .claude/settings.json"):
        assert shell(command, "bypassPermissions", place) == Decision(True, reason_type="mode")


@pytest.mark.parametrize(
    ("tool_name", "path", "allowed_in"),
    [
        ("Write", "new.txt", {"acceptEdits", "bypassPermissions"}),
        ("Edit", "sub/a.txt", {"acceptEdits", "bypassPermissions"}),
        ("Write", "../out.txt", {"bypassPermissions"}),
        ("Read", "a.txt", {"default", "acceptEdits", "dontAsk", "plan", "bypassPermissions"}),
        ("Read", "../b.txt", {"plan", "bypassPermissions"}),
        ("Grep", "..", {"plan", "bypassPermissions"}),
        ("Write", ".claude/settings.local.json", {"bypassPermissions"}),
        ("Write", ".git/hooks/pre-commit", {"bypassPermissions"}),
        ("Write", "../config/settings.json", {"bypassPermissions"}),
    ],
)
def test_file_tools(tool_name: str, path: str, allowed_in: set[str], place: Place) -> None:
    key = "path" if tool_name == "Grep" else "file_path"
    modes = ("default", "acceptEdits", "dontAsk", "plan", "bypassPermissions")
    found = {mode for mode in modes if decide(tool_name, {key: path}, mode, [], [], place).allowed}
    assert found == allowed_in


def test_texts_of_refused_files(place: Place) -> None:
    def refused(tool_name: str, path: Path, mode: str) -> Decision:
        return decide(tool_name, {"file_path": str(path)}, mode, [], [], place)

    outside, inside = place.cwd.parent / "b.txt", place.cwd / "a.txt"
    granted = "but you haven't granted it yet."
    decision = refused("Read", outside, "acceptEdits")
    assert decision.message == f"Claude requested permissions to read from {outside}, {granted}"
    assert (decision.denied_type, decision.denied_reason) == (
        "workingDir",
        "Path is outside allowed working directories",
    )
    decision = refused("Write", inside, "default")
    assert decision.message == f"Claude requested permissions to write to {inside}, {granted}"
    assert decision.denied_type is None
    decision = refused("Edit", inside, "plan")
    assert (decision.message, decision.denied_type) == (f"Cannot write to {inside} while in plan mode.", "mode")
    hook = place.cwd / ".git" / "hooks" / "pre-commit"
    decision = refused("Write", hook, "acceptEdits")
    assert decision.message == f"Claude requested permissions to edit {hook} which is a sensitive file."
    assert decision.denied_type == "safetyCheck"


def test_a_link_out_of_the_working_directory_is_outside(place: Place) -> None:
    (place.cwd / "link").symlink_to(place.cwd.parent)
    assert not decide("Write", {"file_path": "link/x"}, "acceptEdits", [], [], place).allowed
    assert not shell("cat link/x", "acceptEdits", place).allowed


@pytest.mark.parametrize(
    ("pattern", "command", "allowed"),
    [
        ("Bash", "node -e 1", True),
        ("Bash(node *)", "node -e 1", True),
        ("Bash(node *)", "node", True),
        ("Bash(node *)", "nodejs -e 1", False),
        ("Bash(npm test:*)", "npm test --watch", True),
        ("Bash(npm test)", "npm test", True),
        ("Bash(npm test)", "npm test --watch", False),
        ("Bash(node *)", "ls && node -e 1", True),
        ("Bash(node *)", "node -e 1 && curl x", False),
        ("Bash(node *)", "node -e 1; rm -rf ../x", False),
        ("Bash(node *)", "node x > ../out", False),
        ("Bash(node *)", "node $(curl x)", False),
        ("Edit", "node -e 1", False),
    ],
)
def test_allow_rules_of_commands(pattern: str, command: str, allowed: bool, place: Place) -> None:
    assert shell(command, "dontAsk", place, rules([pattern])).allowed is allowed


def test_allow_rules_of_files(place: Place) -> None:
    def may(tool_name: str, path: str, text: str) -> bool:
        return decide(tool_name, {"file_path": path}, "dontAsk", rules([text]), [], place).allowed

    assert may("Write", "docs/a.md", "Write(docs/*)")
    assert not may("Write", "src/a.md", "Write(docs/*)")
    assert may("Write", "src/a.md", "Edit")
    assert may("Read", "/etc/hostname", "Read(//etc/*)")
    assert not may("Write", ".git/hooks/x", "Write")


def test_deny_rules_hold_in_every_mode(place: Place) -> None:
    for command in ("node -e 1", "ls && node -e 1"):
        decision = decide("Bash", {"command": command}, "bypassPermissions", [], rules(["Bash(node *)"]), place)
        assert decision.message == f"Permission to use Bash with command {command} has been denied."
        assert decision.meta()["permission_decision"]["reason_type"] == "subcommandResults"


def test_rules_are_split_outside_of_brackets() -> None:
    assert split_rules("Edit,Bash(git diff, *) Skill") == ["Edit", "Bash(git diff, *)", "Skill"]
    assert split_rules("") == []
    assert rule("Bash(npm *)") == Rule("Bash", "npm *")
    assert rule("Bash(*)") == rule("Bash") == Rule("Bash", None)
    assert rule("no rule!") is None


def test_a_denial_is_announced_answered_and_listed(agent: Agent) -> None:
    run = agent.run([bash("node -e 1"), {"say": "So be it."}], mode="acceptEdits")
    (denied,) = run.of("system", "permission_denied")
    (answer,) = run.tool_results
    call = answer["message"]["content"][0]["tool_use_id"]
    assert (denied["tool_name"], denied["tool_use_id"], denied["message"]) == ("Bash", call, APPROVAL)
    assert answer["tool_use_result"] == f"Error: {APPROVAL}"
    listed = {"tool_name": "Bash", "tool_use_id": call, "tool_input": {"command": "node -e 1"}}
    assert run.result["permission_denials"] == [listed]
    assert (run.code, run.result["subtype"], run.result["is_error"]) == (0, "success", False)


def test_allowed_and_disallowed_tools_come_from_the_command_line(agent: Agent) -> None:
    steps = [bash("ls"), tool("Write", file_path="a", content="")]
    run = agent.run(steps, "--allowedTools", "Write", "--disallowedTools", "Bash", mode="dontAsk")
    gone = "Error: No such tool available: Bash. Bash is disabled for this session, in subagents as well as here."
    assert run.answers[0] == f"<tool_use_error>{gone}</tool_use_error>"
    assert (agent.cwd / "a").is_file()
    assert "Bash" not in run.init["tools"]


def test_a_skill_that_asks_for_tools_needs_a_rule_and_then_grants_them(agent: Agent) -> None:
    agent.stage("tooly", "---\nname: tooly\nallowed-tools: Bash(python3 -c *)\n---\nBody\n")
    refused = agent.run([tool("Skill", skill="tooly")], mode="acceptEdits")
    advice = "The user can add the allow rule Skill(tooly) to .claude/settings.local.json to let it run without asking."
    assert refused.answers == [f"Execute skill: tooly. {advice}"]
    allowed = Agent(agent.root / "again")
    allowed.stage("tooly", "---\nname: tooly\nallowed-tools: Bash(python3 -c *)\n---\nBody\n")
    steps = [bash("python3 -c 1"), tool("Skill", skill="tooly"), bash("python3 -c 'print(7)'")]
    run = allowed.run(steps, "--allowedTools", "Skill(tooly)", mode="acceptEdits")
    assert run.answers == [APPROVAL, "Launching skill: tooly", "7"]


def test_manual_is_reported_as_default(agent: Agent) -> None:
    assert agent.run([{"say": "x"}], mode="manual").init["permissionMode"] == "default"
