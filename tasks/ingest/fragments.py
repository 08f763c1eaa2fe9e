"""An attempt's event streams become its fragments of the tables, and `ingest.json`, which is written last.

`ingest.json` says which streams and which parser the fragments come from, and keeps what sums up each round,
so that nobody has to read the streams again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from skilltrial.data.attempt import AttemptRecord, RoundRecord
from skilltrial.data.models import Kept
from skilltrial.data.store import AttemptFolder, kept_model, write_model
from skilltrial.descriptors.model import HarnessDescriptor
from skilltrial.tasks.ingest.parsers import parser_class
from skilltrial.tasks.ingest.records import Coverage, StreamSummary
from skilltrial.tasks.ingest.rounds import RoundUsage, SessionTotals, round_usage
from skilltrial.tasks.ingest.sinks import ParquetSink
from skilltrial.tasks.ingest.stream import read_stream, totals_before
from skilltrial.tasks.ingest.usage import KINDS
from skilltrial.tasks.ingest.values import clip

FRAGMENTS_VERSION: Final = 1
"""Of this module: a higher one writes all fragments anew, as a newer parser does."""

SESSION_TABLES: Final = (
    "rounds",
    "tool_calls",
    "denials",
    "usage",
    "session_surface",
    "messages",
    "parse_coverage",
)
"""The tables that come from event streams."""


class Tokens(Kept):
    """Tokens of the whole tree of agents in one round. Null: not told."""

    input_tokens: int | None
    output_tokens: int | None
    cache_read_input_tokens: int | None
    cache_creation_input_tokens: int | None
    exact: bool  # false: lower bounds


class RoundIngest(Kept):
    """What sums up one round. Nulls and absent kinds: not told."""

    round: int
    has_events: bool
    harness: str | None  # who wrote the stream, by its own account
    cli_version: str | None
    model: str | None
    permission_mode: str | None
    session_ids: tuple[str, ...]
    init_session_ids: tuple[str, ...]
    results: int
    final_text: str | None
    tool_calls: int
    tool_calls_answered: int
    denials: int | None
    surface_kinds: tuple[str, ...]
    skills: tuple[str, ...] | None
    plugins: tuple[dict[str, str | None], ...] | None
    mcp_servers: tuple[dict[str, str | None], ...] | None
    skill_calls: tuple[str, ...]
    unknown_skills: tuple[str, ...]
    unfinished_tasks: tuple[str, ...]
    guard_breaches: tuple[str, ...]
    silent_hooks: int
    tokens: Tokens | None
    cost_usd: float | None  # of this round alone
    session_cost_usd: float | None  # as reported
    notes: tuple[str, ...]


class AttemptIngest(Kept):
    """`ingest.json`."""

    stamp: str  # parser and its version
    events_digests: tuple[str | None, ...]
    rounds: tuple[RoundIngest, ...]


def parser_stamp(descriptor: HarnessDescriptor) -> str:
    """Names the code that fragments of this harness come from: parser, its version, and that of the fragments."""
    name = descriptor.transcript.parser
    return f"{name}-{parser_class(name).version}.{FRAGMENTS_VERSION}"


def ingest_path(attempt: AttemptFolder) -> Path:
    """Where an attempt's `ingest.json` lies."""
    return attempt.root / "ingest.json"


def read_ingest(attempt: AttemptFolder) -> AttemptIngest | None:
    """The attempt's `ingest.json`; null: there is none, or an older version wrote it."""
    return kept_model(ingest_path(attempt), AttemptIngest)


def is_ingested(attempt: AttemptFolder, record: AttemptRecord, descriptor: HarnessDescriptor) -> bool:
    """Whether the attempt's fragments are there and fit its streams and the parser."""
    found = read_ingest(attempt)
    return (
        found is not None
        and found.stamp == parser_stamp(descriptor)
        and found.events_digests == _digests(record)
        and all(attempt.fragment(name).is_file() for name in SESSION_TABLES)
    )


def ingest_attempt(attempt: AttemptFolder, record: AttemptRecord, descriptor: HarnessDescriptor) -> None:
    """Write the fragments of the session tables and `ingest.json`, unless they fit already.

    A round without a readable stream has a row in `rounds` and none elsewhere.
    """
    if is_ingested(attempt, record, descriptor):
        return
    ingest_path(attempt).unlink(missing_ok=True)
    before: dict[str, SessionTotals] = {}
    with ParquetSink(attempt.fragments, record.identity, SESSION_TABLES) as sink:
        rounds = tuple(_ingest_round(attempt, part, descriptor, sink, before) for part in record.rounds)
    stamp = parser_stamp(descriptor)
    write_model(ingest_path(attempt), AttemptIngest(stamp=stamp, events_digests=_digests(record), rounds=rounds))


def _digests(record: AttemptRecord) -> tuple[str | None, ...]:
    return tuple(part.events_digest for part in record.rounds)


def _ingest_round(
    attempt: AttemptFolder,
    part: RoundRecord,
    descriptor: HarnessDescriptor,
    sink: ParquetSink,
    before: dict[str, SessionTotals],
) -> RoundIngest:
    sink.round = part.round
    parser, role = descriptor.transcript.parser, descriptor.tools.role
    try:
        summary = read_stream(attempt.events(part.round), sink, parser=parser, role=role, before=before)
        has_events = True
    except FileNotFoundError:
        summary = StreamSummary(harness=descriptor.label, parser=parser, parser_version=0, notes=["no_events_file"])
        has_events = False
    usage = round_usage(summary, totals_before(summary, before))
    for word in usage.notes:
        summary.note(word)
    for session in summary.session_ids:
        before[session] = usage.totals
    sink.add("rounds", _round_row(part, summary, usage))
    if has_events:
        sink.add("parse_coverage", coverage_row(summary, summary.coverage))
    return _essentials(part, summary, usage, has_events, descriptor.transcript.reports_denials)


def _round_row(part: RoundRecord, summary: StreamSummary, usage: RoundUsage) -> dict[str, Any]:
    process, result = part.process, summary.last_result
    return {
        "ended_by": process.ended_by.value,
        "exit_code": process.exit_code,
        "duration_ms": process.duration_ms,
        "started_at": process.started_at,
        "stderr_bytes": process.stderr_bytes,
        "leftover_processes": process.leftovers,
        "session_id": summary.session_ids[0] if summary.session_ids else part.session_id,
        "session_ids": summary.session_ids,
        "results": summary.results,
        "result_subtype": result.subtype if result else None,
        "result_is_error": result.is_error if result else None,
        "terminal_reason": result.terminal_reason if result else None,
        "api_error_status": result.api_error_status if result else None,
        "api_retries": summary.api_retries,
        "turns": result.turns if result else None,
        "api_duration_ms": result.api_duration_ms if result else None,
        "cost_usd": usage.cost_usd,
        "session_cost_usd": result.session_cost_usd if result else None,
        "permission_mode": summary.permission_mode,
        "model": summary.model,
        "cli_version": summary.cli_version,
        "surface_kinds": sorted(summary.surfaces),
        "unfinished_tasks": summary.unfinished_tasks,
        "final_text": None if summary.final_text is None else clip(summary.final_text),
        "notes": summary.notes,
    }


def coverage_row(summary: StreamSummary, coverage: Coverage) -> dict[str, Any]:
    """The row of `parse_coverage`, without the columns that identify cell and round."""
    return {
        "parser": summary.parser,
        "parser_version": summary.parser_version,
        "bytes": coverage.bytes,
        "lines": coverage.lines,
        "parsed": coverage.parsed,
        "unknown_type": coverage.unknown_type,
        "malformed": coverage.malformed,
        "blank": coverage.blank,
        "truncated": coverage.truncated,
        "longest_line_bytes": coverage.longest_line_bytes,
        "nul_bytes": coverage.nul_bytes,
        "replaced_bytes": coverage.replaced_bytes,
        "unknown_types": sorted(coverage.unknown_types),
    }


def _essentials(
    part: RoundRecord, summary: StreamSummary, usage: RoundUsage, has_events: bool, reports_denials: bool
) -> RoundIngest:
    servers = summary.surfaces.get("mcp_server")
    result = summary.last_result
    return RoundIngest(
        round=part.round,
        has_events=has_events,
        harness=summary.harness if has_events else None,
        cli_version=summary.cli_version,
        model=summary.model,
        permission_mode=summary.permission_mode,
        session_ids=tuple(summary.session_ids),
        init_session_ids=tuple(summary.init_session_ids),
        results=summary.results,
        final_text=summary.final_text,
        tool_calls=summary.tool_calls,
        tool_calls_answered=summary.tool_calls_answered,
        denials=summary.denials if reports_denials else None,
        surface_kinds=tuple(sorted(summary.surfaces)),
        skills=None if summary.skills is None else tuple(summary.skills),
        plugins=None if summary.plugins is None else tuple(summary.plugins),
        mcp_servers=None if servers is None else tuple(servers.entries),
        skill_calls=tuple(summary.skill_calls),
        unknown_skills=tuple(summary.unknown_skills),
        unfinished_tasks=tuple(summary.unfinished_tasks),
        guard_breaches=tuple(summary.guard_breaches),
        silent_hooks=summary.silent_hooks,
        tokens=_tokens(usage),
        cost_usd=usage.cost_usd,
        session_cost_usd=result.session_cost_usd if result else None,
        notes=tuple(summary.notes),
    )


def _tokens(usage: RoundUsage) -> Tokens | None:
    parts = list(usage.by_model.values())
    if not parts:
        return None
    sums: dict[str, int | None] = {}
    for kind in KINDS:
        known = [tokens for part in parts if (tokens := getattr(part, kind)) is not None]
        sums[kind] = sum(known) if known else None
    return Tokens(**sums, exact=all(part.exact for part in parts))
