"""Real streams of many versions: nothing breaks, every line is accounted for, and the counts are right."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Final

import pytest

from tests.ingest.bug_input import read

pytestmark = pytest.mark.corpus

_ROOT: Final = Path(os.environ.get("SKILLTRIAL_CORPUS", "/nonexistent")) / "streams"
_FOLDERS: Final = ("claude", "claude-json", "claude-mutated", "claude-transcript", "other")

_OTHER_COUNTS: Final = {
    73: "one pretty-printed result object, which the index reads line by line",
    74: "one pretty-printed result object, which the index reads line by line",
    284: "cut after the index was made",
    286: "two streams interleaved, of which the index counts one",
}
"""Rows whose counts differ from the index, and why."""

_NO_CLAUDE_RECORD: Final = {134}
"""A program's log, in which no line is a record of Claude Code."""


def _rows() -> dict[int, dict[str, str]]:
    index = _ROOT / "INDEX.tsv"
    if not index.is_file():
        return {}
    with index.open(encoding="utf-8", newline="") as handle:
        return {int(row["n"]): row for row in csv.DictReader(handle, delimiter="\t")}


_INDEX: Final = _rows()
_STREAMS: Final = sorted(path for folder in _FOLDERS for path in (_ROOT / folder).glob("*.jsonl"))


@pytest.mark.skipif(not _STREAMS, reason="SKILLTRIAL_CORPUS does not name a folder with streams/INDEX.tsv")
@pytest.mark.parametrize("path", _STREAMS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_real_stream_is_read_whole(path: Path) -> None:
    number = int(path.stem)
    row = _INDEX[number]
    found = read(path)
    summary, coverage = found.summary, found.summary.coverage
    accounted = coverage.parsed + coverage.unknown_type + coverage.malformed + coverage.blank + coverage.truncated
    assert coverage.lines == accounted
    assert coverage.bytes == path.stat().st_size
    if row["harness"] == "other" or number in _NO_CLAUDE_RECORD:
        assert (summary.harness, coverage.parsed, found.rows) == ("unknown", 0, {})
        return
    assert summary.harness == "claude-code"
    if number not in _OTHER_COUNTS:
        listed = sum("result" in denial["evidence"] for denial in found.table("denials"))
        counts = (summary.tool_calls, listed, summary.results)
        assert counts == tuple(int(row[name] or 0) for name in ("tool_use", "permission_denials", "has_result"))


@pytest.mark.skipif(not _STREAMS, reason="SKILLTRIAL_CORPUS does not name a folder with streams/INDEX.tsv")
def test_almost_every_record_is_of_a_known_type() -> None:
    unknown = {path.stem: read(path).summary.coverage.unknown_types for path in _STREAMS if path.parent.name != "other"}
    assert {stem: types for stem, types in unknown.items() if types} == {
        "042": {"content_block_delta"},  # made by hand
        "173": {"system/info"},  # made by hand
    }
