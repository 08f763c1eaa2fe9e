"""What a resumed round used by itself."""

from __future__ import annotations

import pytest

from skilltrial.tasks.ingest.records import LastResult, StreamSummary, Usage
from skilltrial.tasks.ingest.rounds import SessionTotals, round_usage

BEFORE = SessionTotals(0.4, {"m": Usage(100, 10, 50, 5, 0.3, source="model_usage"), "n": Usage(1, cost_usd=0.1)})


def summary_of(version: str | None, cost: float | None, harness: str = "claude-code") -> StreamSummary:
    found = StreamSummary(harness=harness, parser="p", parser_version=1, cli_version=version)
    found.last_result = LastResult(session_cost_usd=cost)
    found.usage_main = Usage(30, 3)
    found.usage_all = {"m": Usage(130, 13, 50, 5, cost, source="model_usage")}
    return found


def test_a_first_round_is_what_it_reports() -> None:
    usage = round_usage(summary_of("2.1.332", 0.5))
    assert (usage.cost_usd, usage.totals.cost_usd) == (0.5, 0.5)
    assert usage.by_model["m"].input_tokens == 130


@pytest.mark.parametrize(("version", "harness"), [("2.1.277", "claude-code"), ("0.1.0 (scripted)", "scripted")])
def test_running_totals_are_subtracted_model_by_model(version: str, harness: str) -> None:
    usage = round_usage(summary_of(version, 0.55, harness), BEFORE)
    assert (usage.cost_usd, usage.totals.cost_usd) == (0.15, 0.55)
    alone = usage.by_model["m"]
    assert (alone.input_tokens, alone.output_tokens, alone.cache_read_input_tokens, alone.cost_usd) == (30, 3, 0, 0.25)


@pytest.mark.parametrize(("version", "cost"), [("2.1.276", 0.55), ("2.1.277", 0.15), (None, 0.15)])
def test_totals_that_start_at_zero_are_taken_as_they_are(version: str | None, cost: float) -> None:
    usage = round_usage(summary_of(version, cost), BEFORE)
    assert (usage.cost_usd, usage.totals.cost_usd) == (cost, round(0.4 + cost, 10))
    assert usage.by_model["m"].input_tokens == 130
    assert usage.totals.by_model["m"].input_tokens == 230


def test_totals_of_an_unknown_kind_leave_the_cost_open() -> None:
    usage = round_usage(summary_of("strange", 0.55), BEFORE)
    assert (usage.cost_usd, usage.notes) == (None, ("cost_kind_unknown",))
    assert {model: part.input_tokens for model, part in usage.by_model.items()} == {None: 30}


def test_what_is_told_since_the_last_result_needs_no_subtraction() -> None:
    summary = summary_of("2.1.332", 0.55)
    summary.usage_round = {"m": Usage(31, 4, cost_usd=0.15)}
    usage = round_usage(summary, BEFORE)
    assert (usage.cost_usd, usage.by_model["m"].input_tokens, usage.totals.cost_usd) == (0.15, 31, 0.55)


def test_a_killed_round_has_no_cost_and_leaves_the_totals() -> None:
    summary = summary_of("2.1.332", None)
    summary.last_result = None
    summary.usage_all = {"m": Usage(7, 1, exact=False)}
    usage = round_usage(summary, BEFORE)
    assert (usage.cost_usd, usage.totals) == (None, BEFORE)
    assert usage.by_model["m"].input_tokens == 7
