"""What missing cells could do to an effect: its bounds if they had all failed, or all passed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Sequence

import polars as pl

from skilltrial.data.benchmark import MissingBounds
from skilltrial.data.outcomes import Counting
from skilltrial.data.plan import Cell
from skilltrial.tasks.analysis.effects import with_score


def missing_bounds(
    planned: Sequence[Cell], cells: pl.DataFrame, treatment: str, control: str, evals: Collection[str]
) -> MissingBounds:
    """Bounds of the effect over `evals`, from the planned cells and rows of the cells table.

    A planned cell is missing when it has no score: never dispatched, excluded, or without any verdict.
    """
    wanted = [cell for cell in planned if cell.eval_id in evals]
    reasons = {arm: _reasons(wanted, cells, arm) for arm in (treatment, control)}
    t_counts, c_counts = (Counter(eval_id for eval_id, _ in reasons[arm]) for arm in (treatment, control))
    sizes = Counter((cell.eval_id, cell.condition) for cell in wanted)
    sums = {
        (eval_id, condition): math.fsum(scores)
        for eval_id, condition, scores in with_score(cells).group_by("eval_id", "condition").agg("score").iter_rows()
    }

    def bound(t_fill: float, c_fill: float) -> float | None:
        found = []
        for eval_id in sorted(evals):
            n_t, n_c = sizes[eval_id, treatment], sizes[eval_id, control]
            if n_t and n_c:
                t_mean = (sums.get((eval_id, treatment), 0.0) + t_fill * t_counts[eval_id]) / n_t
                c_mean = (sums.get((eval_id, control), 0.0) + c_fill * c_counts[eval_id]) / n_c
                found.append(t_mean - c_mean)
        return math.fsum(found) / len(found) if found else None

    return MissingBounds(
        missing_t=t_counts.total(),
        missing_c=c_counts.total(),
        reasons_t=_tally(reasons[treatment]),
        reasons_c=_tally(reasons[control]),
        all_failing=bound(0, 0),
        all_passing=bound(1, 1),
        lowest=bound(0, 1),
        highest=bound(1, 0),
    )


def _reasons(planned: Sequence[Cell], cells: pl.DataFrame, arm: str) -> list[tuple[str, str]]:
    """Eval and reason of each planned cell of the arm that has no score."""
    known = {
        (eval_id, repetition): (outcome, counting)
        for eval_id, repetition, outcome, counting in cells.filter(pl.col("condition") == arm)
        .select("eval_id", "repetition", "outcome", "counting")
        .iter_rows()
    }
    has_score = set(with_score(cells).filter(pl.col("condition") == arm).select("eval_id", "repetition").iter_rows())
    found = []
    for cell in planned:
        place = (cell.eval_id, cell.repetition)
        if cell.condition != arm or place in has_score:
            continue
        outcome, counting = known.get(place, ("not_dispatched", Counting.EXCLUDED))
        found.append((cell.eval_id, "no_verdict" if counting == Counting.SCORED else outcome))
    return found


def _tally(reasons: Sequence[tuple[str, str]]) -> dict[str, int]:
    return dict(sorted(Counter(reason for _, reason in reasons).items()))
