"""The verdict of a contrast: the first that applies, with the numbers it rests on in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skilltrial.data.benchmark import Verdict
from skilltrial.tasks.analysis.floor import MIN_UNTIED_EVALS, probability_text


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a verdict is made of. `p` is adjusted for the number of contrasts."""

    treatment: str
    control: str
    invalid: Sequence[str]  # broken validity conditions, each as a clause
    effect: float | None
    se: float | None
    n_evals: int
    n_untied: int
    p: float | None
    floor: float | None
    alpha: float


def judge(evidence: Evidence) -> tuple[Verdict, str]:
    """invalid → underpowered → improved or regressed → inconclusive.

    Improved and regressed need p ≤ alpha; the direction is the effect's sign. `equivalent` needs an
    equivalence test at the declared margin, which is not built yet, so it is never claimed.
    """
    if evidence.invalid:
        return Verdict.INVALID, f"the arms cannot be compared: {'; '.join(evidence.invalid)}"
    if evidence.effect is None or evidence.p is None or evidence.floor is None:
        return Verdict.INVALID, "the arms cannot be compared: no eval has a score in both"
    if evidence.floor > evidence.alpha or evidence.n_untied < MIN_UNTIED_EVALS:
        return Verdict.UNDERPOWERED, _underpowered(evidence, evidence.floor)
    numbers = f"{_numbers(evidence)} over {_evals(evidence.n_evals)}, p {probability_text(evidence.p)}"
    if evidence.p <= evidence.alpha and evidence.effect != 0:
        verdict = Verdict.IMPROVED if evidence.effect > 0 else Verdict.REGRESSED
        word = "higher" if evidence.effect > 0 else "lower"
        pair = f"{evidence.treatment} scores {word} than {evidence.control}"
        return verdict, f"{pair}: {numbers} ≤ alpha {evidence.alpha:g}"
    return Verdict.INCONCLUSIVE, (
        f"{numbers} > alpha {evidence.alpha:g}: this shows neither a difference nor that there is none"
    )


def _underpowered(evidence: Evidence, floor: float) -> str:
    if not evidence.n_untied:
        return f"{_evals(evidence.n_evals)} came out the same in both arms, so that no test can tell them apart"
    pointed = f"{evidence.n_untied} of {_evals(evidence.n_evals)} came out different ({_numbers(evidence)})"
    if floor > evidence.alpha:
        return f"{pointed}: no p below {probability_text(floor)} can come of that, and alpha is {evidence.alpha:g}"
    return f"{pointed}: a claim that assumes nothing about the distribution needs {MIN_UNTIED_EVALS}"


def _numbers(evidence: Evidence) -> str:
    spread = "" if evidence.se is None else f" (SE {evidence.se:.3f})"
    return f"effect {evidence.effect:+.3f}{spread}"


def _evals(number: int) -> str:
    return f"{number} eval{'' if number == 1 else 's'}"
