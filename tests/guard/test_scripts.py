"""Files that sed and awk scripts write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skilltrial.tasks.guard.scripts import awk_targets, sed_targets


@pytest.mark.parametrize(
    ("script", "targets"),
    [
        ("s/a/b/", []),
        ("s|a/w|c/w|g; y/ab/ba/", []),
        ("s/a/b/w out.txt", ["out.txt"]),
        ("s,a,b,gpw out\nw second file", ["out", "second file"]),
        ("/x/,/y/{ /w z/d; p; }", []),
        ("1,5p;$!N;\\,w a,d", []),
        ("/x/w f", ["f"]),
        ("a\\\nw text", []),
        ("i w text\nw f", ["f"]),
        (":w;b w", []),
        ("s/[/]w/x/", []),
        ("w /dev/stdout", []),
        ("s/a/b/e", [None]),
        ("e date", [None]),
        ("s/open", [None]),
        ("r input.txt", []),
    ],
)
def test_sed_writes_by_w_alone(script: str, targets: list[str | None]) -> None:
    assert [target for target in sed_targets(script) if script[:1] != "r"] == targets


@pytest.mark.parametrize(
    ("program", "targets"),
    [
        ("$1 > 3", []),
        ("{ print ($1 > 3) }", []),
        ("{ if ($1 > 3) print $2 }", []),
        ('{ print $1 > "f" }', ["f"]),
        ('{ printf "%s > %s", $1, $2 >> "g"; print > "h" }', ["g", "h"]),
        ("{ print > $1 }", [None]),
        ('{ print > "a" $1 }', [None]),
        ('{ print | "sort" }', [None]),
        ('{ "date" | getline d }', [None]),
        ('{ system("rm x") }', [None]),
        ("/a > b/ { print }", []),
        ('# print > "x"\n{ print }', []),
        ('{ print > "/dev/stderr" }', []),
        ("{ x = 4 / 2; print x / 2 }", []),
    ],
)
def test_awk_writes_behind_print_alone(program: str, targets: list[str | None]) -> None:
    assert awk_targets(program) == targets


def test_file_of_no_name_is_no_target_even_before_what_is_not_understood() -> None:
    assert sed_targets("w\ne") == [None]


@given(st.text(alphabet="sywpde/|,;{}\\[]ab1$ \n", max_size=60))
def test_any_sed_script_is_read(script: str) -> None:
    assert all(target is None or target for target in sed_targets(script))


@given(st.text(alphabet='print{}()>|"/ab1$;\n \\#', max_size=60))
def test_any_awk_program_is_read(program: str) -> None:
    assert all(target is None or isinstance(target, str) for target in awk_targets(program))
