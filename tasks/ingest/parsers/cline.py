"""Reads `cline --json` (cline 3.0.65 measured), and the say/ask records of older versions (from samples).

Text comes in pieces and then whole: only the whole counts. The session's id is not in the stream. Errors go to
stderr as JSON, and an aborted run exits with 0: `finishReason` decides. `inputTokens` include the cached ones.
Sub-agents' events stand among the main agent's without a label; the hook events before them name the agent.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Final

from skilltrial.tasks.ingest.calls import Call
from skilltrial.tasks.ingest.denials import GUARD_MARK
from skilltrial.tasks.ingest.parsers.ledger import Ledger, as_text, told
from skilltrial.tasks.ingest.records import RowSink, StreamSummary, Usage
from skilltrial.tasks.ingest.usage import total
from skilltrial.tasks.ingest.values import mapping, moment, number, whole

ROLES: Final = MappingProxyType(
    {
        "read_files": "read",
        "search_codebase": "read",
        "editor": "write",
        "apply_patch": "patch",
        "run_commands": "shell",
        "skills": "skill",
        "spawn_agent": "subagent",
    }
)

_TYPES: Final = frozenset(
    {"agent_event", "hook_event", "run_start", "run_result", "run_aborted", "run_abort_requested", "error"}
)
_EVENTS: Final = frozenset(
    {
        "iteration_start",
        "iteration_end",
        "content_start",
        "content_update",
        "content_end",
        "usage",
        "notice",
        "error",
        "done",
    }
)
_SAYS: Final = frozenset(
    {"text", "reasoning", "checkpoint_created", "api_req_started", "completion_result", "plan_mode_respond"}
)
_NOT_REFUSED: Final = ("Tool call ", "✖")
"""How errors begin that have a refusal's shape and are none: a tool that is not there, arguments that do not fit."""


def looks_like(record: dict[str, Any]) -> bool:
    """Whether a record is of a Cline stream."""
    kind = record.get("type")
    if kind in ("say", "ask"):
        return isinstance(record.get(kind), str) and "ts" in record
    return kind in _TYPES and kind != "error" and "ts" in record


class ClineParser:
    """Parser of the records of `cline --json`."""

    name = "cline-json"
    version = 1

    def __init__(self, sink: RowSink, role: Callable[[str], str]) -> None:
        self.summary = StreamSummary("cline", self.name, self.version, denials=0)
        self._ledger = Ledger(sink, role, ROLES, self.summary, reports_denials=True)
        self._events: Usage | None = None
        self._agent: str | None = None  # whose event the last hook event announced
        self._parents: dict[str, str | None] = {}  # a sub-agent's id, and the call that started it
        self._spawning: list[str] = []  # calls that have started no sub-agent yet

    def feed(self, record: dict[str, Any]) -> bool:
        """Take one record; false: it is of a type that this parser does not know."""
        kind = record.get("type")
        if kind in ("say", "ask"):
            return self._said(kind, record)
        if kind not in _TYPES:
            return False
        if kind == "agent_event":
            return self._event(record, mapping(record.get("event")))
        self.summary.last_record = kind
        if kind == "hook_event":
            self._hook(record)
        elif kind == "run_start":
            self.summary.model = told(record.get("modelId"))
        elif kind == "run_result":
            self._result(record)
        elif kind == "run_aborted":
            # after SIGTERM a completed run_result comes first, then this
            self.summary.finished, self.summary.failed = True, "aborted"
            self._ledger.error(as_text(record.get("message")))
        elif kind == "error":
            self._ledger.error(as_text(record.get("message")))
        return True

    def finish(self) -> StreamSummary:
        """Hand on what is still open and sum up."""
        summary = self.summary
        self._ledger.close()
        if self._events is not None:
            self._events.exact = summary.finished  # else more may have been used than was told
        if summary.usage_main is None and not self._parents and self._events is not None:
            summary.usage_main = self._events
        # the totals of run_result leave sub-agents out; the single events do not
        tree = self._events if self._parents else summary.usage_main
        if tree is not None:
            summary.usage_all = {summary.model: tree}
        return summary

    def _hook(self, record: dict[str, Any]) -> None:
        agent = told(record.get("agentId"))
        self._agent = agent
        starts = record.get("hookEventName") == "agent_start" and told(record.get("parentAgentId"))
        if agent is not None and starts:
            self._parents[agent] = self._spawning.pop(0) if self._spawning else None

    def _event(self, record: dict[str, Any], event: dict[str, Any]) -> bool:
        kind, content = event.get("type"), event.get("contentType")
        if not isinstance(kind, str) or kind not in _EVENTS:
            return False
        at = moment(record.get("ts"))
        self.summary.last_record = f"agent_event/{kind}"
        if kind == "usage":
            self.summary.model_messages += 1
            self._add(event)
        elif kind == "error" and event.get("recoverable") is False:
            self._ledger.error(as_text(mapping(event.get("error")).get("message")))
        elif kind == "content_start" and content == "tool":
            self._call(event, record)
        elif kind == "content_end" and content == "tool":
            self._answer(event, record)
        elif kind == "content_end" and content in ("text", "reasoning"):
            what = "text" if content == "text" else "thinking"
            self.summary.last_record = f"agent_event/{what}"
            text = as_text(event.get(content))
            parent = self._parents.get(self._agent or "")
            self._ledger.message(text, kind=what, parent=parent, model=self.summary.model, at=at)
            if what == "text" and self._agent not in self._parents:
                self.summary.final_text = text
        return True

    def _call(self, event: dict[str, Any], record: dict[str, Any]) -> Call:
        self.summary.last_record = "agent_event/tool_use"
        tool, arguments = as_text(event.get("toolName")) or "unknown", mapping(event.get("input"))
        identity = told(event.get("toolCallId"))
        call = self._ledger.call(
            tool,
            arguments,
            tool_use_id=identity,
            parent=self._parents.get(self._agent or ""),
            skill=told(arguments.get("skill")) if tool == "skills" else None,
            at=moment(record.get("ts")),
        )
        if call.role == "subagent" and identity is not None:
            self._spawning.append(identity)
        return call

    def _answer(self, event: dict[str, Any], record: dict[str, Any]) -> None:
        call = self._ledger.waiting(told(event.get("toolCallId"))) or self._call(event, record)
        self.summary.last_record = "agent_event/tool_result"
        output, error = event.get("output"), event.get("error")
        text, is_error = _output(output)
        is_error = True if error is not None else is_error
        if error is not None and isinstance(output, dict) and set(output) == {"error"}:
            source = _refused_by(text)
            if source is not None:
                agent = self._agent if call.parent is not None else None
                self._ledger.deny(call, source, text, agent_id=agent)
        self._ledger.answer(call, text, is_error=is_error, at=moment(record.get("ts")))

    def _result(self, record: dict[str, Any]) -> None:
        summary, reason = self.summary, as_text(record.get("finishReason"))
        text = as_text(record.get("text"))
        summary.results += 1
        summary.last_record = f"run_result/{reason}"
        summary.finished = True
        summary.failed = None if reason == "completed" else ("aborted" if reason == "aborted" else "error")
        summary.model = told(mapping(record.get("model")).get("id")) or summary.model
        if summary.failed == "error":
            self._ledger.error(text)  # then the text is the error's, not the agent's
        else:
            summary.final_text = text
        usage = record.get("usage")
        if isinstance(usage, dict) and usage:
            summary.usage_main = _usage(usage, number(usage.get("totalCost")), "result")

    def _add(self, event: dict[str, Any]) -> None:
        step = _usage(event, number(event.get("cost")), "other")
        if step.cost_usd is None and not self._parents:
            # newer versions tell the cost only as the agent's running total
            step.cost_usd = number(event.get("totalCost"))
            if step.cost_usd is not None and self._events is not None:
                step.cost_usd -= self._events.cost_usd or 0.0
        self._events = step if self._events is None else total([self._events, step])

    def _said(self, kind: str, record: dict[str, Any]) -> bool:
        """A record of an older version, which names what was said or asked."""
        what = record.get(kind)
        if not isinstance(what, str) or what not in _SAYS:
            return False
        self.summary.last_record = f"{kind}/{what}"
        if record.get("partial") is True:
            return True  # the whole follows
        text, at = as_text(record.get("text")), moment(record.get("ts"))
        if what == "api_req_started":
            self._request(text)
        elif what == "completion_result":
            self.summary.results += 1
            self.summary.finished, self.summary.final_text = True, text
            self._ledger.message(text, at=at)
        elif what in ("text", "reasoning"):
            self._ledger.message(text, kind="text" if what == "text" else "thinking", at=at)
        return True

    def _request(self, text: str) -> None:
        try:
            figures = mapping(json.loads(text))
        except (ValueError, RecursionError):
            return
        names = {"tokensIn": "inputTokens", "tokensOut": "outputTokens", "cacheReads": "cacheReadTokens"}
        renamed = {new: figures[old] for old, new in names.items() if old in figures}
        if renamed:
            self._add({**renamed, "cacheWriteTokens": figures.get("cacheWrites"), "cost": figures.get("cost")})


def _usage(figures: dict[str, Any], cost_usd: float | None, source: str) -> Usage:
    return Usage(
        input_tokens=whole(figures.get("inputTokens")),
        output_tokens=whole(figures.get("outputTokens")),
        cache_read_input_tokens=whole(figures.get("cacheReadTokens")),
        cache_creation_input_tokens=whole(figures.get("cacheWriteTokens")),
        cost_usd=cost_usd,
        source=source,
    )


def _output(output: object) -> tuple[str, bool | None]:
    """Text of an answer, and whether it is an error: one object, a list of them, a text, or an error alone."""
    parts = output if isinstance(output, list) else [output]
    texts, failed, judged = [], False, False
    for part in parts:
        fields = mapping(part)
        if "success" in fields:
            judged = True
            failed = failed or fields["success"] is False
        if not fields:
            texts.append(as_text(part))
            continue
        found = [as_text(fields[name]) for name in ("result", "text", "error") if fields.get(name)]
        texts.append("\n".join(found))
    return "\n".join(texts), failed if judged else None


def _refused_by(text: str) -> str | None:
    """Who refused, by the words of the error; null: it is no refusal."""
    if text.startswith(GUARD_MARK):
        return "guard"
    if text.startswith(_NOT_REFUSED):
        return None
    if "plan mode" in text:
        return "plan_mode"
    if text.startswith("Tool "):
        if "requires approval" in text or text.endswith(("is disabled by policy", "was not approved")):
            return "permission"
        if text.endswith("was blocked by a runtime hook"):
            return "hook"
    return "unknown"  # a plugin's own words
