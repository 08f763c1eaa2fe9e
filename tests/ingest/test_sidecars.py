"""What lies beside a stream."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from skilltrial.data.attempt import EndedBy, ProcessRecord
from skilltrial.tasks.dispatch.facts import ProcessFacts
from skilltrial.tasks.ingest.records import StreamSummary
from skilltrial.tasks.ingest.sidecars import STDERR_BYTES, sidecars


def _summary(*, truncated: int = 0) -> StreamSummary:
    summary = StreamSummary("claude-code", "p", 1)
    summary.coverage.truncated = truncated
    return summary


def test_nothing_beside_a_stream_tells_nothing(tmp_path: Path) -> None:
    found = sidecars(tmp_path / "events.jsonl")
    assert (found.files, found.facts, found.problems) == ((), ProcessFacts(), ())
    assert found.facts_for(_summary()) == ProcessFacts()


@pytest.mark.parametrize(
    ("told", "ended_by"),
    [
        ({"exit_code": 0}, EndedBy.EXIT),
        ({"exit_code": None, "killed_by_us": True, "timeout": True}, EndedBy.DEADLINE),
        ({"exit_code": -9, "killed_by_us": True, "silent_seconds": 900}, EndedBy.SILENCE),
        ({"exit_code": -15, "killed_by_us": True, "seconds_between_result_and_kill": 300}, EndedBy.LINGERING),
        ({"exit_code": -9, "killed_by_us": True}, EndedBy.SILENCE),
        ({}, None),
    ],
)
def test_a_meta_file_tells_what_ended_the_process(
    tmp_path: Path, told: dict[str, Any], ended_by: EndedBy | None
) -> None:
    (tmp_path / "meta.json").write_text(json.dumps(told))
    facts = sidecars(tmp_path / "events.jsonl").facts_for(_summary())
    assert (facts.ended_by, facts.exit_code) == (ended_by, told.get("exit_code"))


def test_a_stream_that_breaks_off_in_a_line_was_not_silent(tmp_path: Path) -> None:
    (tmp_path / "meta.json").write_text('{"killed_by_us":true}')
    assert sidecars(tmp_path / "events.jsonl").facts_for(_summary(truncated=1)).ended_by is None


def test_the_meta_file_of_the_stream_itself_goes_first(tmp_path: Path) -> None:
    (tmp_path / "meta.json").write_text('{"exit_code":1}')
    (tmp_path / "a.meta.json").write_text('{"exit_code":2,"resumed_from":"s","harness":"codex"}')
    found = sidecars(tmp_path / "a.jsonl")
    assert (found.facts.exit_code, found.resumed_from, found.harness) == (2, "s", "codex")
    assert found.files == (tmp_path / "a.meta.json",)


def test_our_own_record_and_the_end_of_stderr_are_read(tmp_path: Path) -> None:
    record = ProcessRecord(
        ended_by=EndedBy.DEADLINE,
        exit_code=-15,
        started_at=datetime(2026, 1, 1, tzinfo=UTC),
        duration_ms=5,
        stdout_bytes=1,
        stderr_bytes=1,
        leftovers=0,
    )
    (tmp_path / "process.json").write_text(record.model_dump_json())
    (tmp_path / "stderr.log").write_text("x" * STDERR_BYTES + "the end")
    found = sidecars(tmp_path / "events.jsonl")
    assert (found.facts.ended_by, found.facts.exit_code) == (EndedBy.DEADLINE, -15)
    assert len(found.facts.stderr) == STDERR_BYTES
    assert found.facts.stderr.endswith("the end")
    assert [path.name for path in found.files] == ["process.json", "stderr.log"]


@pytest.mark.parametrize(("name", "content"), [("meta.json", "{"), ("meta.json", "[1]"), ("process.json", "{}")])
def test_a_file_that_cannot_be_used_is_a_problem_and_no_fact(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    found = sidecars(tmp_path / "events.jsonl")
    assert (found.files, found.facts) == ((), ProcessFacts())
    [problem] = found.problems
    assert problem.startswith(f"{tmp_path / name} cannot be used: ")
