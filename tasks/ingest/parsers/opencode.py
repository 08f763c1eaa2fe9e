"""Reads `opencode run --format json` (opencode 1.18.33 measured, older ones from samples).

A call is told once, when it is over. The calls and tokens of sub-agents are not in the stream. The turn ended
well exactly when the last step finished with `stop`. A permission that nobody can give is refused by itself
and ends the run without a word, with exit code 0.

Two refusals cannot be told from ordinary errors and are not counted: a foreign plugin that throws, and a tool that a
rule withdrew altogether, which looks like a tool that never was.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Final

from skilltrial.tasks.ingest.calls import Call
from skilltrial.tasks.ingest.denials import GUARD_MARK
from skilltrial.tasks.ingest.parsers.ledger import Ledger, as_text, told
from skilltrial.tasks.ingest.records import LastResult, RowSink, StreamSummary, Usage
from skilltrial.tasks.ingest.usage import total
from skilltrial.tasks.ingest.values import mapping, moment, number, whole

ROLES: Final = MappingProxyType(
    {
        "read": "read",
        "glob": "read",
        "grep": "read",
        "list": "read",
        "write": "write",
        "edit": "write",
        "apply_patch": "patch",
        "patch": "patch",
        "bash": "shell",
        "skill": "skill",
        "task": "subagent",
    }
)

_RULE: Final = "The user has specified a rule which prevents you from using this specific tool call."
_REJECTED: Final = "The user rejected permission to use this specific tool call"
_TYPES: Final = frozenset({"step_start", "step_finish", "text", "reasoning", "tool_use", "tool_result", "error"})
_KINDS: Final = MappingProxyType(
    {401: "authentication_error", 402: "billing_error", 403: "permission_error", 429: "rate_limit", 529: "overloaded"}
)


def looks_like(record: dict[str, Any]) -> bool:
    """Whether a record is of an OpenCode stream."""
    kind = record.get("type")
    return isinstance(kind, str) and kind in _TYPES and isinstance(record.get("sessionID"), str)


class OpencodeParser:
    """Parser of the events of `opencode run --format json`."""

    name = "opencode-events"
    version = 1

    def __init__(self, sink: RowSink, role: Callable[[str], str]) -> None:
        self.summary = StreamSummary("opencode", self.name, self.version, denials=0)
        self._ledger = Ledger(sink, role, ROLES, self.summary, reports_denials=True)
        self._usage: Usage | None = None
        self._rejected = False
        self._children = False
        self._loose: dict[str, Call] = {}  # by tool, in a form that answers apart from the call

    def feed(self, record: dict[str, Any]) -> bool:
        """Take one record; false: it is of a type that this parser does not know."""
        kind = record.get("type")
        if kind not in _TYPES:
            return False
        session = told(record.get("sessionID"))
        if session is not None and session not in self.summary.session_ids:
            self.summary.session_ids.append(session)
        part = mapping(record.get("part"))
        if kind == "tool_use":
            self._tool(record, part)
        elif kind in ("text", "reasoning"):
            self._said(record, part, "text" if kind == "text" else "thinking")
        elif kind == "step_finish":
            self._step_finish(record, part)
        elif kind == "error":
            self._error(mapping(record.get("error")))
        elif kind == "tool_result":
            self._loose_result(record)
        else:
            self.summary.last_record = "step_start"
            self.summary.finished, self.summary.failed, self.summary.last_result = False, None, None
        return True

    def finish(self) -> StreamSummary:
        """Hand on what is still open and sum up."""
        summary = self.summary
        self._ledger.close()
        summary.usage_main = self._usage
        if self._usage is not None and not self._children:
            summary.usage_all = {None: self._usage}
        good = summary.finished and summary.failed is None
        summary.results = int(good)
        if self._rejected and not summary.finished and summary.last_record == "step_finish/tool-calls":
            summary.finished, summary.failed = True, "aborted"
            self._ledger.error(f"{_REJECTED}.")
        if self._usage is not None:
            self._usage.exact = summary.finished
        if summary.final_text is None and (good or summary.failed == "aborted"):
            summary.final_text = ""
        return summary

    def _tool(self, record: dict[str, Any], part: dict[str, Any]) -> None:
        state = mapping(part.get("state"))
        arguments = state.get("input", part.get("input"))
        tool = as_text(part.get("tool") or part.get("name")) or "unknown"
        asked = told(mapping(arguments).get("tool"))
        withdrawn = tool == "invalid" and asked is not None
        if withdrawn and asked is not None:
            tool = asked
        # newer builds give the call's id as the part's own, with partID beside it
        identity = told(part.get("callID")) or told(part.get("id"))
        time = mapping(state.get("time"))
        call = self._ledger.call(
            tool,
            mapping(arguments),
            tool_use_id=identity,
            message_id=told(part.get("messageID")),
            skill=told(mapping(arguments).get("name")) if tool == "skill" else None,
            at=moment(time.get("start")),
        )
        self._children = self._children or call.role == "subagent"
        status = state.get("status")
        if status not in ("completed", "error"):
            self.summary.last_record = "tool_use/tool_use"
            self._loose[tool] = call
            return
        self.summary.last_record = "tool_use/tool_result"
        at = moment(time.get("end")) or moment(record.get("timestamp"))
        if status == "error":
            text = as_text(state.get("error"))
            self._refusal(call, text)
            self._ledger.answer(call, text, is_error=True, at=at)
            if call.skill is not None and text.startswith(f'Skill "{call.skill}" not found'):
                self.summary.unknown_skills.append(call.skill)
                del self.summary.unknown_skills[100:]
            return
        exit_code = mapping(state.get("metadata")).get("exit")
        is_error = withdrawn or (isinstance(exit_code, int) and exit_code != 0)
        self._ledger.answer(call, as_text(state.get("output")), is_error=is_error, at=at)

    def _refusal(self, call: Call, text: str) -> None:
        self._rejected = text.startswith(_REJECTED)
        if self._rejected:
            self._ledger.deny(call, "permission", text)
        elif text.startswith(GUARD_MARK):
            self._ledger.deny(call, "guard", text)
        elif text.startswith(_RULE):
            self._ledger.deny(call, "permission", _RULE)  # what follows is the whole list of rules

    def _loose_result(self, record: dict[str, Any]) -> None:
        """An answer apart from its call, and without its id, as an older form has it."""
        self.summary.last_record = "tool_result/tool_result"
        waiting = self._loose.pop(as_text(record.get("tool")), None)
        if waiting is not None:
            self._ledger.answer(waiting, as_text(record.get("result")), is_error=None)

    def _said(self, record: dict[str, Any], part: dict[str, Any], what: str) -> None:
        text = as_text(part.get("text"))
        self.summary.last_record = f"{record['type']}/{what}"
        at = moment(mapping(part.get("time")).get("end")) or moment(record.get("timestamp"))
        self._ledger.message(text, kind=what, message_id=told(part.get("messageID")), at=at)
        if what == "text":
            self.summary.final_text = text

    def _step_finish(self, record: dict[str, Any], part: dict[str, Any]) -> None:
        reason = told(part.get("reason"))
        self.summary.last_record = f"step_finish/{reason or 'none'}"
        self.summary.model_messages += 1
        self.summary.finished = reason in ("stop", "length")
        self.summary.failed = "length" if reason == "length" else None
        counted, cost = part.get("tokens"), number(part.get("cost", record.get("cost")))
        if isinstance(counted, dict):
            cache = mapping(counted.get("cache"))
            counts = counted.get("input"), counted.get("output"), cache.get("read"), cache.get("write")
        else:
            flat = mapping(record.get("usage"))
            counts = flat.get("input_tokens"), flat.get("output_tokens"), None, None
        given, made, read, written = map(whole, counts)
        self._add(Usage(given, made, read, written, cost, source="other"))

    def _add(self, step: Usage) -> None:
        """Add one step, unless it tells nothing; what no step tells stays untold."""
        if step != Usage(source="other"):
            self._usage = step if self._usage is None else total([self._usage, step])

    def _error(self, error: dict[str, Any]) -> None:
        data = mapping(error.get("data"))
        message = as_text(data.get("message")) or as_text(error.get("name"))
        summary = self.summary
        summary.last_record = "error/error"
        summary.finished, summary.failed = True, "error"
        self._ledger.error(message)
        status = data.get("statusCode")
        if isinstance(status, int):
            summary.api_errors.append(_KINDS.get(status) or ("server_error" if status >= 500 else "invalid_request"))
            del summary.api_errors[:-100]
            # the outcome of an API error depends on its status, which only such a record can carry
            summary.last_result = LastResult("error", is_error=True, api_error_status=status, text=message)
