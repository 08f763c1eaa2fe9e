"""Reading the small inputs of `tests/fixtures/bug_inputs`, each with the values that are right for it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skilltrial.tasks.ingest.records import StreamSummary
from skilltrial.tasks.ingest.stream import read_stream
from tests.ingest.sinks import MemorySink

FIXTURES = Path(__file__).parents[1] / "fixtures"
CAPTURES = FIXTURES / "captures" / "claude"


@dataclass
class Reading:
    """One stream as it was read."""

    summary: StreamSummary
    rows: dict[str, list[dict[str, Any]]]

    def table(self, name: str) -> list[dict[str, Any]]:
        """The rows of one table."""
        return self.rows.get(name, [])


def read(path: Path, **options: Any) -> Reading:
    """Read a stream into memory."""
    sink = MemorySink()
    summary = read_stream(path, sink, **options)
    return Reading(summary, sink.rows)


def read_text(folder: Path, *records: dict[str, Any]) -> Reading:
    """Read a stream of these records."""
    path = folder / "events.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return read(path)


def bug_input(name: str, file: str = "input.jsonl") -> Reading:
    """Read one of the bug inputs."""
    return read(FIXTURES / "bug_inputs" / name / file)


def expected(name: str) -> dict[str, Any]:
    """What is right for it."""
    found: dict[str, Any] = json.loads((FIXTURES / "bug_inputs" / name / "expected.json").read_text())
    return found


def capture(name: str) -> Reading:
    """Read a stream that claude 2.1.332 wrote."""
    return read(CAPTURES / f"{name}.jsonl")
