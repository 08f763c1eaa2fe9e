"""Tool calls on their way to the table: in order, held until their answer and their denial are known."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from skilltrial.tasks.ingest.records import RowSink
from skilltrial.tasks.ingest.values import as_json, clip, size_of

HELD_CHARACTERS: Final = 1 << 25
"""Text of calls held back; beyond it the oldest go to the table as they stand."""


@dataclass(slots=True)
class Call:
    """One tool call."""

    order: int
    tool_use_id: str | None
    parent: str | None
    message_id: str | None
    tool: str
    role: str
    arguments: Any  # as the model gave them; dropped once they are text
    skill: str | None
    started_at: datetime | None
    text: str = ""
    text_bytes: int = 0
    keys: tuple[str, ...] = ()
    result: str | None = None
    result_bytes: int | None = None
    result_images: int | None = None
    is_error: bool | None = None
    answered: bool = False
    decision: str | None = None
    decision_source: str | None = None
    decision_reason: str | None = None
    ended_at: datetime | None = None
    decided: bool = False  # nothing that follows can make a denial of it

    def freeze(self) -> None:
        """Turn the arguments into text."""
        whole = as_json(self.arguments)
        self.text, self.text_bytes = clip(whole), size_of(whole)
        self.keys = tuple(self.arguments) if isinstance(self.arguments, dict) else ()
        self.arguments = None

    def row(self, denied: bool | None) -> dict[str, Any]:
        """The row of the table."""
        return {
            "order": self.order,
            "tool_use_id": self.tool_use_id,
            "parent_tool_use_id": self.parent,
            "message_id": self.message_id,
            "tool": self.tool,
            "role": self.role,
            "input": self.text,
            "input_bytes": self.text_bytes,
            "result": self.result,
            "result_bytes": self.result_bytes,
            "result_images": self.result_images,
            "answered": self.answered,
            "is_error": self.is_error,
            "denied": denied,
            "decision": self.decision,
            "decision_source": self.decision_source,
            "decision_reason": self.decision_reason,
            "skill": self.skill,
            "started_at": self.started_at,
            "ended_at": self.ended_at,
        }


class CallQueue:
    """The calls of a stream. `denied` judges a call that leaves the queue."""

    def __init__(self, sink: RowSink, denied: Callable[[Call], bool | None]) -> None:
        self.calls = 0
        self.answered = 0
        self.forced = 0  # calls that left before their answer or their denial was known
        self._sink = sink
        self._denied = denied
        self._queue: deque[Call] = deque()
        self._by_id: dict[str, Call] = {}
        self._seen: set[int] = set()
        self._held = 0

    def is_known(self, tool_use_id: str) -> bool:
        """Whether a call of that id was opened before, held or not."""
        return hash(tool_use_id) in self._seen

    def held(self, tool_use_id: str) -> Call | None:
        """The call of that id, while it is held."""
        return self._by_id.get(tool_use_id)

    def open(self, call: Call) -> None:
        """Take a new call."""
        call.freeze()
        self.calls += 1
        self._queue.append(call)
        self._held += len(call.text)
        if call.tool_use_id is not None:
            self._by_id[call.tool_use_id] = call
            self._seen.add(hash(call.tool_use_id))
        self._drain()

    def answer(self, call: Call, text: str, size: int, images: int) -> None:
        """Take the answer of a held call; `text` is cut here, `size` is that of the whole."""
        if not call.answered:
            self.answered += 1
        self._held -= len(call.result or "")
        call.answered = True
        call.result, call.result_bytes, call.result_images = clip(text), size, images
        self._held += len(call.result)

    def settle(self) -> None:
        """Hand on the calls that are done."""
        queue = self._queue
        while queue and queue[0].answered and queue[0].decided:
            self._leave()
        self._drain()

    def finish(self) -> None:
        """Hand on all calls."""
        while self._queue:
            self._leave()

    def _drain(self) -> None:
        while self._held > HELD_CHARACTERS and len(self._queue) > 1:
            first = self._queue[0]
            self.forced += not (first.answered and first.decided)
            self._leave()

    def _leave(self) -> None:
        call = self._queue.popleft()
        self._held -= len(call.text) + len(call.result or "")
        if call.tool_use_id is not None:
            self._by_id.pop(call.tool_use_id, None)
        self._sink.add("tool_calls", call.row(self._denied(call)))
