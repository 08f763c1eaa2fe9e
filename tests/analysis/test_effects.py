"""Effects and exact tests, against their definitions and the worked example."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skilltrial.tasks.analysis import effects

WORKED = [0.4, 0.0, 0.4, 0.6, 0.0, 0.4, 0.6, 0.0]

differences = st.lists(st.sampled_from([n / 10 for n in range(-10, 11)]), min_size=1, max_size=12)
scores = st.one_of(st.none(), st.just(math.nan), st.integers(0, 6).map(lambda n: n / 6))
trials = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["t", "c"]), scores), max_size=40)


def cells(rows: Sequence[tuple[str, str, float | None]], counting: str = "scored") -> pl.DataFrame:
    schema = {"eval_id": pl.String, "condition": pl.String, "score": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.lit(counting).alias("counting"))


def brute_force(values: Sequence[float]) -> float:
    """The sign-flip p by its definition: every sign pattern over every eval, ties included."""
    observed = abs(sum(values))
    patterns = list(itertools.product((1, -1), repeat=len(values)))
    extreme = sum(
        abs(sum(sign * value for sign, value in zip(p, values, strict=True))) >= observed - 1e-9 for p in patterns
    )
    return extreme / len(patterns)


def test_worked_example_has_its_mean_sd_and_se() -> None:
    found = effects.estimate(WORKED)
    assert found.effect == pytest.approx(0.3, abs=1e-12)
    assert found.sd == pytest.approx(0.2618614683, abs=1e-10)
    assert found.se == pytest.approx(0.0925820100, abs=1e-10)
    assert found.unavailable == {}


def test_worked_example_has_16_of_256_sign_patterns() -> None:
    assert effects.sign_flip(WORKED) == effects.SignFlip(16 / 256, "exact")


def test_worked_example_has_its_sign_test() -> None:
    assert effects.sign_test(WORKED) == 0.0625


def test_one_eval_has_an_effect_and_a_reason_for_no_spread() -> None:
    found = effects.estimate([0.5])
    assert (found.effect, found.sd, found.se) == (0.5, None, None)
    assert found.unavailable == dict.fromkeys(("sd", "se"), "one eval has no spread over evals")


def test_no_eval_has_no_effect_and_a_reason() -> None:
    found = effects.estimate([])
    assert (found.effect, found.sd, found.se) == (None, None, None)
    assert found.unavailable == dict.fromkeys(("effect", "sd", "se"), "no eval has a score in both arms")


def test_all_tied_evals_have_p_one() -> None:
    assert effects.sign_flip([0.0, 0.0, 1e-17]) == effects.SignFlip(1.0, "exact")
    assert effects.sign_test([0.0, 0.0]) == 1.0


@given(differences)
def test_sign_flip_counts_what_brute_force_counts(values: list[float]) -> None:
    assert effects.sign_flip(values).p == pytest.approx(brute_force(values), abs=1e-12)


@given(differences)
def test_sign_test_is_the_two_sided_binomial(values: list[float]) -> None:
    plus, minus = sum(v > 0 for v in values), sum(v < 0 for v in values)
    n = plus + minus
    tail = sum(math.comb(n, k) * 0.5**n for k in range(min(plus, minus) + 1))
    assert effects.sign_test(values) == pytest.approx(min(1.0, 2 * tail))


@given(differences)
def test_p_values_lie_above_zero_and_the_floor(values: list[float]) -> None:
    untied = len(effects.untied(values))
    for p in (effects.sign_flip(values).p, effects.sign_test(values)):
        assert 2.0 ** (1 - max(untied, 1)) <= p <= 1


@given(differences, st.randoms(use_true_random=False))
def test_the_order_of_evals_changes_nothing(values: list[float], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert effects.estimate(shuffled) == effects.estimate(values)
    assert effects.sign_flip(shuffled) == effects.sign_flip(values)


def test_twenty_untied_evals_are_counted_exactly_and_twenty_one_are_drawn() -> None:
    assert effects.sign_flip([0.5] * 20) == effects.SignFlip(2**-19, "exact")
    assert effects.sign_flip([0.5] * 21).method == "monte_carlo"


def test_monte_carlo_is_seeded_and_never_zero() -> None:
    strong = effects.sign_flip([0.5] * 40, draws=999)
    assert strong == effects.SignFlip(1 / 1000, "monte_carlo")
    mixed = [0.1 * (n % 5 - 1) for n in range(1, 41)]
    assert effects.sign_flip(mixed, draws=999) == effects.sign_flip(mixed, draws=999)


def test_monte_carlo_agrees_with_the_normal_limit() -> None:
    # 30 evals of ±1 with 20 against 10: the sum is 10, and P(|S| ≥ 10) is binomial
    exact = 2 * sum(math.comb(30, k) for k in range(11)) / 2**30
    found = effects.sign_flip([1.0] * 20 + [-1.0] * 10, draws=20_000)
    assert found.p == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / 20_000))


def test_scores_are_averaged_by_eval_and_arm() -> None:
    rows = [("a", "t", 1.0), ("a", "t", 0.5), ("a", "c", 0.25), ("b", "t", 1.0)]
    a, b = effects.eval_effects(cells(rows), "t", "c", ["b", "a"])
    assert (a.eval_id, a.treatment_mean, a.control_mean, a.difference, a.n_t, a.n_c) == ("a", 0.75, 0.25, 0.5, 2, 1)
    assert (b.eval_id, b.treatment_mean, b.control_mean, b.difference, b.n_t, b.n_c) == ("b", 1.0, None, None, 1, 0)


def test_excluded_null_and_nan_scores_take_no_part() -> None:
    rows = pl.concat(
        [cells([("a", "t", 1.0), ("a", "t", None), ("a", "t", math.nan)]), cells([("a", "t", 0.0)], "excluded")]
    )
    (a,) = effects.eval_effects(rows, "t", "c", ["a"])
    assert (a.treatment_mean, a.n_t, a.control_mean, a.difference) == (1.0, 1, None, None)


def test_equal_means_that_differ_in_their_last_bits_are_tied() -> None:
    rows = [("a", "t", 0.1), ("a", "t", 0.2), ("a", "t", 0.3), ("a", "c", 0.2)]
    (a,) = effects.eval_effects(cells(rows), "t", "c", ["a"])
    assert a.difference == 0.0


def test_run_weighted_difference_weighs_cells_and_skips_unpaired_evals() -> None:
    rows = [("a", "t", 1.0), ("a", "t", 1.0), ("a", "t", 1.0), ("a", "c", 0.0), ("b", "t", 0.0), ("b", "c", 0.0)]
    frame = cells([*rows, ("c", "t", 0.0)])
    found = effects.eval_effects(frame, "t", "c", "abc")
    assert effects.estimate(effects.differences(found)).effect == 0.5
    assert effects.run_weighted(frame, found, "t", "c") == 0.75


@given(trials, st.randoms(use_true_random=False))
def test_swapping_the_arms_flips_the_effect_and_row_order_changes_nothing(
    rows: list[tuple[str, str, float | None]], random: object
) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    forth = effects.eval_effects(cells(rows), "t", "c", "abcd")
    back = effects.eval_effects(cells(rows), "c", "t", "abcd")
    assert effects.eval_effects(cells(shuffled), "t", "c", "abcd") == forth
    one, other = effects.estimate(effects.differences(forth)), effects.estimate(effects.differences(back))
    assert one.unavailable == other.unavailable
    assert (one.effect is None) == (other.effect is None)
    if one.effect is not None:
        assert other.effect == -one.effect
        assert effects.run_weighted(cells(rows), forth, "t", "c") == -(
            effects.run_weighted(cells(rows), back, "c", "t") or 0.0
        )


def test_holm_steps_down_and_keeps_the_order_and_the_nulls() -> None:
    assert effects.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert effects.holm([0.03, None]) == [0.03, None]
    assert effects.holm([0.9, 0.8]) == [1.0, 1.0]
    assert effects.holm([]) == []
