"""Reads a session log of Codex, `$CODEX_HOME/sessions/…/rollout-*.jsonl` (codex-cli 0.40 to 0.171).

Unlike the events on stdout it has time stamps, and every call with the text that the model was given,
refused ones included. Older versions do not log the end of a turn.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from skilltrial.tasks.ingest.parsers.codex_refusals import refusal_of
from skilltrial.tasks.ingest.parsers.ledger import Ledger, as_text, told
from skilltrial.tasks.ingest.records import RowSink, StreamSummary, Usage
from skilltrial.tasks.ingest.values import mapping, moment, whole

_TYPES: Final = frozenset(
    {
        "session_meta",
        "turn_context",
        "response_item",
        "event_msg",
        "compacted",
        "world_state",
        "token_usage_record",
        "inter_agent_communication_metadata",
    }
)
_EVENTS: Final = frozenset(
    {
        "token_count",
        "task_started",
        "task_complete",
        "turn_aborted",
        "user_message",
        "agent_message",
        "agent_reasoning",
        "item_completed",
        "thread_settings_applied",
        "error",
    }
)
_CALLS: Final = frozenset({"function_call", "custom_tool_call", "local_shell_call", "web_search_call"})
_ANSWERS: Final = frozenset({"function_call_output", "custom_tool_call_output"})
_EXIT: Final = re.compile(r"(?:Process exited with code|Exit code:) (-?\d+)")


def is_rollout(record: dict[str, Any]) -> bool:
    """Whether a record is of a session log."""
    kind = record.get("type")
    return isinstance(kind, str) and kind in _TYPES and isinstance(record.get("payload"), dict)


class RolloutReader:
    """Reads the records of one session log into the rows and the summary of its parser."""

    def __init__(
        self, sink: RowSink, role: Callable[[str], str], vocabulary: Mapping[str, str], summary: StreamSummary
    ) -> None:
        self._summary = summary
        self._ledger = Ledger(sink, role, vocabulary, summary, reports_denials=True)
        summary.denials = 0
        self._children = False

    def feed(self, record: dict[str, Any]) -> bool:
        """Take one record; false: it is of a type that this reader does not know."""
        kind, payload = record.get("type"), mapping(record.get("payload"))
        at = moment(record.get("timestamp"))
        if kind not in _TYPES:
            return False
        if kind == "response_item":
            return self._response(payload, at)
        if kind == "event_msg":
            return self._event(payload)
        self._summary.last_record = str(kind)
        if kind == "session_meta":
            self._session(payload)
        elif kind == "turn_context":
            self._summary.model = told(payload.get("model")) or self._summary.model
            self._summary.permission_mode = told(payload.get("approval_policy")) or self._summary.permission_mode
        return True

    def finish(self) -> StreamSummary:
        """Hand on what is still open and sum up."""
        self._ledger.close()
        usage = self._summary.usage_main
        if usage is not None and not self._children:
            self._summary.usage_all = {self._summary.model: usage}
        return self._summary

    def _session(self, payload: dict[str, Any]) -> None:
        summary, identity = self._summary, told(payload.get("id"))
        summary.cli_version = told(payload.get("cli_version")) or summary.cli_version
        if identity is not None and identity not in summary.session_ids:
            summary.session_ids.append(identity)
            summary.init_session_ids.append(identity)

    def _event(self, payload: dict[str, Any]) -> bool:
        summary, kind = self._summary, payload.get("type")
        if not isinstance(kind, str) or kind not in _EVENTS:
            return False
        summary.last_record = f"event_msg/{kind}"
        if kind == "token_count":
            total = mapping(mapping(payload.get("info")).get("total_token_usage"))
            if total:
                summary.usage_main = thread_usage(total)
        elif kind == "task_started":
            summary.finished, summary.failed = False, None
        elif kind in ("task_complete", "turn_aborted"):
            summary.results += 1
            summary.finished = True
            summary.failed = "aborted" if kind == "turn_aborted" else None
            if kind == "turn_aborted":
                self._ledger.error(as_text(payload.get("reason")))
        elif kind == "error":
            self._ledger.error(as_text(payload.get("message")))
        return True

    def _response(self, payload: dict[str, Any], at: datetime | None) -> bool:
        kind = payload.get("type")
        if not isinstance(kind, str):
            return False
        if kind == "message":
            self._message(payload, at)
        elif kind == "reasoning":
            self._summary.last_record = "response_item/thinking"
            text = _texts(payload.get("summary"))
            if text:
                self._ledger.message(text, kind="thinking", at=at)
        elif kind in _CALLS:
            self._call(payload, at)
        elif kind in _ANSWERS:
            self._answer(payload, at)
        elif kind not in ("additional_tools", "agent_message"):
            return False
        return True

    def _message(self, payload: dict[str, Any], at: datetime | None) -> None:
        role, text = as_text(payload.get("role")), _texts(payload.get("content"))
        self._summary.last_record = f"response_item/{role}_text"
        if role not in ("assistant", "user"):
            return  # what the CLI itself tells the model
        # the CLI wraps what it adds for itself in tags
        self._ledger.message(text, role=role, synthetic=role == "user" and text.lstrip().startswith("<"), at=at)
        if role == "assistant":
            self._summary.final_text = text

    def _call(self, payload: dict[str, Any], at: datetime | None) -> None:
        self._summary.last_record = "response_item/tool_use"
        kind = payload["type"]
        tool = told(payload.get("name")) or str(kind).removesuffix("_call")
        arguments = payload.get("arguments", payload.get("input", payload.get("action")))
        call = self._ledger.call(tool, _arguments(arguments), tool_use_id=told(payload.get("call_id")), at=at)
        if kind == "web_search_call":  # run by the service: the log holds no answer of its own
            self._ledger.answer(call, "", is_error=None, at=at)
        self._children = self._children or tool == "spawn_agent"

    def _answer(self, payload: dict[str, Any], at: datetime | None) -> None:
        self._summary.last_record = "response_item/tool_result"
        call = self._ledger.waiting(told(payload.get("call_id")))
        if call is None:
            return
        text, exit_code = _output(payload.get("output"))
        refusal = refusal_of(text)
        if refusal is not None:
            self._ledger.deny(call, refusal.source, refusal.reason, evidence="text")
        is_error = True if refusal is not None else (None if exit_code is None else exit_code != 0)
        self._ledger.answer(call, text, is_error=is_error, at=at)


def thread_usage(told: dict[str, Any]) -> Usage:
    """Codex's counts; its `input_tokens` include the cached ones, and all are the thread's running total."""
    return Usage(
        input_tokens=whole(told.get("input_tokens")),
        output_tokens=whole(told.get("output_tokens")),
        cache_read_input_tokens=whole(told.get("cached_input_tokens")),
        cache_creation_input_tokens=whole(told.get("cache_write_input_tokens")),
        source="running_total",
    )


def _arguments(value: object) -> object:
    if isinstance(value, str):
        try:
            decoded = json.loads(value)
        except (ValueError, RecursionError):
            return {"input": value}
        return decoded if isinstance(decoded, dict) else {"input": value}
    return mapping(value)


def _output(value: object) -> tuple[str, int | None]:
    """Text and exit code of an answer: a text, a list of parts, or `{"output", "metadata"}` as JSON in a text."""
    if isinstance(value, list):
        value = _texts(value)
    text = as_text(value)
    if text.startswith("{"):
        try:
            decoded = mapping(json.loads(text))
        except (ValueError, RecursionError):
            decoded = {}
        if isinstance(decoded.get("output"), str):
            code = mapping(decoded.get("metadata")).get("exit_code")
            return decoded["output"], code if isinstance(code, int) else None
    found = _EXIT.search(text[:400])
    return text, int(found[1]) if found else None


def _texts(parts: object) -> str:
    if not isinstance(parts, list):
        return as_text(parts)
    return "\n".join(text for part in parts if (text := as_text(mapping(part).get("text"))))
