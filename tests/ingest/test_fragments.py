"""An attempt's streams become its fragments once, and again only when the streams or the parser changed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from skilltrial.data.attempt import AttemptRecord, EndedBy, ProcessRecord, RoundRecord
from skilltrial.data.digests import file_digest
from skilltrial.data.outcomes import Outcome
from skilltrial.data.store import AttemptFolder
from skilltrial.data.tables import TABLES
from skilltrial.descriptors.loading import descriptor
from skilltrial.tasks.ingest.fragments import (
    SESSION_TABLES,
    ingest_attempt,
    ingest_path,
    is_ingested,
    parser_stamp,
    read_ingest,
)
from skilltrial.tasks.ingest.parsers.claude import ClaudeParser
from tests.ingest.bug_input import CAPTURES, FIXTURES

CLAUDE = descriptor("claude-code")
START = datetime(2026, 1, 2, 3, 4, 5, 678000, UTC)


def attempt_of(folder: Path, *streams: Path | None) -> tuple[AttemptFolder, AttemptRecord]:
    """An attempt with one round for each stream; null: the process never wrote one."""
    attempt = AttemptFolder(folder / "attempt-1")
    rounds = []
    for number, stream in enumerate(streams, 1):
        events = attempt.events(number)
        if stream is not None:
            events.parent.mkdir(parents=True)
            events.write_bytes(stream.read_bytes())
        process = ProcessRecord(
            ended_by=EndedBy.EXIT,
            exit_code=0,
            started_at=START,
            duration_ms=1500,
            stdout_bytes=1,
            stderr_bytes=2,
            leftovers=0,
        )
        digest = file_digest(events) if stream is not None else None
        rounds.append(RoundRecord(round=number, argv=("x",), process=process, events_digest=digest, session_id=None))
    told: dict[str, Any] = dict.fromkeys(("cli_version", "model", "permission_mode", "session_id"))
    record = AttemptRecord(
        campaign="c",
        eval_id="e",
        condition="with_skill",
        repetition=1,
        attempt=1,
        cell_digest="d",
        outcome=Outcome.COMPLETED,
        reason="",
        started_at=START,
        duration_ms=3000,
        workspace="w",
        baseline="b",
        prompt_digest="p",
        harness="claude-code",
        worker="host",
        rounds=tuple(rounds),
        **told,
    )
    return attempt, record


def fragment(attempt: AttemptFolder, name: str) -> pl.DataFrame:
    frame = pl.read_parquet(attempt.fragments / f"{name}.parquet")
    TABLES[name].check(frame)
    return frame


def test_every_session_table_is_written_and_the_round_is_summed_up(tmp_path: Path) -> None:
    attempt, record = attempt_of(tmp_path, CAPTURES / "e-hook-deny-json.jsonl")
    ingest_attempt(attempt, record, CLAUDE)
    assert {path.stem for path in attempt.fragments.iterdir()} == set(SESSION_TABLES)
    assert fragment(attempt, "denials").select("round", "order", "tool", "source").rows() == [
        (1, 0, "Bash", "hook"),
        (1, 1, "Write", "hook"),
    ]
    assert fragment(attempt, "tool_calls").select("tool", "role", "denied").rows() == [
        ("Bash", "shell", True),
        ("Write", "write", True),
        ("Bash", "shell", False),
    ]
    [row] = fragment(attempt, "rounds").rows(named=True)
    assert (row["ended_by"], row["exit_code"], row["duration_ms"], row["started_at"]) == ("exit", 0, 1500, START)
    assert (row["results"], row["result_subtype"], row["terminal_reason"]) == (1, "success", "completed")
    assert (row["cost_usd"], row["session_cost_usd"], row["cli_version"]) == (0.00624, 0.00624, "2.1.332")
    [coverage] = fragment(attempt, "parse_coverage").rows(named=True)
    assert (coverage["lines"], coverage["parsed"], coverage["bytes"]) == (9, 9, 9855)
    kept = read_ingest(attempt)
    assert kept is not None
    [part] = kept.rounds
    assert (part.denials, part.tool_calls, part.final_text, part.harness) == (2, 3, "Done.", "claude-code")
    assert part.tokens is not None
    assert (part.tokens.input_tokens, part.tokens.output_tokens, part.tokens.exact) == (400, 200, True)


@pytest.mark.parametrize("file", ["resumed_new_cli.jsonl", "resumed_old_cli.jsonl"])
def test_resumed_rounds_have_their_own_cost_and_the_reported_total(file: str, tmp_path: Path) -> None:
    folder = FIXTURES / "bug_inputs" / "B15"
    case = json.loads((folder / "expected.json").read_text())["cases"][file]
    attempt, record = attempt_of(tmp_path, folder / "prior.jsonl", folder / file)
    ingest_attempt(attempt, record, CLAUDE)
    rounds = fragment(attempt, "rounds")
    assert rounds["cost_usd"].to_list() == [0.4, case["cost_this_run"]]
    assert rounds["session_cost_usd"].to_list() == [0.4, case["cost_reported"]]
    usage = fragment(attempt, "usage").filter(scope="all")
    assert usage["cost_usd"].sum() == case["session_total"]
    assert usage["output_tokens"].to_list() == [200, 200]


def test_a_second_call_changes_nothing(tmp_path: Path) -> None:
    attempt, record = attempt_of(tmp_path, CAPTURES / "a-plain.jsonl")
    ingest_attempt(attempt, record, CLAUDE)
    assert is_ingested(attempt, record, CLAUDE)
    files = {path: path.stat().st_mtime_ns for path in (*attempt.fragments.iterdir(), ingest_path(attempt))}
    attempt.events(1).unlink()
    ingest_attempt(attempt, record, CLAUDE)
    assert {path: path.stat().st_mtime_ns for path in files} == files


def test_other_streams_a_newer_parser_or_a_lost_file_ingest_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt, record = attempt_of(tmp_path, CAPTURES / "a-plain.jsonl")
    ingest_attempt(attempt, record, CLAUDE)
    other = record.model_copy(update={"rounds": (record.rounds[0].model_copy(update={"events_digest": "other"}),)})
    assert not is_ingested(attempt, other, CLAUDE)
    (attempt.fragments / "usage.parquet").unlink()
    assert not is_ingested(attempt, record, CLAUDE)
    ingest_attempt(attempt, record, CLAUDE)
    assert is_ingested(attempt, record, CLAUDE)
    stamp = parser_stamp(CLAUDE)
    monkeypatch.setattr(ClaudeParser, "version", ClaudeParser.version + 1)
    assert parser_stamp(CLAUDE) != stamp
    assert not is_ingested(attempt, record, CLAUDE)
    ingest_attempt(attempt, record, CLAUDE)
    assert fragment(attempt, "parse_coverage")["parser_version"].to_list() == [ClaudeParser.version]


def test_an_ingest_that_was_broken_off_is_not_taken_for_done(tmp_path: Path) -> None:
    attempt, record = attempt_of(tmp_path, CAPTURES / "a-plain.jsonl")
    ingest_attempt(attempt, record, CLAUDE)
    ingest_path(attempt).write_text('{"stamp": "cut')
    assert read_ingest(attempt) is None
    assert not is_ingested(attempt, record, CLAUDE)


def test_a_round_without_stream_has_a_row_and_tells_nothing(tmp_path: Path) -> None:
    attempt, record = attempt_of(tmp_path, None)
    ingest_attempt(attempt, record, CLAUDE)
    [row] = fragment(attempt, "rounds").rows(named=True)
    assert (row["results"], row["cost_usd"], row["final_text"], row["session_id"]) == (0, None, None, None)
    assert row["notes"] == ["no_events_file"]
    assert fragment(attempt, "parse_coverage").height == 0
    kept = read_ingest(attempt)
    assert kept is not None
    assert (kept.rounds[0].has_events, kept.rounds[0].skills, kept.rounds[0].tokens) == (False, None, None)
