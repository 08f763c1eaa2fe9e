"""Reads `codex exec --json`, and the session logs of Codex (codex-cli 0.171.0 measured, older ones from samples).

A stream tells neither model nor version, and refusals only in part (`codex_refusals`). The usage of a turn is
the running total of its thread, earlier processes included. An `error` event is a warning or a retry unless
the turn then fails.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from skilltrial.tasks.ingest.parsers.codex_refusals import refusal_of
from skilltrial.tasks.ingest.parsers.codex_rollout import RolloutReader, is_rollout, thread_usage
from skilltrial.tasks.ingest.parsers.ledger import Ledger, as_text, told
from skilltrial.tasks.ingest.records import RowSink, StreamSummary
from skilltrial.tasks.ingest.values import as_json, mapping

ROLES: Final = MappingProxyType(
    {
        "command_execution": "shell",
        "exec_command": "shell",
        "shell": "shell",
        "local_shell": "shell",
        "file_change": "patch",
        "apply_patch": "patch",
        "view_image": "read",
        "spawn_agent": "subagent",
    }
)

_EVENTS: Final = frozenset({"thread.started", "turn.started", "turn.completed", "turn.failed"})
_ITEM_EVENTS: Final = frozenset({"item.started", "item.updated", "item.completed"})
_RETRY: Final = "Reconnecting..."


def looks_like(record: dict[str, Any]) -> bool:
    """Whether a record is of a Codex stream or session log."""
    kind = record.get("type")
    return (isinstance(kind, str) and kind in (_EVENTS | _ITEM_EVENTS)) or is_rollout(record)


class CodexParser:
    """Parser of the events of `codex exec --json`; hands session logs to `RolloutReader`."""

    name = "codex-items"
    version = 1

    def __init__(self, sink: RowSink, role: Callable[[str], str]) -> None:
        self.summary = StreamSummary("codex", self.name, self.version)
        self._ledger = Ledger(sink, role, ROLES, self.summary, reports_denials=False)
        self._rollout: RolloutReader | None = None
        self._make_rollout = partial(RolloutReader, sink, role, ROLES, self.summary)
        self._warnings: list[str] = []
        self._children = False

    def feed(self, record: dict[str, Any]) -> bool:
        """Take one record; false: it is of a type that this parser does not know."""
        if self._rollout is None and is_rollout(record):
            self._rollout = self._make_rollout()
        if self._rollout is not None:
            return self._rollout.feed(record)
        kind = record.get("type")
        if kind in _ITEM_EVENTS:
            return self._item(kind, mapping(record.get("item")))
        if kind == "error":
            self._error(as_text(record.get("message")))
            return True
        if kind in _EVENTS:
            self._turn(kind, record)
            return True
        return False

    def finish(self) -> StreamSummary:
        """Hand on what is still open and sum up."""
        if self._rollout is not None:
            return self._rollout.finish()
        self._ledger.close()
        if self.summary.usage_main is not None and not self._children:
            self.summary.usage_all = {None: self.summary.usage_main}
        if not self.summary.finished:
            for text in self._warnings[-3:]:
                self._ledger.error(text)
        if self.summary.denials:
            self.summary.note("denials_partly_reported")
        return self.summary

    def _turn(self, kind: str, record: dict[str, Any]) -> None:
        summary = self.summary
        summary.last_record = kind.replace(".", "/")
        if kind == "thread.started":
            thread = told(record.get("thread_id"))
            if thread is not None and thread not in summary.session_ids:
                summary.session_ids.append(thread)
                summary.init_session_ids.append(thread)
            return
        summary.finished, summary.failed = kind != "turn.started", None
        if kind == "turn.started":
            return
        summary.results += 1
        if kind == "turn.failed":
            summary.failed = "turn_failed"
            self._ledger.error(as_text(mapping(record.get("error")).get("message")))
            return
        if self._warnings:
            summary.note("nonfatal_error")
            self._warnings.clear()
        usage = record.get("usage")
        if isinstance(usage, dict) and usage:
            summary.usage_main = thread_usage(usage)

    def _error(self, message: str) -> None:
        if message.startswith(_RETRY):
            self.summary.api_retries += 1
            self.summary.last_record = "error/api_retry"
            return
        self.summary.last_record = "error/error"
        self._warnings.append(message[:2_000])
        del self._warnings[:-20]

    def _item(self, kind: str, item: dict[str, Any]) -> bool:
        item_type = item.get("type") or item.get("item_type")
        if item_type is None:
            self.summary.last_record = f"{kind}/none"
            return True  # an old form, without an item
        if item_type in ("agent_message", "assistant_message", "reasoning"):
            self._said(kind, "thinking" if item_type == "reasoning" else "text", as_text(item.get("text")))
            return True
        if item_type == "todo_list":
            self.summary.last_record = f"{kind}/plan"
            return True
        if item_type == "error":
            self.summary.last_record = f"{kind}/error"
            self.summary.note("nonfatal_error_item")
            return True
        if not isinstance(item_type, str) or item_type not in _CALLS:
            return False
        self._call(kind, item_type, item)
        return True

    def _said(self, kind: str, what: str, text: str) -> None:
        self.summary.last_record = f"{kind}/{what}"
        if kind == "item.completed":
            self._ledger.message(text, kind=what)
        if what == "text" and kind != "item.started":
            self.summary.final_text = text

    def _call(self, kind: str, item_type: str, item: dict[str, Any]) -> None:
        ledger = self._ledger
        identity = told(item.get("id"))
        call = ledger.waiting(identity)
        if call is None:
            tool, arguments = _CALLS[item_type](item)
            self._children = self._children or item_type == "collab_tool_call"
            call = ledger.call(tool, arguments, tool_use_id=identity)
        if kind != "item.completed":
            self.summary.last_record = f"{kind}/tool_use"
            return
        self.summary.last_record = f"{kind}/tool_result"
        result, is_error, images = _answer(item_type, item)
        refusal = refusal_of(result) if item_type == "mcp_tool_call" and is_error else None
        if refusal is not None:
            ledger.deny(call, refusal.source, refusal.reason, evidence="event")
        ledger.answer(call, result, is_error=is_error, images=images)


def _keep(*names: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda item: {name: item[name] for name in names if item.get(name) is not None}


_CALLS: Final[dict[str, Callable[[dict[str, Any]], tuple[str, object]]]] = {
    "command_execution": lambda item: ("command_execution", _keep("command")(item)),
    "file_change": lambda item: ("file_change", _keep("changes")(item)),
    "mcp_tool_call": lambda item: (f"mcp__{item.get('server')}__{item.get('tool')}", mapping(item.get("arguments"))),
    "collab_tool_call": lambda item: (
        as_text(item.get("tool")) or "collab_tool_call",
        _keep("prompt", "receiver_thread_ids")(item),
    ),
    "web_search": lambda item: ("web_search", _keep("query", "action")(item)),
}
"""Per type of item: the tool's name and the arguments."""


def _answer(item_type: str, item: dict[str, Any]) -> tuple[str, bool | None, int]:
    """Text, whether it is an error, and the images of a completed item."""
    status, exit_code = item.get("status"), item.get("exit_code")
    failed: bool | None = {"failed": True, "declined": True, "completed": False}.get(as_text(status))
    if item_type == "command_execution":
        is_error = exit_code != 0 if isinstance(exit_code, int) else failed
        return as_text(item.get("aggregated_output")), is_error, 0
    if item_type == "mcp_tool_call":
        error = item.get("error")
        if error is not None:
            return as_text(mapping(error).get("message") or error), True, 0
        return _mcp_result(item.get("result"))
    if item_type == "collab_tool_call":
        return as_text(item.get("agents_states") or None), failed, 0
    return "", failed, 0


def _mcp_result(result: object) -> tuple[str, bool | None, int]:
    content = mapping(result).get("content")
    if not isinstance(content, list):
        return as_text(result), False, 0
    images = sum(mapping(part).get("type") == "image" for part in content)
    rest = [part for part in content if mapping(part).get("type") != "image"]
    return "\n".join(as_text(mapping(part).get("text")) or as_json(part) for part in rest), False, images
