"""Claude Code's `--output-format stream-json` (also `json`, and the session logs below `projects/`).

Facts behind the rules here were measured with claude 2.1.332 and on some 2,500 streams of older versions:
a message comes as one event for each of its blocks, each with the same usage; one process can write several
init and result records; the result's `usage` is that of the main agent and of one turn, its `modelUsage` and
`total_cost_usd` are running totals of the whole tree; hook records before init can carry a foreign session id.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, ClassVar, Final

from skilltrial.tasks.ingest.calls import Call, CallQueue
from skilltrial.tasks.ingest.denials import DenialLedger, sandbox_refused
from skilltrial.tasks.ingest.parsers import Role
from skilltrial.tasks.ingest.parsers.claude_content import flatten
from skilltrial.tasks.ingest.parsers.claude_messages import MessageLog, Voice
from skilltrial.tasks.ingest.parsers.claude_session import SessionLog
from skilltrial.tasks.ingest.parsers.claude_shape import looks_like
from skilltrial.tasks.ingest.parsers.claude_watch import HookWatch, TaskWatch
from skilltrial.tasks.ingest.records import RowSink, StreamSummary
from skilltrial.tasks.ingest.usage import MessageTally
from skilltrial.tasks.ingest.values import listing, mapping, moment, string

__all__ = ["ClaudeParser", "looks_like"]

SYNTHETIC_MODEL: Final = "<synthetic>"
_NAME_KEYS: Final = ("skill", "command", "name")
_UNKNOWN_SKILL: Final = "Unknown skill: "

_PLAIN: Final = frozenset(
    {
        "control_request",
        "control_response",
        "control_cancel_request",
        "tool_progress",
        "command_lifecycle",
        "keep_alive",
        "auth_status",
        "tool_use_summary",
        "prompt_suggestion",
        "summary",  # from here on: of session logs
        "file-history-snapshot",
        "progress",
        "mode",
        "permission-mode",
        "queue-operation",
        "attachment",
        "custom-title",
        "ai-title",
        "agent-name",
        "last-prompt",
        "pr-link",
    }
)
"""Types that are known and hold nothing for the tables."""


class ClaudeParser:
    """Reads the records of one process, or of one session log."""

    name: ClassVar[str] = "claude-stream-json"
    version: ClassVar[int] = 1

    def __init__(self, sink: RowSink, role: Role) -> None:
        """`role` maps a tool's name to what it does."""
        self._sink = sink
        self._role = lru_cache(maxsize=1024)(role)
        self._calls = CallQueue(sink, self._denied)
        self._denials = DenialLedger()
        self._messages = MessageLog(sink)
        self._session = SessionLog()
        self._tally = MessageTally()
        self._hooks = HookWatch()
        self._tasks = TaskWatch()
        self._task_keys: dict[str, dict[str, str]] = {}
        self._streaming: dict[str | None, str] = {}  # agent -> the message whose events are coming in
        self._skill_calls: list[str] = []
        self._unknown_skills: list[str] = []
        self._decisions_told = False
        self._handlers: dict[Any, Callable[[dict[str, Any]], bool]] = {
            "stream_event": self._stream_event,
            "assistant": self._assistant,
            "user": self._user,
            "system": self._system,
            "result": self._result,
            "rate_limit_event": self._rate_limit,
        }

    def feed(self, record: dict[str, Any]) -> bool:
        """Take one record; false: it is of a type that this parser does not know."""
        kind = record.get("type")
        if type(kind) is not str:
            return False
        handler = self._handlers.get(kind)
        return handler(record) if handler is not None else kind in _PLAIN

    def finish(self) -> StreamSummary:
        """Hand on what is still open and sum up."""
        self._denials.settle()
        self._calls.finish()
        self._denials.write(self._sink)
        self._messages.finish()
        summary = self._session.summary(self.name, self.version, self._tally)
        summary.tool_calls, summary.tool_calls_answered = self._calls.calls, self._calls.answered
        summary.denials = len(self._denials)
        summary.skill_calls, summary.unknown_skills = self._skill_calls, self._unknown_skills
        summary.synthetic_messages = self._messages.synthetic
        summary.model_messages = self._tally.messages
        summary.unfinished_tasks = list(self._tasks.unfinished)
        summary.guard_breaches, summary.silent_hooks = self._hooks.breaches, self._hooks.silent
        summary.final_text = self._final_text(summary)
        for word, holds in (
            ("empty_final_text", summary.final_text == ""),
            ("unknown_skill", bool(self._unknown_skills)),
            ("silent_hooks", summary.silent_hooks > 0),
            ("repeated_records", self._messages.repeated or self._session.repeated),
            ("calls_forced_out", self._calls.forced > 0),
        ):
            if holds:
                summary.note(word)
        return summary

    def _final_text(self, summary: StreamSummary) -> str | None:
        result = summary.last_result
        if result is not None and result.text is not None and result.is_error is not True:
            return result.text
        return self._messages.last_words

    # -- records ---------------------------------------------------------------------------------

    def _stream_event(self, record: dict[str, Any]) -> bool:
        event = mapping(record.get("event"))
        kind = event.get("type")
        if kind == "content_block_delta":
            return True
        parent = string(record.get("parent_tool_use_id"))
        if kind == "message_start":
            message = mapping(event.get("message"))
            identifier = string(message.get("id"))
            if parent is None:
                self._session.last_record = "assistant/message_start"
            if identifier is not None:
                self._streaming[parent] = identifier
                self._tally.see(identifier, string(message.get("model")), parent is None, message.get("usage"))
        elif kind == "message_delta" and parent in self._streaming:
            self._tally.end(self._streaming[parent], event.get("usage"))
        return True

    def _assistant(self, record: dict[str, Any]) -> bool:
        message = mapping(record.get("message"))
        if self._messages.is_repeated(record, message):
            return True
        self._session.spoke(record)
        parent = string(record.get("parent_tool_use_id"))
        identifier = string(message.get("id"))
        model = string(message.get("model"))
        main = parent is None and record.get("isSidechain") is not True
        synthetic = model == SYNTHETIC_MODEL
        if synthetic:
            self._messages.synthetic += 1
            self._session.api_error(record, message)
        elif message:
            self._tally.see(identifier, model, main, message.get("usage"))
            self._session.answered(main)
        at = moment(record.get("timestamp")) if "timestamp" in record else None
        voice = Voice("assistant", identifier, parent, model, synthetic, main, at)
        content = message.get("content")
        for block in listing(content) if not isinstance(content, str) else [{"type": "text", "text": content}]:
            if not isinstance(block, dict):
                continue
            kind = block.get("type")
            if kind == "tool_use":
                self._open_call(block, parent, identifier, at)
            elif kind in ("text", "thinking"):
                self._messages.said(voice, kind, block.get(kind), self._calls.calls)
            if main:
                self._session.last_record = f"assistant/{kind}"
        return True

    def _open_call(self, block: dict[str, Any], parent: str | None, message_id: str | None, at: Any) -> None:
        identifier = string(block.get("id"))
        if identifier is not None and self._calls.is_known(identifier):
            return
        tool = string(block.get("name")) or ""
        role = self._role(tool)
        arguments = block.get("input")
        skill = None
        if role == "skill":
            named = mapping(arguments)
            skill = next((named[key] for key in _NAME_KEYS if isinstance(named.get(key), str)), None)
            if skill is not None and len(self._skill_calls) < 1000:
                self._skill_calls.append(skill)
        if identifier is not None:
            self._hooks.opened(identifier, tool)
            keys = self._tasks.keys_of(tool, arguments)
            if keys:
                self._task_keys[identifier] = keys
        self._calls.open(Call(self._calls.calls, identifier, parent, message_id, tool, role, arguments, skill, at))

    def _user(self, record: dict[str, Any]) -> bool:
        message = mapping(record.get("message"))
        if self._messages.is_repeated(record, message):
            return True
        self._session.spoke(record)
        parent = string(record.get("parent_tool_use_id"))
        main = parent is None and record.get("isSidechain") is not True
        synthetic = record.get("isSynthetic") is True or record.get("isMeta") is True
        at = moment(record.get("timestamp")) if "timestamp" in record else None
        voice = Voice("user", None, parent, None, synthetic, main, at)
        told = record.get("tool_result_meta")
        meta = {string(entry.get("id")): entry for entry in map(mapping, told)} if type(told) is list else {}
        content = message.get("content")
        for block in listing(content) if not isinstance(content, str) else [{"type": "text", "text": content}]:
            if not isinstance(block, dict):
                continue
            kind = block.get("type")
            if kind == "tool_result":
                self._answer_call(block, meta, string(record.get("agent_id")), at)
            elif kind == "text":
                self._messages.said(voice, kind, block.get("text"), self._calls.calls)
            if main:
                self._session.last_record = f"user/{kind}"
        self._calls.settle()
        return True

    def _answer_call(self, block: dict[str, Any], meta: dict[Any, Any], agent: str | None, at: Any) -> None:
        identifier = string(block.get("tool_use_id"))
        call = self._calls.held(identifier) if identifier is not None else None
        if call is None or identifier is None:
            return
        text, size, images = flatten(block.get("content"))
        self._calls.answer(call, text, size, images)
        told = block.get("is_error")
        call.is_error = told if isinstance(told, bool) else (None if "is_error" in block else False)
        call.ended_at = at
        decision = mapping(mapping(meta.get(identifier)).get("permission_decision"))
        call.decision = string(decision.get("decision"))
        call.decision_source = string(decision.get("source"))
        call.decision_reason = string(decision.get("reason_type"))
        failed = call.is_error is True
        self._judge_answer(call, text, agent)
        # a shell command's own failure shows that it ran
        ran = not failed or call.decision == "accept" or (call.role == "shell" and text.startswith("Exit code "))
        self._hooks.answered(identifier, call.tool, ran)
        self._tasks.answered(identifier, call.tool, self._task_keys.pop(identifier, {}), text, failed)
        if failed and call.role == "skill" and _UNKNOWN_SKILL in text[:200] and len(self._unknown_skills) < 100:
            self._unknown_skills.append(call.skill or "")

    def _judge_answer(self, call: Call, text: str, agent: str | None) -> None:
        """Take what an answer tells of a denial, and whether anything later can still tell more."""
        failed = call.is_error is True
        known = {"tool": call.tool, "input_keys": list(call.keys), "order": call.order, "agent_id": agent}
        if call.decision is not None:
            self._decisions_told = self._denials.reported = True
        if call.decision not in (None, "accept"):
            self._denials.add(
                call.tool_use_id,
                "tool_result_meta",
                reason=text,
                reason_type=call.decision_reason,
                decided_by=call.decision_source,
                **known,
            )
        elif failed and call.role == "shell" and sandbox_refused(text):
            self._denials.add(call.tool_use_id, "text", reason=text, **known)
        elif failed and not self._decisions_told and call.tool_use_id is not None:
            self._denials.suspect(call.tool_use_id, text, **known)
        # an answer without a decision can still be named in the result, as interrupted calls are
        call.decided = not failed or call.decision is not None or (self._decisions_told and "<tool_use_error>" in text)

    def _system(self, record: dict[str, Any]) -> bool:
        subtype = record.get("subtype")
        if subtype == "hook_response":
            self._hooks.responded(record)
        elif subtype == "informational" and record.get("tag") == "hook_no_verdict":
            self._hooks.gave_no_verdict(record)
        elif subtype == "permission_denied":
            self._refused(record)
        elif isinstance(subtype, str) and (subtype.startswith("task_") or subtype == "background_tasks_changed"):
            self._tasks.event(subtype, record)
        return self._session.system(record, subtype)

    def _refused(self, record: dict[str, Any]) -> None:
        identifier = string(record.get("tool_use_id"))
        call = self._calls.held(identifier) if identifier is not None else None
        self._denials.reported = True
        self._denials.add(
            identifier,
            "event",
            tool=string(record.get("tool_name")),
            reason_type=string(record.get("decision_reason_type")),
            reason=string(record.get("message")),
            agent_id=string(record.get("agent_id")),
            **({"input_keys": list(call.keys), "order": call.order} if call is not None else {}),
        )

    def _result(self, record: dict[str, Any]) -> bool:
        if not self._session.result(record):
            return True
        denials = record.get("permission_denials")
        if isinstance(denials, list):
            self._denials.reported = True
            for entry in map(mapping, denials):
                self._listed_denial(entry)
        return True

    def _listed_denial(self, entry: dict[str, Any]) -> None:
        identifier = string(entry.get("tool_use_id"))
        call = self._calls.held(identifier) if identifier is not None else None
        known: dict[str, Any] = {"tool": string(entry.get("tool_name"))}
        known["input_keys"] = list(mapping(entry.get("tool_input")))
        if call is not None:
            known["order"] = call.order
            known["tool"] = known["tool"] or call.tool
            known["reason"] = call.result
            known["decided_by"] = call.decision_source if call.decision not in (None, "accept") else None
        elif identifier is not None and self._calls.is_known(identifier) and identifier not in self._denials:
            self._session.note("denial_told_late")
        self._denials.add(identifier, "result", **known)

    def _rate_limit(self, record: dict[str, Any]) -> bool:
        self._session.rate_limit(mapping(record.get("rate_limit_info")))
        return True

    def _denied(self, call: Call) -> bool | None:
        """Whether a call that leaves the queue was refused; null: its stream could not tell."""
        if call.tool_use_id is not None and call.tool_use_id in self._denials:
            return True
        if self._denials.reported or (call.answered and call.is_error is not True):
            return False
        return None
