"""What the parsers of codex, opencode and cline share: each event tells one thing, and each becomes one row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

from skilltrial.tasks.ingest.calls import Call, CallQueue
from skilltrial.tasks.ingest.denials import REASON_LIMIT
from skilltrial.tasks.ingest.records import RowSink, StreamSummary
from skilltrial.tasks.ingest.values import as_json, clip, size_of

_ERROR_TEXTS: Final = 20
_ERROR_TEXT_LIMIT: Final = 2_000
_SKILL_CALLS: Final = 1_000


class Ledger:
    """Calls, denials and messages of one stream; counts them in the summary as they come.

    `vocabulary` says what a tool does where `role` does not know it, as for a stream that is read
    without a descriptor. `reports_denials` false: a call that was not refused has `denied` null.
    """

    def __init__(
        self,
        sink: RowSink,
        role: Callable[[str], str],
        vocabulary: Mapping[str, str],
        summary: StreamSummary,
        *,
        reports_denials: bool,
    ) -> None:
        self.summary = summary
        self._sink, self._role, self._vocabulary = sink, role, vocabulary
        self._reports_denials = reports_denials
        self._queue = CallQueue(sink, self._was_denied)
        self._denied: set[int] = set()  # orders of refused calls that are still held
        self._denials = self._messages = 0

    def call(
        self,
        tool: str,
        arguments: object,
        *,
        tool_use_id: str | None = None,
        parent: str | None = None,
        message_id: str | None = None,
        skill: str | None = None,
        at: datetime | None = None,
    ) -> Call:
        """Note a call in the order of the stream."""
        role = self._role(tool)
        if role == "other":
            role = self._vocabulary.get(tool, "other")
        call = Call(self.summary.tool_calls, tool_use_id, parent, message_id, tool, role, arguments, skill, at)
        call.decided = True  # such streams report a refusal in the answer itself
        self.summary.tool_calls += 1
        if skill is not None and len(self.summary.skill_calls) < _SKILL_CALLS:
            self.summary.skill_calls.append(skill)
        self._queue.open(call)
        return call

    def waiting(self, tool_use_id: str | None) -> Call | None:
        """The unanswered call of that id."""
        call = self._queue.held(tool_use_id) if tool_use_id is not None else None
        return None if call is None or call.answered else call

    def answer(
        self, call: Call, result: str, *, is_error: bool | None, at: datetime | None = None, images: int = 0
    ) -> None:
        """Note the answer of a call; a second answer of the same call changes nothing."""
        if call.answered:
            return
        call.is_error, call.ended_at = is_error, at
        self._queue.answer(call, result, size_of(result), images)
        self.summary.tool_calls_answered += 1
        self._queue.settle()

    def deny(
        self, call: Call, source: str, reason: str, *, evidence: str = "text", agent_id: str | None = None
    ) -> None:
        """Note that a call was refused; comes before its answer."""
        self._denied.add(call.order)
        row = {
            "order": self._denials,
            "tool_use_id": call.tool_use_id,
            "tool": call.tool,
            "source": source,
            "reason": clip(reason, REASON_LIMIT),
            "reason_type": None,
            "evidence": [evidence],
            "input_keys": sorted(call.keys),
            "agent_id": agent_id,
        }
        self._denials += 1
        self.summary.denials = self._denials
        self._sink.add("denials", row)

    def message(
        self,
        text: str,
        *,
        role: str = "assistant",
        kind: str = "text",
        message_id: str | None = None,
        parent: str | None = None,
        model: str | None = None,
        synthetic: bool = False,
        at: datetime | None = None,
    ) -> None:
        """Note a text that was said."""
        row = {
            "order": self._messages,
            "role": role,
            "kind": kind,
            "message_id": message_id,
            "parent_tool_use_id": parent,
            "model": model,
            "synthetic": synthetic,
            "text": clip(text),
            "text_bytes": size_of(text),
            "tool_calls_before": self.summary.tool_calls,
            "at": at,
        }
        self._messages += 1
        self._sink.add("messages", row)

    def error(self, text: str) -> None:
        """Keep the CLI's words of what failed, each once."""
        texts, short = self.summary.error_texts, clip(text, _ERROR_TEXT_LIMIT)
        if short and short not in texts and len(texts) < _ERROR_TEXTS:
            texts.append(short)

    def close(self) -> None:
        """Hand on the calls that nobody answered."""
        self._queue.finish()

    def _was_denied(self, call: Call) -> bool | None:
        if call.order in self._denied:
            self._denied.discard(call.order)
            return True
        return False if self._reports_denials else None


def as_text(value: object) -> str:
    """A text as it is, anything else as JSON, nothing for null."""
    if value is None:
        return ""
    return value if isinstance(value, str) else as_json(value)


def told(value: object) -> str | None:
    """The value where it is a text that says something."""
    return value if isinstance(value, str) and value else None
