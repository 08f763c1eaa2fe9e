"""Regular expressions in Rust's dialect."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skilltrial.tasks.grading.patterns import matches, problem_of, search


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(", "unclosed group"),
        ("a(?=b)", "look-around, including look-ahead and look-behind, is not supported"),
        (r"(?P<x>a)\1", "backreferences are not supported"),
        ("first line\n[z-a]", "invalid character class range, the start must be <= the end"),
        (r"\d{1000000000}", "Compiled regex exceeds size limit of 10485760 bytes"),
        (r"\p{L}+(?i)ok$", None),
        ("", None),
    ],
)
def test_a_pattern_that_cannot_be_used_says_why_in_one_line(pattern: str, problem: str | None) -> None:
    assert problem_of(pattern) == problem


def test_a_pattern_is_searched_anywhere_in_the_text_over_line_ends_and_nul() -> None:
    assert search(r"b.c", "a\nb\0c\n")
    assert search(r"(?m)^b$", "a\nb")
    assert not search(r"^b", "a\nb")


def test_every_text_is_told_to_match_or_not() -> None:
    assert matches("b+", ["a", "abb", "b"]) == [False, True, True]
    assert matches("z", ["a", "b"]) == [False, False]
    assert matches("z", []) == []


@given(st.text(alphabet=st.characters(codec="utf-8")), st.text(alphabet="ab.*+?()[]{}|\\^$é\n", min_size=1))
def test_an_escaped_text_is_found_exactly_where_it_stands(text: str, needle: str) -> None:
    assert search(re.escape(needle), text + needle + text)
    assert search(re.escape(needle), text) == (needle in text)
