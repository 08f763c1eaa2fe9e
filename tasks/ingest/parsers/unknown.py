"""The parser for streams that no parser knows: their records are counted, and nothing is read into them."""

from __future__ import annotations

from typing import Any, ClassVar

from skilltrial.tasks.ingest.parsers import UNKNOWN, Role
from skilltrial.tasks.ingest.records import RowSink, StreamSummary


class UnknownParser:
    """Knows no type of record."""

    name: ClassVar[str] = UNKNOWN
    version: ClassVar[int] = 1

    def __init__(self, sink: RowSink, role: Role) -> None:
        """Takes what every parser takes, and needs none of it."""

    def feed(self, record: dict[str, Any]) -> bool:  # noqa: ARG002  (what every parser takes)
        """Every record is of an unknown type."""
        return False

    def finish(self) -> StreamSummary:
        """A summary that tells nothing."""
        return StreamSummary(harness=UNKNOWN, parser=self.name, parser_version=self.version)
