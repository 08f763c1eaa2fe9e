"""The narrow reading of shell commands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skilltrial.tasks.dispatch.scripted.shell_reading import read


def words(command: str) -> list[tuple[str, ...]] | None:
    parts = read(command)
    return None if parts is None else [part.words for part in parts]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("ls", [("ls",)]),
        ("ls -a 'a b' \"c d\" e\\ f", [("ls", "-a", "a b", "c d", "e f")]),
        ("a && b || c; d | e & f\ng", [("a",), ("b",), ("c",), ("d",), ("e",), ("f",), ("g",)]),
        ("a;", [("a",)]),
        ("a # no; b", [("a",)]),
        ("echo a#b 'x;y' \"x && y\"", [("echo", "a#b", "x;y", "x && y")]),
        ('echo "a \\"b\\" c"', [("echo", 'a "b" c')]),
        ("a\n\n  b", [("a",), ("b",)]),
    ],
)
def test_simple_commands(command: str, expected: list[tuple[str, ...]]) -> None:
    assert words(command) == expected


@pytest.mark.parametrize(
    "command",
    [
        *(
            "",
            "  ",
            "ls $(pwd)",
            'echo "$(pwd)"',
            "ls `pwd`",
            "(ls)",
            "{ ls; }",
            "for x in a; do ls; done",
            "cat <<X\nX",
        ),
        *("diff <(a) <(b)", "if a; then b; fi", "X=1 ls", "X=1", "echo 'open", 'echo "open', "ls >", "a ;; b", "! ls"),
    ],
)
def test_what_needs_a_real_parser_is_not_read(command: str) -> None:
    assert read(command) is None


def test_redirections_are_told_apart_from_words() -> None:
    (part,) = read("cat <in >out 2>err 2>&1 >>log a>b") or []
    assert part.words == ("cat", "a")
    assert part.writes_to == ("out", "err", "log", "b")
    assert part.reads_from == ("in",)


def test_variables_are_noticed_outside_of_single_quotes() -> None:
    found = [part.variable for part in read("a $X; a \"$X\"; a '$X'; a x") or []]
    assert found == [True, True, False, False]


@given(st.text())
def test_any_text_is_read_or_not(command: str) -> None:
    parts = read(command)
    assert parts is None or all(part.words or part.writes_to for part in parts)


@given(st.lists(st.text('abc xyz;&|<>$#\\"', min_size=1), min_size=1))
def test_single_quoted_words_come_back_whole(texts: list[str]) -> None:
    assert words(" ".join(["echo", *(f"'{text}'" for text in texts)])) == [("echo", *texts)]
