"""The smallest p values that designs can reach."""

from __future__ import annotations

import pytest

from skilltrial.tasks.analysis.floor import fisher_floor, possible_floor, probability_text, sign_floor


def test_sign_floor_halves_with_each_untied_eval() -> None:
    assert [sign_floor(k) for k in range(1, 9)] == [1, 0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125]


def test_sign_floor_of_no_untied_eval_is_one() -> None:
    assert sign_floor(0) == 1.0


@pytest.mark.parametrize(
    ("n", "floor"), [(1, 1.0), (2, 1 / 3), (3, 0.1), (4, 1 / 35), (5, 1 / 126), (10, 1.0825088e-05)]
)
def test_fisher_floor_is_two_over_the_number_of_splits(n: int, floor: float) -> None:
    assert fisher_floor(n) == pytest.approx(floor, rel=1e-7)


def test_floors_of_huge_designs_do_not_underflow_to_zero() -> None:
    assert sign_floor(5_000) > 0
    assert fisher_floor(5_000) > 0


def test_negative_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="-1"):
        sign_floor(-1)
    with pytest.raises(ValueError, match="-2"):
        fisher_floor(-2)


def test_a_design_reaches_alpha_from_six_evals_on() -> None:
    assert not possible_floor(5, 10).reaches(0.1)  # the floor would do, five evals do not
    assert possible_floor(6, 1).reaches(0.05)
    assert not possible_floor(6, 10).reaches(0.01)
    assert possible_floor(6, 3).within_eval == pytest.approx(0.1)


@pytest.mark.parametrize(("value", "text"), [(1.0, "1"), (0.0625, "0.0625"), (1.0825088e-05, "1.08e-05")])
def test_probabilities_are_shown_with_three_digits(value: float, text: str) -> None:
    assert probability_text(value) == text
