"""The smallest p value that a design can reach at all: worth knowing before any money is spent.

Whatever the agents do, a two-sided sign-flip or sign test over k untied evals cannot fall below
2^(1 − k): one of 2^k sign patterns, and its mirror image. A design whose floor lies above alpha
cannot show an effect, however large it is.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Final

MIN_UNTIED_EVALS: Final = 6
"""Fewest untied evals for a distribution-free claim: 2^(1 − 6) = 0.03125 is the first floor below 0.05."""


@dataclass(frozen=True, slots=True)
class PossibleFloor:
    """The floors of a design before it runs, if no eval comes out tied."""

    evals: int
    repetitions: int  # of each eval and arm; the fewest where evals differ
    across_evals: float  # sign test over the evals: a claim about evals like these
    within_eval: float  # Fisher's exact test on one eval's repetitions: a claim about that eval alone

    def reaches(self, alpha: float) -> bool:
        """Whether the trial as a whole can reach that level across evals."""
        return self.evals >= MIN_UNTIED_EVALS and self.across_evals <= alpha


def possible_floor(evals: int, repetitions: int) -> PossibleFloor:
    """The floors of a contrast over `evals` gradable evals with `repetitions` cells in each arm."""
    return PossibleFloor(evals, repetitions, sign_floor(evals), fisher_floor(repetitions))


def sign_floor(untied: int) -> float:
    """2^(1 − k) for k untied evals; 1 for none. Never 0, however many there are."""
    if untied < 0:
        raise ValueError(f"a number of evals is not negative, got {untied}")
    if untied == 0:
        return 1.0
    return max(math.ldexp(1.0, 1 - untied), sys.float_info.min)


def fisher_floor(repetitions: int) -> float:
    """2 / C(2n, n): n passes of n against none of n, both directions. Never 0; 1 without repetitions."""
    if repetitions < 0:
        raise ValueError(f"a number of repetitions is not negative, got {repetitions}")
    return min(1.0, max(2 / math.comb(2 * repetitions, repetitions), sys.float_info.min))


def probability_text(value: float) -> str:
    """A probability with three significant digits: `1`, `0.0625`, `1.08e-05`."""
    return "1" if value >= 1 else f"{value:.3g}"
