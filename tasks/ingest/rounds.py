"""What one round used by itself, when a resumed session reports running totals.

Claude Code up to 2.1.276 starts the totals of a resumed session at zero, 2.1.277 and later go on from the
earlier rounds (their change log; 2.1.332, measured). The newest versions also report what was used since the
last result, which needs no subtraction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from skilltrial.tasks.ingest.records import StreamSummary, Usage
from skilltrial.tasks.ingest.usage import KINDS, merge

CUMULATIVE_SINCE: Final = (2, 1, 277)
"""The first version of Claude Code whose totals go on over resumed rounds."""

_CENTS: Final = 10  # decimals that survive a subtraction of prices


@dataclass(frozen=True, slots=True)
class SessionTotals:
    """What a session had used when a round began."""

    cost_usd: float | None = None
    by_model: Mapping[str | None, Usage] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RoundUsage:
    """What one round used, and what its session has used at its end."""

    by_model: Mapping[str | None, Usage]
    cost_usd: float | None
    totals: SessionTotals
    notes: tuple[str, ...] = ()


def round_usage(summary: StreamSummary, before: SessionTotals | None = None) -> RoundUsage:
    """The usage of the round that `summary` is of; `before` is null for the first round of a session."""
    reported = SessionTotals(_cost(summary), summary.usage_all)
    if before is None:
        return RoundUsage(reported.by_model, reported.cost_usd, reported)
    if summary.last_result is None:
        return RoundUsage(reported.by_model, None, before)
    if summary.usage_round is not None:
        costs = [usage.cost_usd for usage in summary.usage_round.values() if usage.cost_usd is not None]
        return RoundUsage(summary.usage_round, sum(costs) if costs else _difference(reported, before), reported)
    kind = _is_cumulative(summary, reported, before)
    if kind is None:
        alone: dict[str | None, Usage] = {}
        if summary.usage_main is not None:
            alone[None] = replace(summary.usage_main, cost_usd=None)
        return RoundUsage(alone, None, reported, ("cost_kind_unknown",))
    if kind:
        by_model = {model: _minus(usage, before.by_model.get(model)) for model, usage in reported.by_model.items()}
        return RoundUsage(by_model, _difference(reported, before), reported)
    known = [cost for cost in (before.cost_usd, reported.cost_usd) if cost is not None]
    after = SessionTotals(round(sum(known), _CENTS) if known else None, merge(before.by_model, reported.by_model))
    return RoundUsage(reported.by_model, reported.cost_usd, after)


def _is_cumulative(summary: StreamSummary, reported: SessionTotals, before: SessionTotals) -> bool | None:
    """Whether the totals hold the earlier rounds too; null: nothing tells."""
    if reported.cost_usd is not None and before.cost_usd is not None and reported.cost_usd < before.cost_usd:
        return False
    if summary.harness == "scripted":
        return True
    if summary.harness != "claude-code":
        return False
    version = _version(summary.cli_version)
    return version >= CUMULATIVE_SINCE if version is not None else None


def _version(text: str | None) -> tuple[int, ...] | None:
    parts = (text or "").split(" ")[0].split(".")
    return tuple(int(part) for part in parts) if len(parts) == 3 and all(part.isdecimal() for part in parts) else None


def _cost(summary: StreamSummary) -> float | None:
    if summary.cost_usd is not None:
        return summary.cost_usd
    if summary.last_result is not None and summary.last_result.session_cost_usd is not None:
        return summary.last_result.session_cost_usd if len(summary.session_ids) < 2 else None
    costs = [usage.cost_usd for usage in summary.usage_all.values() if usage.cost_usd is not None]
    return sum(costs) if costs else None


def _difference(reported: SessionTotals, before: SessionTotals) -> float | None:
    if reported.cost_usd is None:
        return None
    return round(reported.cost_usd - (before.cost_usd or 0.0), _CENTS)


def _minus(usage: Usage, before: Usage | None) -> Usage:
    if before is None:
        return usage
    cost = usage.cost_usd
    less = replace(usage, cost_usd=None if cost is None else round(max(cost - (before.cost_usd or 0.0), 0.0), _CENTS))
    if usage.source == "model_usage":  # tokens of any other source are those of the round already
        for kind in KINDS:
            tokens = getattr(usage, kind)
            if tokens is not None:
                setattr(less, kind, max(tokens - (getattr(before, kind) or 0), 0))
    return less
