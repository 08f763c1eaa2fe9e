"""The benchmark as people see it."""

from __future__ import annotations

import io
from pathlib import Path

import orjson
import pytest
from rich.console import Console

from skilltrial.data.benchmark import Benchmark
from skilltrial.data.outcomes import Outcome
from skilltrial.data.store import Store
from skilltrial.tasks.analysis.benchmark import build
from skilltrial.tasks.analysis.compaction import compact
from skilltrial.tasks.analysis.summary import markdown, render, table_rows
from tests.analysis.trials import START, TREATMENT, Trial, eight_evals, make_plan


def benchmark_of(trial: Trial) -> Benchmark:
    compact(trial.plan, trial.store)
    return build(trial.plan, trial.store, now=START)


def printed(benchmark: Benchmark, width: int, home: Path | None = None) -> list[str]:
    console = Console(file=io.StringIO(), width=width, color_system=None, force_terminal=False)
    console.print(render(benchmark, home=home))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_the_verdict_and_its_reason_come_first_and_need_no_colour(store: Store) -> None:
    lines = printed(benchmark_of(eight_evals(store)), 120, store.home)
    assert lines[:4] == [
        "trial: skill csv-tidy on scripted 1.0.0, model-1",
        "",
        "with_skill − without_skill: UNDERPOWERED",
        (
            "  5 of 8 evals came out different (effect +0.300 (SE 0.093)): "
            "no p below 0.0625 can come of that, and alpha is 0.05"
        ),
    ]
    assert "  smallest p: 0.0625 with these evals, 0.00781 if none were tied" in lines
    assert "  e4      1.00 (5)       0.40 (5)       +0.60          │━━━━━" in lines
    assert "cells: 80 planned, 80 settled, 80 with a score" in lines
    assert any(line.startswith("benchmark: ") for line in lines)


@pytest.mark.parametrize("width", [80, 120])
def test_nothing_is_cut_off_at_the_usual_widths(store: Store, width: int) -> None:
    name = "a-rather-long-name-of-an-eval-that-has-to-be-wrapped-somewhere"
    trial = Trial(make_plan(evals=[name, "b"]), store)
    trial.run_all(lambda cell: [True, cell.condition == TREATMENT])
    lines = printed(benchmark_of(trial), width)
    assert max(map(len, lines)) <= width
    assert not [line for line in lines if "…" in line]
    assert "+0.50" in "\n".join(lines)


def test_differences_are_drawn_to_their_side(trial: Trial) -> None:
    trial.run_all(lambda cell: [True, (cell.condition == TREATMENT) == (cell.eval_id == "alpha")])
    lines = printed(benchmark_of(trial), 120)
    (alpha,) = [line for line in lines if line.startswith("  alpha")]
    (beta,) = [line for line in lines if line.startswith("  beta")]
    assert alpha.endswith("+0.50          │━━━━")
    assert beta.endswith("-0.50      ━━━━│")


def test_what_is_not_known_is_a_dash_and_said_in_words(trial: Trial) -> None:
    trial.run(trial.cell("alpha", TREATMENT), [True, True])
    trial.attempt(trial.cell("beta", TREATMENT), Outcome.NETWORK)
    text = "\n".join(printed(benchmark_of(trial), 120))
    assert "effect: not known (no eval has a score in both arms)" in text
    assert "with_skill − without_skill: INVALID" in text
    assert "without a score: 3 and 4 cells; effect between -0.75 and +1.00 whatever they would have been" in text
    assert "cells: 8 planned, 1 settled, 7 unsettled (6 never dispatched), 1 with a score, left out: 1 network" in text
    assert "suspect: 6 of 8 cells were never dispatched" in text


def test_many_evals_are_cut_to_thirty_on_a_terminal_and_complete_in_markdown(store: Store) -> None:
    trial = Trial(make_plan(evals=[f"e{n:02d}" for n in range(33)], repetitions=1), store)
    benchmark = benchmark_of(trial)
    lines = printed(benchmark, 120)
    assert "  and 3 more in benchmark.json" in lines
    assert not [line for line in lines if line.startswith("  e30")]
    assert "| e32 | – (0) | – (0) | – |" in markdown(benchmark).splitlines()


def test_markdown_starts_with_the_verdict_and_escapes_text_from_outside(trial: Trial) -> None:
    denial = {"round": 1, "order": 0, "tool": "mcp__a|b"}
    for cell in trial.plan.cells:
        folder = trial.attempt(cell)
        trial.ingest(folder, cell, denials=[denial] if cell.condition == TREATMENT else [])
        trial.grade(folder, cell, [True, True])
    text = markdown(benchmark_of(trial))
    assert text.splitlines()[2] == "## with_skill − without_skill: **underpowered**"
    assert "mcp\\_\\_a\\|b 4:0" in text


def test_table_rows_are_plain_json_with_the_pair_named_in_each(trial: Trial) -> None:
    trial.run_all(lambda cell: [True, cell.condition == TREATMENT])
    rows = table_rows(benchmark_of(trial))
    assert orjson.loads(orjson.dumps(rows)) == rows
    assert rows[0] == {
        "contrast": "with_skill − without_skill",
        "eval": "(all)",
        "treatment": None,
        "control": None,
        "difference": 0.5,
        "cells": "4 : 4",
        "verdict": "underpowered",
    }
    assert [row["eval"] for row in rows] == ["(all)", "alpha", "beta"]
    assert rows[1]["treatment"] == 1.0


def test_the_paths_come_in_one_piece_at_any_width(store: Store) -> None:
    console = Console(file=io.StringIO(), width=40, color_system=None, force_terminal=False)
    console.print(render(benchmark_of(eight_evals(store)), home=store.home), crop=False)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert f"benchmark: {store.home}/campaigns/trial/benchmark.json" in lines
    assert lines[-1] == f"tables (`skilltrial tables` describes them): {store.home}/tables"
