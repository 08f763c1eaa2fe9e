"""Real streams of Codex, OpenCode and Cline: nothing breaks, every line is accounted for, the counts are right."""

from __future__ import annotations

import csv
import os
from pathlib import Path
from typing import Final

import pytest

from tests.ingest.bug_input import read

pytestmark = pytest.mark.corpus

_ROOT: Final = Path(os.environ.get("SKILLTRIAL_CORPUS", "/nonexistent")) / "streams"
_HARNESS: Final = {"codex": "codex", "codex-rollout": "codex", "opencode": "opencode", "cline": "cline"}
_STREAMS: Final = sorted(path for folder in _HARNESS for path in (_ROOT / folder).glob("*.jsonl"))
_COUNTED_APART: Final = {"spawn_agent", "wait"}
"""Calls of Codex to other agents, which the index does not count."""


def _index() -> dict[int, dict[str, str]]:
    with (_ROOT / "INDEX.tsv").open(encoding="utf-8", newline="") as handle:
        return {int(row["n"]): row for row in csv.DictReader(handle, delimiter="\t")}


@pytest.mark.skipif(not _STREAMS, reason="SKILLTRIAL_CORPUS does not name a folder with streams/INDEX.tsv")
@pytest.mark.parametrize("path", _STREAMS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_real_stream_is_read_whole(path: Path) -> None:
    row = _index()[int(path.stem)]
    found = read(path)
    summary, coverage = found.summary, found.summary.coverage
    assert summary.harness == _HARNESS[path.parent.name]
    accounted = coverage.parsed + coverage.unknown_type + coverage.malformed + coverage.blank + coverage.truncated
    assert (coverage.lines, coverage.lines) == (accounted, int(row["lines"]))
    calls = found.table("tool_calls")
    assert (len(calls), sum(call["answered"] for call in calls)) == (summary.tool_calls, summary.tool_calls_answered)
    # of Codex the index counts what was completed, of the others what was called
    counted = [
        call
        for call in calls
        if call["tool"] not in _COUNTED_APART and (call["answered"] or path.parent.name != "codex")
    ]
    assert len(counted) == int(row["tool_use"])
    assert len(found.table("denials")) == int(row["permission_denials"]) == (summary.denials or 0)
    if row["has_result"]:
        assert (summary.results > 0) is (row["has_result"] in ("True", "1"))
