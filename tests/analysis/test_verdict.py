"""Verdicts in their order, each with its sentence."""

from __future__ import annotations

from dataclasses import replace

from skilltrial.data.benchmark import Verdict
from skilltrial.tasks.analysis.verdict import Evidence, judge

STRONG = Evidence(
    treatment="with_skill",
    control="without_skill",
    invalid=(),
    effect=0.42,
    se=0.09,
    n_evals=8,
    n_untied=8,
    p=0.0078125,
    floor=0.0078125,
    alpha=0.05,
)


def test_a_strong_positive_effect_is_improved() -> None:
    assert judge(STRONG) == (
        Verdict.IMPROVED,
        "with_skill scores higher than without_skill: effect +0.420 (SE 0.090) over 8 evals, p 0.00781 ≤ alpha 0.05",
    )


def test_a_strong_negative_effect_is_regressed() -> None:
    verdict, reason = judge(replace(STRONG, effect=-0.42))
    assert verdict is Verdict.REGRESSED
    assert reason.startswith("with_skill scores lower than without_skill: effect -0.420")


def test_a_large_p_is_inconclusive_and_claims_no_equality() -> None:
    verdict, reason = judge(replace(STRONG, effect=0.05, p=0.4))
    assert verdict is Verdict.INCONCLUSIVE
    assert reason == (
        "effect +0.050 (SE 0.090) over 8 evals, p 0.4 > alpha 0.05: "
        "this shows neither a difference nor that there is none"
    )


def test_an_effect_of_exactly_zero_is_inconclusive_whatever_p() -> None:
    assert judge(replace(STRONG, effect=0.0, p=0.01))[0] is Verdict.INCONCLUSIVE


def test_a_floor_above_alpha_is_underpowered_though_p_equals_the_floor() -> None:
    verdict, reason = judge(replace(STRONG, n_untied=5, p=0.0625, floor=0.0625))
    assert verdict is Verdict.UNDERPOWERED
    assert reason == (
        "5 of 8 evals came out different (effect +0.420 (SE 0.090)): "
        "no p below 0.0625 can come of that, and alpha is 0.05"
    )


def test_five_untied_evals_are_underpowered_even_with_a_generous_alpha() -> None:
    verdict, reason = judge(replace(STRONG, n_untied=5, p=0.0625, floor=0.0625, alpha=0.2))
    assert verdict is Verdict.UNDERPOWERED
    assert reason.endswith("a claim that assumes nothing about the distribution needs 6")


def test_all_tied_is_underpowered() -> None:
    verdict, reason = judge(replace(STRONG, effect=0.0, n_untied=0, p=1.0, floor=1.0))
    assert verdict is Verdict.UNDERPOWERED
    assert reason == "8 evals came out the same in both arms, so that no test can tell them apart"


def test_a_broken_validity_condition_outranks_everything() -> None:
    verdict, reason = judge(replace(STRONG, invalid=("no cell of b has a score", "x")))
    assert (verdict, reason) == (Verdict.INVALID, "the arms cannot be compared: no cell of b has a score; x")


def test_no_paired_eval_is_invalid() -> None:
    verdict, reason = judge(replace(STRONG, effect=None, se=None, p=None, floor=None, n_evals=0, n_untied=0))
    assert (verdict, reason) == (Verdict.INVALID, "the arms cannot be compared: no eval has a score in both")
