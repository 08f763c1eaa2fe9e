"""What is known of a process, for the judgement of how an attempt ended."""

from __future__ import annotations

from dataclasses import dataclass

from skilltrial.data.attempt import EndedBy


@dataclass(frozen=True, slots=True)
class ProcessFacts:
    """How the CLI's process ended. Nulls: nobody knows, as with a bare stream on disk."""

    ended_by: EndedBy | None = None
    exit_code: int | None = None  # negative: ended by that signal
    stderr: str = ""
    error: str | None = None  # why it could not be started
