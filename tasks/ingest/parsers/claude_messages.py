"""Texts of a Claude Code stream on their way to the table `messages`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from skilltrial.tasks.ingest.records import RowSink
from skilltrial.tasks.ingest.values import clip, size_of

WORDS_LIMIT: Final = 1 << 20
"""Characters that are kept of the agent's last words."""


@dataclass(slots=True)
class Voice:
    """Whose texts the blocks of one record are."""

    role: str
    message_id: str | None
    parent: str | None
    model: str | None
    synthetic: bool
    main: bool
    at: datetime | None


class MessageLog:
    """Hands on texts, each once, and remembers the last words of the main agent."""

    def __init__(self, sink: RowSink) -> None:
        self.synthetic = 0
        self.repeated = False
        self._sink = sink
        self._order = 0
        self._held: dict[str, Any] | None = None
        self._held_text = ""
        self._seen: set[int] = set()
        self._words: list[str] = []
        self._speaker: Voice | None = None

    @property
    def last_words(self) -> str | None:
        """The text blocks of the main agent's last message that has any, joined by line feeds; null: none."""
        return clip("\n".join(self._words), WORDS_LIMIT) if self._words else None

    def is_repeated(self, record: dict[str, Any], message: dict[str, Any]) -> bool:
        """Whether the very same record came before, as in a stream that was written twice."""
        identifier = record.get("uuid")
        content = message.get("content")
        block = content[0] if type(content) is list and content else None
        mark = None
        if type(block) is dict:  # hand-written streams may carry one uuid throughout
            mark = block.get("id") or block.get("tool_use_id") or block.get("text") or block.get("thinking")
        if type(identifier) is not str:
            identifier = message.get("id")  # old versions gave records no uuid
            if type(identifier) is not str or type(mark) is not str:
                return False
        key = hash((identifier, mark if type(mark) is str else None))
        if key in self._seen:
            self.repeated = True
            return True
        self._seen.add(key)
        return False

    def said(self, voice: Voice, kind: str, text: object, calls: int) -> None:
        """Take one block of text. A block that continues the one before replaces it: some versions repeat it."""
        if not isinstance(text, str) or not text:
            return
        grown = self._grown(voice, kind, text)
        if kind == "text" and voice.main and voice.role == "assistant" and not voice.synthetic:
            self._remember(voice, text, grown)
        if not grown:
            self._hand_on()
        self._held_text = text
        self._held = {
            "order": self._order,
            "role": voice.role,
            "kind": kind,
            "message_id": voice.message_id,
            "parent_tool_use_id": voice.parent,
            "model": voice.model,
            "synthetic": voice.synthetic,
            "text": clip(text),
            "text_bytes": size_of(text),
            "tool_calls_before": calls,
            "at": voice.at,
        }

    def finish(self) -> None:
        """Hand on the last text."""
        self._hand_on()

    def _grown(self, voice: Voice, kind: str, text: str) -> bool:
        held = self._held
        return (
            held is not None
            and voice.message_id is not None
            and (held["message_id"], held["role"], held["kind"]) == (voice.message_id, voice.role, kind)
            and text.startswith(self._held_text)
        )

    def _remember(self, voice: Voice, text: str, grown: bool) -> None:
        before = self._speaker
        same = before is not None and (voice is before or voice.message_id == before.message_id is not None)
        if not same:
            self._words = []
        elif grown and self._words:
            self._words.pop()
        self._words.append(text)
        self._speaker = voice

    def _hand_on(self) -> None:
        if self._held is not None:
            self._sink.add("messages", self._held)
            self._order += 1
            self._held = None
