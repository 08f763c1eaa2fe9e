"""Permission modes and rules, as claude 2.1.332 decides them without anybody to ask (measured).

`plan` is the plain plan mode (`useAutoModeDuringPlan: false`): the server-side check that the real one may
consult has no counterpart here. What was not measured is refused, which is the safe side.
"""

from __future__ import annotations

import fnmatch
import os
import re
from pathlib import Path
from typing import Final, NamedTuple

from .shell_reading import SimpleCommand, read
from .stream import Json

MODES: Final = ("acceptEdits", "bypassPermissions", "default", "dontAsk", "manual", "plan")

_READS: Final = frozenset({"Read", "Glob", "Grep"})
_WRITES: Final = frozenset({"Write", "Edit"})
_CHANGES_FILES: Final = frozenset({"mkdir", "touch", "rm", "rmdir", "mv", "cp"})
# fmt: off
_READS_FILES: Final = frozenset({
    "[", "basename", "cat", "cd", "cmp", "cut", "date", "df", "diff", "dirname", "du", "echo", "egrep", "false",
    "file", "find", "grep", "head", "hostname", "id", "ls", "nl", "printf", "pwd", "readlink", "realpath", "rg",
    "sed", "sort", "stat", "tail", "test", "tr", "tree", "true", "type", "uname", "uniq", "wc", "which", "whoami",
})
_READS_NO_FILES: Final = frozenset({
    "date", "echo", "false", "hostname", "id", "printf", "pwd", "true", "type", "uname", "which", "whoami",
})
_GIT_READS: Final = frozenset({
    "blame", "describe", "diff", "grep", "log", "ls-files", "rev-parse", "shortlog", "show", "status",
})
# fmt: on
_DANGEROUS_OPTIONS: Final = {
    "find": r"^-(exec|ok|delete|fprint|fls)",
    "sed": r"^(-[a-zA-Z]*i|--in-place|-f|--file)",
    "sort": r"^(-o|--output)",
    "git": r"^(--output|--ext-diff|-o|-c|-C|--git-dir|--exec)",
    "date": r"^(-s|--set)",
    "hostname": r"^[^-]",
    "rg": r"^--pre",
}
_VERBS: Final = {"ls": "list files in", "cat": "concatenate files from"}
_DONT_ASK: Final = (
    "Permission to use {tool} has been denied because Claude Code is running in don't ask mode. IMPORTANT: You *may* "
    "attempt to accomplish this action using other tools that might naturally be used to accomplish this goal, "
    "e.g. using head instead of cat. But you *should not* attempt to work around this denial in malicious ways, "
    "e.g. do not use your ability to run tests to execute non-test actions. You should only try to work around this "
    "restriction in reasonable ways that do not attempt to bypass the intent behind this denial. If you believe this "
    "capability is essential to complete the user's request, STOP and explain to the user what you were trying to do "
    "and why you need this permission. Let the user decide how to proceed."
)
_RULE: Final = re.compile(r"^([A-Za-z_][\w-]*)(?:\((.*)\))?$", re.DOTALL)


class Decision(NamedTuple):
    """Whether a call may run, and what the stream says about it."""

    allowed: bool
    message: str = ""
    source: str = "config"
    reason_type: str | None = None  # in `tool_result_meta`
    kind: str | None = None  # its `non_execution_kind`
    denied_type: str | None = None  # `decision_reason_type` of the event `permission_denied`
    denied_reason: str | None = None  # its `decision_reason`

    def meta(self) -> Json:
        """The entry of `tool_result_meta`, without the call's identifier."""
        reason = {"reason_type": self.reason_type} if self.reason_type else {}
        verdict = "accept" if self.allowed else "reject"
        kind = {"non_execution_kind": self.kind} if self.kind else {}
        return {**kind, "permission_decision": {"decision": verdict, "source": self.source, **reason}}


class Rule(NamedTuple):
    """A permission rule: a tool, and a pattern of what it is called with (null: anything)."""

    tool: str
    pattern: str | None


class Place(NamedTuple):
    """The folders that decide whether a path is inside, sensitive or outside."""

    cwd: Path
    config: Path


def rule(text: str) -> Rule | None:
    """A rule such as `Edit`, `Bash(npm test *)`; null when the text is none."""
    match = _RULE.match(text.strip())
    return Rule(match[1], None if match[2] in (None, "", "*") else match[2]) if match else None


def rules(texts: list[str]) -> list[Rule]:
    """The valid rules among texts."""
    return [found for text in texts if (found := rule(text)) is not None]


def split_rules(text: str) -> list[str]:
    """The entries of `--allowedTools`: separated by commas or blanks outside brackets."""
    return [entry for entry in re.findall(r"[^\s,(]+(?:\([^)]*\))?", text) if entry]


def decide(tool: str, given: Json, mode: str, allow: list[Rule], deny: list[Rule], place: Place) -> Decision:
    """Whether a valid call may run. `given` is its input."""
    if any(_applies(entry, tool, given, place, any_part=True) for entry in deny):
        return _denied_by_rule(tool, given)
    if mode == "bypassPermissions":
        return Decision(True, reason_type="mode")
    if tool == "Bash":
        decision = _bash(given["command"], mode, allow, place)
    elif tool in _READS:
        decision = _reading(tool, given, mode, allow, place)
    elif tool in _WRITES:
        decision = _writing(tool, given, mode, allow, place)
    else:
        return Decision(True)  # Skill, which checks its own front matter
    if mode == "dontAsk" and not decision.allowed:
        return _dont_ask(tool)
    return decision


def decide_skill(name: str, asks_for_tools: bool, mode: str, allow: list[Rule]) -> Decision:
    """Whether a skill may be launched: one whose front matter asks for tools needs a rule."""
    granted = any(entry.tool == "Skill" and entry.pattern in (None, name) for entry in allow)
    if not asks_for_tools or granted or mode == "bypassPermissions":
        return Decision(True)
    if mode == "dontAsk":
        return _dont_ask("Skill")
    advice = (
        f"The user can add the allow rule Skill({name}) to .claude/settings.local.json to let it run without asking."
    )
    return _refused(f"Execute skill: {name}. {advice}")


def inside(path: Path, folder: Path) -> bool:
    """Whether a path, symbolic links followed, lies in a folder or is it."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _refused(message: str, denied_type: str | None = None, denied_reason: str | None = None) -> Decision:
    return Decision(False, message, kind="user-rejected", denied_type=denied_type, denied_reason=denied_reason)


def _dont_ask(tool: str) -> Decision:
    text = _DONT_ASK.format(tool=tool)
    return Decision(False, text, reason_type="mode", kind="permission-rule", denied_type="mode")


def _denied_by_rule(tool: str, given: Json) -> Decision:
    what = f"{tool} with command {given['command']}" if tool == "Bash" else tool
    reason = "subcommandResults" if tool == "Bash" else "rule"
    text = f"Permission to use {what} has been denied."
    return Decision(False, text, reason_type=reason, kind="permission-rule", denied_type=reason)


def _reading(tool: str, given: Json, mode: str, allow: list[Rule], place: Place) -> Decision:
    path = place.cwd / _path_of(given)
    if inside(path, place.cwd) or inside(path, place.config / "projects") or mode == "plan":
        return Decision(True, reason_type="mode")
    if any(_applies(entry, tool, given, place) for entry in allow):
        return Decision(True, reason_type="rule")
    return _outside("read from", path)


def _writing(tool: str, given: Json, mode: str, allow: list[Rule], place: Place) -> Decision:
    path = place.cwd / given["file_path"]
    not_granted = f"Claude requested permissions to write to {path}, but you haven't granted it yet."
    if mode == "plan":
        return _refused(f"Cannot write to {path} while in plan mode.", "mode")
    if _sensitive_folder(path, place):
        text = f"Claude requested permissions to edit {path} which is a sensitive file."
        return _refused(text, "safetyCheck", text)
    if _settings_file(path, place):
        return _refused(not_granted, "safetyCheck", not_granted)
    if any(_applies(entry, tool, given, place) for entry in allow):
        return Decision(True, reason_type="rule")
    if not inside(path, place.cwd):
        return _outside("write to", path)
    return Decision(True, reason_type="mode") if mode == "acceptEdits" else _refused(not_granted)


def _outside(verb: str, path: Path) -> Decision:
    text = f"Claude requested permissions to {verb} {path}, but you haven't granted it yet."
    return _refused(text, "workingDir", "Path is outside allowed working directories")


def _sensitive_folder(path: Path, place: Place) -> bool:
    return inside(path, place.cwd / ".git")


def _settings_file(path: Path, place: Place) -> bool:
    settings = [place.cwd / ".claude" / name for name in ("settings.json", "settings.local.json")]
    real = os.path.realpath(path)
    return any(real == os.path.realpath(known) for known in [*settings, place.config / "settings.json"])


def _bash(command: str, mode: str, allow: list[Rule], place: Place) -> Decision:
    approval = "This command requires approval"
    if any(_applies(entry, "Bash", {"command": command}, place) for entry in allow):
        return Decision(True, reason_type="subcommandResults")
    parts = read(command)
    if parts is None:
        return _refused(approval, "other", approval)
    asking = []
    for part in parts:
        if not part.writes_to and any(_applies(entry, "Bash", {"command": part.text}, place) for entry in allow):
            continue
        verdict = _part(part, mode, place, moves=any(other.words[:1] == ("cd",) for other in parts))
        if verdict is None:
            asking.append(part.text)
        elif verdict:
            return _refused(verdict)
    if not asking:
        return Decision(True, reason_type="subcommandResults")
    if len(parts) == 1:
        return _refused(approval, "other", approval)
    noun = "part requires" if len(asking) == 1 else "parts require"
    text = f"This Bash command contains multiple operations. The following {noun} approval: {', '.join(asking)}"
    return _refused(text, "subcommandResults")


def _part(part: SimpleCommand, mode: str, place: Place, moves: bool) -> str | None:
    """Empty: may run. A text: refused with it. Null: needs approval."""
    name = part.words[0] if part.words else ""
    changes = name in _CHANGES_FILES
    if part.words and not changes and not _only_reads(part):
        return None
    if (changes or part.writes_to) and (part.variable or moves):
        return None
    paths = [] if name in _READS_NO_FILES else [word for word in part.words[1:] if not word.startswith("-")]
    if part.variable and paths:
        return None
    if name in ("sed", "grep", "egrep", "rg", "tr", "find", "git", "test", "["):
        paths = [word for word in paths if word.startswith(("/", "..", "~"))]  # the others are patterns, or relative
    writes = [target for target in part.writes_to if target != "/dev/null"]
    for word in writes:
        if verdict := _change("Output redirection to", place.cwd / word, mode, place):
            return verdict
    for word in (*paths, *part.reads_from):
        path = place.cwd / Path(word).expanduser()
        if not changes and not inside(path, place.cwd) and word != "/dev/null":
            return _blocked(f"{name} in", path, _VERBS.get(name, "read files from"), place)
        if changes and (verdict := _change(f"{name} in", path, mode, place)):
            return verdict
    return ""


def _only_reads(part: SimpleCommand) -> bool:
    name, *arguments = part.words
    if name not in _READS_FILES and name != "git":
        return False
    if name == "git" and (not arguments or arguments[0] not in _GIT_READS):
        return False
    dangerous = _DANGEROUS_OPTIONS.get(name)
    return dangerous is None or not any(re.match(dangerous, argument) for argument in arguments)


def _change(what: str, path: Path, mode: str, place: Place) -> str:
    """Why a change of a path by a shell command is refused; empty when it is not."""
    if not inside(path, place.cwd):
        return _blocked(what, path, "write to files in", place)
    if _sensitive_folder(path, place) or _settings_file(path, place):
        return f"{what} '{path}' was blocked. Claude requested permissions to edit {path} which is a sensitive file."
    if mode == "acceptEdits":
        return ""
    return (
        f"{what} '{path}' needs approval. The path is inside the working directories for this session "
        f"('{place.cwd}'), and Claude Code asks before a shell command creates, changes or removes files there."
    )


def _blocked(what: str, path: Path, verb: str, place: Place) -> str:
    return (
        f"{what} '{path}' was blocked. For security, Claude Code may only {verb} the allowed working "
        f"directories for this session: '{place.cwd}'."
    )


def _applies(entry: Rule, tool: str, given: Json, place: Place, any_part: bool = False) -> bool:
    """Whether a rule speaks of a call; `any_part` asks whether it speaks of any part of a shell command."""
    if entry.tool != tool and not (entry.tool == "Edit" and tool in _WRITES):
        return False
    if entry.pattern is None:
        return True
    if tool == "Bash":
        parts = [part.text for part in read(given["command"]) or ()] if any_part else []
        return any(_command_matches(entry.pattern, text) for text in [given["command"].strip(), *parts])
    path = os.path.realpath(place.cwd / _path_of(given))
    pattern = entry.pattern.removeprefix("//") if entry.pattern.startswith("//") else entry.pattern.removeprefix("./")
    base = "/" if entry.pattern.startswith("//") else os.path.realpath(place.cwd)
    return fnmatch.fnmatchcase(path, os.path.join(base, pattern))  # noqa: PTH118 -- a pattern, not a path


def _path_of(given: Json) -> str:
    path: str = given.get("file_path") or given.get("path") or "."
    return path


def _command_matches(pattern: str, command: str) -> bool:
    pattern = pattern.removesuffix(":*") + " *" if pattern.endswith(":*") else pattern
    compound = read(command)
    if compound is None or len(compound) != 1 or compound[0].writes_to:
        return command == pattern
    if pattern.endswith(" *") and command == pattern[:-2]:
        return True
    return fnmatch.fnmatchcase(command, pattern.replace("[", "[[]").replace("?", "[?]"))
