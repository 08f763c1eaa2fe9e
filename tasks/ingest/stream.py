"""One event stream: from its bytes to rows and a summary, in bounded memory."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Final

from skilltrial.tasks.ingest.parsers import UNKNOWN, Role, make_parser, sniff
from skilltrial.tasks.ingest.reading import Record, read_records
from skilltrial.tasks.ingest.records import Coverage, RowSink, StreamSummary, Usage
from skilltrial.tasks.ingest.rounds import SessionTotals, round_usage

SNIFFED_RECORDS: Final = 50
"""Records looked at to tell what a stream is."""

_SNIFFED_BYTES: Final = 1 << 24
_UNKNOWN_TYPES: Final = 50


def read_stream(
    path: Path,
    sink: RowSink,
    *,
    parser: str | None = None,
    role: Role | None = None,
    before: Mapping[str, SessionTotals] | None = None,
) -> StreamSummary:
    """Read a whole event file: rows go to `sink`, what sums it up is returned.

    `parser` names the parser; null: the stream tells by its first records. `role` maps a tool's name to what it
    does; null: as the built-in descriptor of such streams says. `before` has, by session id, what the sessions
    used in earlier rounds: rows of usage are then those of this round alone, while the summary keeps what the
    stream reports. Raises `OSError` when the file cannot be read, and nothing because of its content.
    """
    coverage = Coverage()
    with path.open("rb") as handle:
        records = read_records(handle, coverage)
        first: list[Record] = []
        if parser is None:
            for record in records:
                first.append(record)
                if len(first) >= SNIFFED_RECORDS or coverage.bytes > _SNIFFED_BYTES:
                    break
            parser = sniff(first)
        reader = make_parser(parser, sink, role if role is not None else default_role(parser))
        feed = reader.feed
        unknown = 0
        for record in chain(first, records):
            if type(record.get("type")) is not str or not feed(record):
                unknown += 1
                if len(coverage.unknown_types) < _UNKNOWN_TYPES:
                    coverage.unknown_types.add(_type_of(record))
    coverage.parsed -= unknown
    coverage.unknown_type += unknown
    summary = reader.finish()
    summary.coverage = coverage
    _write_usage(sink, summary, before or {})
    _write_surface(sink, summary)
    return summary


def default_role(parser: str) -> Role:
    """What tools do by the first built-in descriptor whose streams that parser reads."""
    from skilltrial.descriptors.loading import descriptor, labels

    if parser != UNKNOWN:
        for label in labels():
            found = descriptor(label)
            if found.transcript.parser == parser:
                return found.tools.role
    return _no_role


def _no_role(_: str) -> str:
    return "other"


def totals_before(summary: StreamSummary, before: Mapping[str, SessionTotals]) -> SessionTotals | None:
    """What the session of a stream had used before; null: it is a new one."""
    return next((before[session] for session in summary.session_ids if session in before), None)


def _type_of(record: Record) -> str:
    kind, subtype = record.get("type"), record.get("subtype")
    name = kind if isinstance(kind, str) else "(none)"
    return f"{name}/{subtype}"[:100] if isinstance(subtype, str) else name[:100]


def _write_usage(sink: RowSink, summary: StreamSummary, before: Mapping[str, SessionTotals]) -> None:
    if summary.usage_main is not None:
        sink.add("usage", _usage_row("main", None, summary.usage_main))
    for model, usage in round_usage(summary, totals_before(summary, before)).by_model.items():
        sink.add("usage", _usage_row("all", model, usage))


def _usage_row(scope: str, model: str | None, usage: Usage) -> dict[str, Any]:
    return {
        "scope": scope,
        "model": model,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cache_read_tokens": usage.cache_read_input_tokens,
        "cache_creation_tokens": usage.cache_creation_input_tokens,
        "cost_usd": usage.cost_usd if scope == "all" else None,
        "exact": usage.exact,
        "source": usage.source,
    }


def _write_surface(sink: RowSink, summary: StreamSummary) -> None:
    ids = summary.init_session_ids or summary.session_ids
    seen: set[tuple[str | None, ...]] = set()
    for kind, surface in summary.surfaces.items():
        for entry in surface.entries:
            name, source = entry.get("name") or "", entry.get("source")
            if (kind, name, source) in seen:
                continue
            seen.add((kind, name, source))
            row = {"session_id": ids[0] if ids else None, "kind": kind, "name": name, "source": source}
            sink.add("session_surface", row | {key: entry.get(key) for key in ("version", "status", "path")})
