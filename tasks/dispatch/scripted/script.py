"""The script: what the agent says and does, for which prompt.

A JSON object. Every text may hold `{cwd}`, `{home}`, `{tmp}`, `{session_id}` and `{repetition}`:

    {"conversations": [{"match": "<regular expression, searched in the prompt>", "steps": [STEP, …]}, …]}

The first conversation that matches the prompt is carried out; a resumed session's prompt is matched anew.
The last text said is the result. A step holds any of these, carried out in this order:

| key | value |
|---|---|
| `when` | conditions, all of which must hold or the step is skipped (below) |
| `at` | `"start"`: carried out before the `init` line |
| `sleep_s` | seconds the model takes to answer |
| `think`, `say` | a text |
| `tool`, `tools` | one call `{"name", "input"}`, or several at once |
| `event` | an object written as it is (`session_id` and `uuid` filled in) |
| `fail` | a failure (below) |
| `end` | `true`: the conversation ends here |

`when`: `skill`/`no_skill` (slug staged, or not, in `.claude/skills`), `repetition` (list of numbers, from the
variable SCRIPTED_REPETITION), `denied_before` (whether a call was refused before), `resumed`, `exists`/`missing`
(a path in the working directory), `mode` (list of permission modes).

`fail`: `{"kind": …}` with the options of `FAILURES`. `times: N` limits it to the first N processes that get
there, counted in the file `counter` (variables such as `$HOME` are expanded).
"""

from __future__ import annotations

import json
import re
import signal
from typing import Any, Final, NamedTuple

from .stream import Json

FAILURES: Final[dict[str, dict[str, type | tuple[type, ...]]]] = {
    # ends of the process
    "crash": {"exit_code": int, "signal": str, "stderr": str},  # no result line
    "no_result": {"exit_code": int},
    "cut_last_line": {"exit_code": int, "signal": str},  # half a result line
    "exit_code": {"exit_code": int},  # the result says success, the exit code does not
    "empty_result": {},
    "linger": {"seconds": (int, float)},  # does not exit after its result
    # requests to the model
    "rate_limit": {"retries": int, "retry_delay_s": (int, float), "recover": bool},
    "overloaded": {"retries": int, "retry_delay_s": (int, float), "recover": bool},
    "server_error": {"retries": int, "retry_delay_s": (int, float), "recover": bool},
    "auth": {"retries": int, "retry_delay_s": (int, float), "recover": bool},
    "network": {"retries": int, "retry_delay_s": (int, float), "recover": bool},
    "not_logged_in": {},
    "billing": {},
    "model_not_found": {},
    # ends of the session
    "max_turns": {},
    "max_budget": {},
    "error_during_execution": {"message": str},
    # processes
    "hang": {"seconds": (int, float), "ignore_signals": bool, "child": str, "pid_file": str},
    "leave_running": {"seconds": (int, float), "child": str, "pid_file": str, "hold_output": bool},
    # the stream itself
    "foreign_session": {"session_id": str},
    "oversized_line": {"bytes": int},
    "garbage": {"lines": list},
    "invalid_utf8": {},
    "slow_output": {"seconds": (int, float), "text": str},
    "stderr_flood": {"bytes": int},
}
"""Kinds of failures with their options."""

CHILDREN: Final = ("session", "orphan", "deaf")
"""Processes a failure can leave: in a session of its own, also adopted by init, also deaf to SIGTERM."""

_COMMON: Final[dict[str, type | tuple[type, ...]]] = {"kind": str, "times": int, "counter": str}
_STEP: Final[dict[str, type | tuple[type, ...]]] = {
    "when": dict,
    "at": str,
    "sleep_s": (int, float),
    "think": str,
    "say": str,
    "tool": dict,
    "tools": list,
    "event": dict,
    "fail": dict,
    "end": bool,
}
_WHEN: Final[dict[str, type | tuple[type, ...]]] = {
    "skill": str,
    "no_skill": str,
    "repetition": list,
    "denied_before": bool,
    "resumed": bool,
    "exists": str,
    "missing": str,
    "mode": list,
}
_TYPES: Final[dict[object, str]] = {
    str: "a text",
    int: "a whole number",
    (int, float): "a number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}


class ScriptError(ValueError):
    """A script is not valid. `problems` name every wrong place."""

    def __init__(self, name: str, problems: list[str]) -> None:
        super().__init__("\n".join(f"{name}: {problem}" for problem in problems))
        self.problems = problems


class ToolUse(NamedTuple):
    """A call of a tool."""

    name: str
    input: Json


class Step(NamedTuple):
    """One step of a conversation."""

    when: Json
    at_start: bool
    sleep_s: float
    think: str | None
    say: str | None
    tools: tuple[ToolUse, ...]
    event: Json | None
    fail: Json | None
    end: bool


class Conversation(NamedTuple):
    """What the agent does for the prompts that `match` finds."""

    match: re.Pattern[str]
    steps: tuple[Step, ...]


def parse(text: str, name: str) -> tuple[Conversation, ...]:
    """The conversations of a script; `name` is how messages call it. `ScriptError` lists all problems."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise ScriptError(name, [f"is not JSON: {error}"]) from error
    problems: list[str] = []
    conversations = _conversations(document, problems)
    if problems:
        raise ScriptError(name, problems)
    return conversations


def select(conversations: tuple[Conversation, ...], prompt: str) -> Conversation | None:
    """The first conversation that matches, or null."""
    return next((found for found in conversations if found.match.search(prompt)), None)


def filled(value: Any, values: dict[str, str]) -> Any:
    """A JSON value with the placeholders of its texts replaced; other braces stay as they are."""
    if isinstance(value, str):
        for key, replacement in values.items():
            value = value.replace("{" + key + "}", replacement)
        return value
    if isinstance(value, list):
        return [filled(entry, values) for entry in value]
    if isinstance(value, dict):
        return {key: filled(entry, values) for key, entry in value.items()}
    return value


def _conversations(document: Any, problems: list[str]) -> tuple[Conversation, ...]:
    if not _is_object(document, {"conversations": list}, "", problems, required=("conversations",)):
        return ()
    found = []
    for index, entry in enumerate(document["conversations"]):
        where = f"conversations[{index}]"
        if not _is_object(entry, {"match": str, "steps": list}, where, problems, required=("match", "steps")):
            continue
        steps = tuple(_step(step, f"{where}.steps[{number}]", problems) for number, step in enumerate(entry["steps"]))
        try:
            found.append(Conversation(re.compile(entry["match"]), steps))
        except re.error as error:
            problems.append(f"{where}.match: is no regular expression: {error}")
    if not document["conversations"]:
        problems.append("conversations: must hold at least one")
    return tuple(found)


def _step(step: Any, where: str, problems: list[str]) -> Step:
    if not _is_object(step, _STEP, where, problems):
        return Step({}, False, 0.0, None, None, (), None, None, False)
    calls = step.get("tools", [step["tool"]] if "tool" in step else [])
    if "tool" in step and "tools" in step:
        problems.append(f"{where}: has both tool and tools")
    if step.get("at", "start") != "start":
        problems.append(f"{where}.at: must be 'start', found {step['at']!r}")
    if step.get("sleep_s", 0) < 0:
        problems.append(f"{where}.sleep_s: must not be negative")
    if "when" in step:
        _check_when(step["when"], f"{where}.when", problems)
    if "fail" in step:
        _check_failure(step["fail"], f"{where}.fail", problems)
    return Step(
        when=step.get("when", {}),
        at_start="at" in step,
        sleep_s=step.get("sleep_s", 0),
        think=step.get("think"),
        say=step.get("say"),
        tools=_tool_uses(calls, where, problems),
        event=step.get("event"),
        fail=step.get("fail"),
        end=step.get("end", False),
    )


def _tool_uses(calls: list[Any], where: str, problems: list[str]) -> tuple[ToolUse, ...]:
    keys: dict[str, type | tuple[type, ...]] = {"name": str, "input": dict}
    return tuple(
        ToolUse(call["name"], call["input"])
        for call in calls
        if _is_object(call, keys, f"{where}.tool", problems, required=tuple(keys))
    )


def _check_when(when: Json, where: str, problems: list[str]) -> None:
    if not _is_object(when, _WHEN, where, problems):
        return
    for key, kind in (("repetition", int), ("mode", str)):
        if not all(isinstance(entry, kind) and not isinstance(entry, bool) for entry in when.get(key, [])):
            problems.append(f"{where}.{key}: must be a list whose entries are each {_TYPES[kind]}")


def _check_failure(fail: Json, where: str, problems: list[str]) -> None:
    kind = fail.get("kind")
    if not isinstance(kind, str) or kind not in FAILURES:
        problems.append(f"{where}.kind: unknown {kind!r}; known: {', '.join(FAILURES)}")
        return
    _is_object(fail, {**_COMMON, **FAILURES[kind]}, where, problems)
    if ("times" in fail) != ("counter" in fail):
        problems.append(f"{where}: times and counter go together")
    name = fail.get("signal", "SIGKILL")
    if not (isinstance(name, str) and name.startswith("SIG") and isinstance(getattr(signal, name, None), int)):
        problems.append(f"{where}.signal: unknown {name!r}; such as SIGKILL, SIGSEGV")
    if fail.get("child", CHILDREN[0]) not in CHILDREN:
        problems.append(f"{where}.child: unknown {fail['child']!r}; known: {', '.join(CHILDREN)}")


def _is_object(
    value: Any,
    keys: dict[str, type | tuple[type, ...]],
    where: str,
    problems: list[str],
    required: tuple[str, ...] = (),
) -> bool:
    """Whether a value is an object with exactly such keys; says what is wrong otherwise."""
    prefix = f"{where}: " if where else ""
    if not isinstance(value, dict):
        problems.append(f"{prefix}must be an object, found {type(value).__name__}")
        return False
    before = len(problems)
    problems += [f"{prefix}unknown key {key!r}; known: {', '.join(keys)}" for key in value if key not in keys]
    problems += [f"{prefix}{key} is missing" for key in required if key not in value]
    for key, kind in keys.items():
        wrong_bool = key in value and isinstance(value[key], bool) and kind is not bool
        if key in value and (wrong_bool or not isinstance(value[key], kind)):
            place = f"{where}.{key}" if where else key
            problems.append(f"{place}: must be {_TYPES[kind]}, found {value[key]!r}")
    return len(problems) == before
