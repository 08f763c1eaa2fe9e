"""Path safety: what is accepted can be copied below any folder and stays there."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from skilltrial.tasks.planning.paths import clean, component_fault, fault_of, overlap


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("/etc/passwd", "absolute"),
        ("\\server\\share", "absolute"),
        ("C:\\x", "absolute"),
        ("c:x", "absolute"),
        ("..", "leads out"),
        ("a/../b", "leads out"),
        ("a\\..\\..\\b", "leads out"),
        (".git/config", "git's own"),
        ("./.GIT", "git's own"),
        (".git\\config", "git's own"),
        (".", "names no file"),
        ("a\0b", "control character"),
    ],
)
def test_unsafe_paths_are_refused_with_the_reason(text: str, says: str) -> None:
    assert says in (fault_of(text) or "accepted")


@pytest.mark.parametrize("text", ["a", "a/b.txt", "./a", "nested/.git/config", ".github/x", "..a", "a..b", "日本.txt"])
def test_safe_paths_are_accepted(text: str) -> None:
    assert fault_of(text) is None


PATHS = st.text(st.sampled_from("ab./\\:.gitGIT \0é"), max_size=12)


@given(PATHS)
def test_an_accepted_path_stays_below_its_folder(text: str) -> None:
    if fault_of(text) is None:
        root = Path("/root/project")
        inside = Path(clean(text))
        assert ".." not in inside.parts
        assert root / text == root / inside
        assert (root / inside).is_relative_to(root)
        assert (root / inside) != root
        assert inside.parts[0].lower() != ".git"


@given(PATHS, PATHS)
def test_overlap_is_symmetric_and_holds_for_a_path_and_what_is_below(first: str, second: str) -> None:
    assert overlap(first, second) == overlap(second, first)
    assume(fault_of(first) is None)
    assert overlap(first, f"{first}/x")


def test_names_that_only_begin_alike_do_not_overlap() -> None:
    assert not overlap("tests", "tests2/a")
    assert not overlap("a/b", "a/bc")


@pytest.mark.parametrize("text", ["a/b", "a\\b", ".", "..", "a\nb", "x" * 201])
def test_what_cannot_be_one_file_name_is_refused(text: str) -> None:
    assert component_fault(text) is not None


def test_underscores_and_blanks_may_be_in_a_file_name() -> None:
    assert component_fault("references_the skill.v2") is None
