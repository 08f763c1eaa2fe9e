"""One stream's whole account: how it ended, what it did, what it used; for whoever looks at a file on disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from skilltrial.data.outcomes import Counting, policy
from skilltrial.tasks.dispatch.outcome import Ending, classify
from skilltrial.tasks.ingest.parsers import UNKNOWN, Role
from skilltrial.tasks.ingest.records import StreamSummary, Usage
from skilltrial.tasks.ingest.rounds import SessionTotals, round_usage
from skilltrial.tasks.ingest.sidecars import Sidecars, sidecars
from skilltrial.tasks.ingest.stream import read_stream, totals_before
from skilltrial.tasks.ingest.usage import KINDS, total

LISTED: Final = 1_000
"""Entries of a list that an account keeps: enough for any session, and bounded."""

_DENIAL_KEYS: Final = ("tool_use_id", "tool", "source", "reason", "evidence", "input_keys")
_RECORDED_AS: Final = {"claude": "claude-code"}


class AccountSink:
    """Keeps what an account tells of single rows, and the rows of one table that somebody wants to see."""

    def __init__(self, table: str | None = None, limit: int | None = None) -> None:
        self.rows: list[dict[str, Any]] = []
        self.left_off = 0  # rows of the table beyond the limit
        self.denials: list[dict[str, Any]] = []
        self.unanswered: list[str | None] = []
        self.errors: list[str | None] = []
        self.subagents: Counter[str] = Counter()
        self._table, self._limit = table, limit

    def add(self, table: str, row: Mapping[str, Any]) -> None:
        """Take one row."""
        if table == self._table:
            if self._limit is None or len(self.rows) < self._limit:
                self.rows.append(dict(row))
            else:
                self.left_off += 1
        if table == "denials" and len(self.denials) < LISTED:
            self.denials.append({key: row[key] for key in _DENIAL_KEYS})
        elif table == "tool_calls":
            self._call(row)

    def _call(self, row: Mapping[str, Any]) -> None:
        parent = row["parent_tool_use_id"]
        if parent is not None and (parent in self.subagents or len(self.subagents) < LISTED):
            self.subagents[parent] += 1
        if not row["answered"] and len(self.unanswered) < LISTED:
            self.unanswered.append(row["tool_use_id"])
        if row["is_error"] and not row["denied"] and len(self.errors) < LISTED:
            self.errors.append(row["tool_use_id"])


@dataclass(frozen=True, slots=True)
class Account:
    """What is known of one stream."""

    file: str
    summary: StreamSummary
    ending: Ending
    beside: Sidecars
    sink: AccountSink
    round_cost_usd: float | None  # of this process alone; null: not told, or what came before is not known

    @property
    def harness(self) -> str:
        """Label of the harness: the stream's, else what its recorder says, else `unknown`."""
        recorded = self.beside.harness
        if self.summary.harness != UNKNOWN or recorded is None:
            return self.summary.harness
        return _RECORDED_AS.get(recorded, recorded)

    def document(self) -> dict[str, Any]:
        """The account as one JSON object. Null: not told."""
        summary, ending = self.summary, self.ending
        coverage = summary.coverage
        return {
            "file": self.file,
            "harness": self.harness,
            "cli_version": summary.cli_version,
            "session_ids": summary.session_ids,
            "outcome": ending.outcome.value,
            "reason": str(ending.reason),
            "final_text": summary.final_text,
            "results": summary.results,
            "has_result": summary.results > 0,
            "tool_calls": summary.tool_calls,
            "tool_calls_answered": summary.tool_calls_answered,
            "denials": None if summary.denials is None else self.sink.denials,
            "usage": {"main": _tokens(summary.usage_main), "all": _tokens(total(summary.usage_all.values()))},
            "cost_usd": round_usage(summary).cost_usd,
            "skills": summary.skills,
            "plugins": summary.plugins,
            "notes": list(ending.notes),
            "coverage": {
                "lines": coverage.lines,
                "parsed": coverage.parsed,
                "unknown_type": coverage.unknown_type,
                "malformed": coverage.malformed,
                "blank": coverage.blank,
                "truncated": coverage.truncated,
            },
            **self._more(),
        }

    def _more(self) -> dict[str, Any]:
        summary, result, facts = self.summary, self.summary.last_result, self.beside.facts_for(self.summary)
        coverage = summary.coverage
        return {
            "detail": self.ending.detail,
            "infrastructure_failure": policy(self.ending.outcome).counting is Counting.EXCLUDED,
            "denial_count": summary.denials,
            "round_cost_usd": self.round_cost_usd,
            "usage_exact": None if summary.usage_main is None else summary.usage_main.exact,
            "model": summary.model,
            "models": sorted(model for model in summary.usage_all if model is not None),
            "model_messages": summary.model_messages,
            "synthetic_messages": summary.synthetic_messages,
            "permission_mode": summary.permission_mode,
            "init_seen": bool(summary.init_session_ids),
            "surface_kinds": sorted(summary.surfaces),
            "mcp_servers": _servers(summary),
            "skill_calls": summary.skill_calls,
            "unknown_skill_calls": summary.unknown_skills,
            "unanswered_tool_calls": self.sink.unanswered,
            "failed_tool_calls": self.sink.errors,
            "subagents": dict(self.sink.subagents),
            "unfinished_background_tasks": summary.unfinished_tasks,
            "guard_breaches": summary.guard_breaches,
            "api_errors": summary.api_errors,
            "api_retries": summary.api_retries,
            "api_error_status": result.api_error_status if result is not None else None,
            "turns": result.turns if result is not None else None,
            "last_record": summary.last_record,
            "ended_by": None if facts.ended_by is None else facts.ended_by.value,
            "exit_code": facts.exit_code,
            "sidecars": [path.name for path in self.beside.files],
            "parser": f"{summary.parser}/{summary.parser_version}",
            "stream": {
                "bytes": coverage.bytes,
                "longest_line_bytes": coverage.longest_line_bytes,
                "nul_bytes": coverage.nul_bytes,
                "replaced_bytes": coverage.replaced_bytes,
                "unknown_types": sorted(coverage.unknown_types),
            },
        }


@dataclass(slots=True)
class Accountant:
    """Reads streams one after the other; a resumed one is charged what it added to those before it."""

    parser: str | None = None
    role: Role | None = None
    table: str | None = None
    limit: int | None = None
    _totals: dict[str, SessionTotals] = field(default_factory=dict)

    def read(self, path: Path, *, file: str | None = None) -> Account:
        """The account of one stream; `OSError` when it cannot be read. `file` is how it is called."""
        beside = sidecars(path)
        sink = AccountSink(self.table, self.limit)
        summary = read_stream(path, sink, parser=self.parser, role=self.role)
        ending = classify(beside.facts_for(summary), summary, None)
        return Account(file or str(path), summary, ending, beside, sink, self._cost(summary, beside))

    def _cost(self, summary: StreamSummary, beside: Sidecars) -> float | None:
        before = None
        if beside.resumed_from is not None:  # older versions give a resumed session another id
            before = totals_before(summary, self._totals) or self._totals.get(beside.resumed_from)
        usage = round_usage(summary, before)
        for session in summary.session_ids:
            self._totals[session] = usage.totals
        return None if beside.resumed_from is not None and before is None else usage.cost_usd


def _tokens(usage: Usage | None) -> dict[str, int | None] | None:
    return None if usage is None else {kind: getattr(usage, kind) for kind in KINDS}


def _servers(summary: StreamSummary) -> list[dict[str, Any]] | None:
    """The MCP servers, with how many of their tools the session has; null: not reported."""
    surface, tools = summary.surfaces.get("mcp_server"), summary.surfaces.get("tool")
    if surface is None:
        return None
    names = [entry.get("name") or "" for entry in tools.entries] if tools is not None else None
    return [
        {
            "name": entry.get("name"),
            "status": entry.get("status"),
            "tools": None if names is None else sum(name.startswith(f"mcp__{entry.get('name')}__") for name in names),
        }
        for entry in surface.entries
    ]
