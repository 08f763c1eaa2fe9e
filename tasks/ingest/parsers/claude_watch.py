"""Two watches over a Claude Code stream: hooks that were not obeyed, and background work that did not end."""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from skilltrial.tasks.ingest.values import listing, mapping, string, whole

_ENDED: Final = frozenset({"completed", "failed", "killed", "stopped", "cancelled", "canceled", "error"})
_LAUNCHED: Final = re.compile(r"Command running in background with ID: ([\w-]+)|Async agent launched")
_OUTPUT_TOOLS: Final = frozenset({"BashOutput", "TaskOutput", "AgentOutput"})
_STOP_TOOLS: Final = frozenset({"KillShell", "KillBash", "TaskStop"})
_STATUS: Final = re.compile(r"<status>(\w+)</status>")
_TASK_KEYS: Final = ("task_id", "bash_id", "shell_id", "agentId")
_HOOK_LIMIT: Final = 1000


class HookWatch:
    """Finds calls that ran although a PreToolUse hook said no.

    Hook records name the tool but not the call, so a "no" is held against every open call of that tool until
    one of them is refused. Only when all of them ran is it a breach.
    """

    def __init__(self) -> None:
        self.breaches: list[str] = []
        self._open: dict[str, list[str]] = {}  # by tool
        self._noes: list[list[str]] = []
        self._failed = 0
        self._unusable = 0

    @property
    def silent(self) -> int:
        """Hooks that gave no usable answer. Two records can tell of one hook, but not always both do."""
        return max(self._failed, self._unusable)

    def opened(self, tool_use_id: str, tool: str) -> None:
        """A call was made."""
        self._open.setdefault(tool, []).append(tool_use_id)

    def answered(self, tool_use_id: str, tool: str, ran: bool) -> None:
        """A call was answered: it ran, or it was refused or failed."""
        waiting = self._open.get(tool, [])
        if tool_use_id in waiting:
            waiting.remove(tool_use_id)
        for said_no in [calls for calls in self._noes if tool_use_id in calls]:
            said_no.remove(tool_use_id)
            if not ran or not said_no:
                self._noes.remove(said_no)
            if ran and not said_no and tool_use_id not in self.breaches:
                self.breaches.append(tool_use_id)

    def responded(self, record: dict[str, Any]) -> None:
        """A `hook_response` record."""
        if record.get("hook_event") != "PreToolUse":
            return
        if _says_no(record):
            calls = self._open.get((string(record.get("hook_name")) or "").partition(":")[2])
            if calls and len(self._noes) < _HOOK_LIMIT:
                self._noes.append(list(calls))
        elif record.get("outcome") in ("error", "cancelled") or _is_noise(record):
            self._failed += 1

    def gave_no_verdict(self, record: dict[str, Any]) -> None:
        """An `informational` record with the tag `hook_no_verdict`."""
        if mapping(record.get("hook_no_verdict")).get("hook_event") == "PreToolUse":
            self._unusable += 1


def _says_no(record: dict[str, Any]) -> bool:
    code = whole(record.get("exit_code"))
    if code == 2:
        return True
    if code not in (0, None) and not 200 <= code < 300:  # hooks over HTTP report its status
        return False
    answer = _answer(record)
    specific = mapping(mapping(answer).get("hookSpecificOutput"))
    return specific.get("permissionDecision") == "deny" or mapping(answer).get("decision") == "block"


def _is_noise(record: dict[str, Any]) -> bool:
    """Output that is not one JSON object lets the call through (claude 2.1.332, measured)."""
    return bool((string(record.get("stdout")) or "").strip()) and not isinstance(_answer(record), dict)


def _answer(record: dict[str, Any]) -> object:
    for key in ("stdout", "output"):
        text = string(record.get(key))
        if text and text.strip():
            try:
                return orjson.loads(text)
            except orjson.JSONDecodeError:
                return None
    return None


class TaskWatch:
    """Keeps the background tasks that have not ended."""

    def __init__(self) -> None:
        self.unfinished: dict[str, str | None] = {}  # task id -> the call that started it

    def event(self, subtype: str, record: dict[str, Any]) -> None:
        """A `task_…` or `background_tasks_changed` record."""
        task = string(record.get("task_id"))
        if subtype == "background_tasks_changed":
            listed = [string(mapping(entry).get("task_id")) for entry in listing(record.get("tasks"))]
            self.unfinished = {name: self.unfinished.get(name) for name in listed if name is not None}
        elif task is None:
            return
        elif subtype == "task_started":
            self.unfinished[task] = string(record.get("tool_use_id"))
        elif subtype == "task_notification" or string(mapping(record.get("patch")).get("status")) in _ENDED:
            self.unfinished.pop(task, None)

    def answered(self, tool_use_id: str, tool: str, keys: dict[str, str], text: str, failed: bool) -> None:
        """A call was answered: unless it says that its work goes on, that work is over."""
        launched = _LAUNCHED.match(text)
        if launched is None:
            for task in [task for task, call in self.unfinished.items() if call == tool_use_id]:
                del self.unfinished[task]
        elif launched[1] is not None:
            self.unfinished.setdefault(launched[1], tool_use_id)
        status = _STATUS.search(text) if tool in _OUTPUT_TOOLS else None
        if (status is not None and status[1] in _ENDED) or (tool in _STOP_TOOLS and not failed):
            for task in keys.values():
                self.unfinished.pop(task, None)

    @staticmethod
    def keys_of(tool: str, arguments: object) -> dict[str, str]:
        """The arguments by which a call names a background task."""
        if tool not in _OUTPUT_TOOLS and tool not in _STOP_TOOLS:
            return {}
        return {key: value for key in _TASK_KEYS if isinstance(value := mapping(arguments).get(key), str)}
