"""Effects and exact tests for one contrast: pure functions of numbers and of the cells table.

The unit is the eval: repetitions of one eval are no evidence about other evals. For eval i with the
mean scores T_i and C_i of its arms, d_i = T_i − C_i; the estimate is mean(d_i), each eval weighing the
same, with the sample standard deviation and SE = sd / √n (E. Miller, arXiv 2411.00640, paired
differences). Its p value is that of a sign-flip permutation test, which assumes nothing but that the
arms could be swapped.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import polars as pl

from skilltrial.data.benchmark import EvalEffect
from skilltrial.data.outcomes import Counting

TIE: Final = 1e-9
"""Differences of scores below this are ties: means of fractions that are equal differ in their last bits."""

EXACT_LIMIT: Final = 20
"""Untied evals up to which all 2^k sign patterns are counted."""

NO_PAIR: Final = "no eval has a score in both arms"

MONTE_CARLO_DRAWS: Final = 99_999
MONTE_CARLO_SEED: Final = 20_240_531


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean difference over evals. Null: cannot be had; `unavailable` says why for each null figure."""

    effect: float | None
    sd: float | None
    se: float | None
    unavailable: dict[str, str]


@dataclass(frozen=True, slots=True)
class SignFlip:
    """Two-sided p of the sign-flip test, and how it was found."""

    p: float
    method: Literal["exact", "monte_carlo"]


def eval_effects(cells: pl.DataFrame, treatment: str, control: str, evals: Iterable[str]) -> list[EvalEffect]:
    """Means and difference for each of `evals`, sorted, from rows of the cells table.

    Only cells whose `counting` is `scored` and whose `score` is a number take part.
    """
    rows = with_score(cells).group_by("eval_id", "condition").agg("score").iter_rows()
    scores: dict[tuple[str, str], list[float]] = {(eval_id, condition): values for eval_id, condition, values in rows}
    effects = []
    for eval_id in sorted(set(evals)):
        t_scores, c_scores = scores.get((eval_id, treatment), []), scores.get((eval_id, control), [])
        t_mean, c_mean = mean(t_scores), mean(c_scores)
        effects.append(
            EvalEffect(
                eval_id=eval_id,
                treatment_mean=t_mean,
                control_mean=c_mean,
                difference=None if t_mean is None or c_mean is None else difference(t_mean, c_mean),
                n_t=len(t_scores),
                n_c=len(c_scores),
            )
        )
    return effects


def mean(values: Sequence[float]) -> float | None:
    """The mean, the same whatever the order of the values; null: there is none."""
    return math.fsum(values) / len(values) if values else None


def scored(cells: pl.DataFrame) -> pl.DataFrame:
    """The rows whose outcome counts, graded or not."""
    return cells.filter(pl.col("counting") == Counting.SCORED.value)


def excluded(cells: pl.DataFrame) -> pl.DataFrame:
    """The rows that infrastructure kept from telling anything."""
    return cells.filter(pl.col("counting") == Counting.EXCLUDED.value)


def with_score(cells: pl.DataFrame) -> pl.DataFrame:
    """The rows that count towards an effect: scored, with a score."""
    return scored(cells).filter(pl.col("score").is_not_null() & pl.col("score").is_not_nan())


def differences(effects: Iterable[EvalEffect]) -> list[float]:
    """The differences of the evals that have one."""
    return [effect.difference for effect in effects if effect.difference is not None]


def untied(values: Iterable[float]) -> list[float]:
    """The differences that are not ties."""
    return [value for value in values if abs(value) > TIE]


def estimate(values: Sequence[float]) -> Estimate:
    """Mean, sample standard deviation and standard error of the differences."""
    if not values:
        return Estimate(None, None, None, dict.fromkeys(("effect", "sd", "se"), NO_PAIR))
    effect = math.fsum(values) / len(values)
    if len(values) == 1:
        reason = "one eval has no spread over evals"
        return Estimate(effect, None, None, dict.fromkeys(("sd", "se"), reason))
    sd = math.sqrt(math.fsum((value - effect) ** 2 for value in values) / (len(values) - 1))
    return Estimate(effect, sd, sd / math.sqrt(len(values)), {})


def run_weighted(cells: pl.DataFrame, effects: Iterable[EvalEffect], treatment: str, control: str) -> float | None:
    """Difference of the arms' means over all cells of the evals that have a difference; null: there is none.

    Evals with more repetitions weigh more here; a gap to the effect shows that it matters.
    """
    paired = [effect.eval_id for effect in effects if effect.difference is not None]
    rows = with_score(cells).filter(pl.col("eval_id").is_in(paired))
    t_mean, c_mean = (mean(rows.filter(pl.col("condition") == arm)["score"].to_list()) for arm in (treatment, control))
    return None if t_mean is None or c_mean is None else difference(t_mean, c_mean)


def sign_flip(values: Sequence[float], *, draws: int = MONTE_CARLO_DRAWS, seed: int = MONTE_CARLO_SEED) -> SignFlip:
    """Two-sided sign-flip permutation test of "the arms could be swapped in any eval".

    p = share of the sign patterns whose |sum| is at least the observed one, ties of sums within a
    relative 1e-9 counted as at least. Ties of evals (0) drop out: both their signs give the same sum.
    All tied: 1. Up to `EXACT_LIMIT` untied evals every pattern is counted; above, `draws` seeded random
    ones with p = (b + 1) / (m + 1). Depends only on the |d_i| and their observed sum.
    """
    kept = untied(values)
    if not kept:
        return SignFlip(1.0, "exact")
    sizes = sorted(abs(value) for value in kept)
    threshold = abs(math.fsum(kept)) - TIE * max(1.0, math.fsum(sizes))
    if len(sizes) <= EXACT_LIMIT:
        return SignFlip(_count_patterns(sizes, threshold), "exact")
    total, tables = math.fsum(sizes), _subset_sums(sizes)
    source = random.Random(seed)
    extreme = sum(abs(total - 2 * _flipped(source, tables)) >= threshold for _ in range(draws))
    return SignFlip((extreme + 1) / (draws + 1), "monte_carlo")


def _count_patterns(sizes: Sequence[float], threshold: float) -> float:
    # a pattern and its mirror image are equally extreme, so that the first sign can stay fixed
    sums = [sizes[0]]
    for size in sizes[1:]:
        sums = [total + size for total in sums] + [total - size for total in sums]
    return sum(abs(total) >= threshold for total in sums) / len(sums)


def _subset_sums(sizes: Sequence[float]) -> list[list[float]]:
    """For each eight sizes the sums of all their 256 subsets, so that a random byte picks one."""
    tables = []
    for start in range(0, len(sizes), 8):
        sums = [0.0]
        for size in sizes[start : start + 8]:
            sums += [total + size for total in sums]
        tables.append(sums)
    return tables


def _flipped(source: random.Random, tables: Sequence[Sequence[float]]) -> float:
    bits = source.getrandbits(8 * len(tables))
    total = 0.0
    for sums in tables:
        total += sums[bits & (len(sums) - 1)]
        bits >>= 8
    return total


def sign_test(values: Sequence[float]) -> float:
    """Two-sided exact sign test over the untied differences; 1 when all are tied."""
    kept = untied(values)
    if not kept:
        return 1.0
    fewer = min(sum(value > 0 for value in kept), sum(value < 0 for value in kept))
    tail = sum(math.comb(len(kept), k) for k in range(fewer + 1))
    patterns: int = 2 ** len(kept)
    return min(1.0, max(2 * tail / patterns, sys.float_info.min))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjustment over the p values that exist, in the order given."""
    present = sorted((p, index) for index, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, index) in enumerate(present):
        highest = max(highest, min(1.0, p * (len(present) - rank)))
        adjusted[index] = highest
    return adjusted


def difference(first: float, second: float) -> float:
    """first − second, with a tie as exactly 0: its last bits must not be printed, or counted as a direction."""
    found = first - second
    return 0.0 if abs(found) <= TIE else found
