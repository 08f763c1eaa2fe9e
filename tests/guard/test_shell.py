"""From the text of a command to our tree."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skilltrial.tasks.guard import shell
from skilltrial.tasks.guard.shell import Unreadable, parse
from skilltrial.tasks.guard.syntax import (
    Assignment,
    Binary,
    Branches,
    Function,
    Group,
    Redirect,
    Simple,
    Statement,
    Substitution,
    Text,
    Variable,
    Word,
)

TEXTS = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0\r"), max_size=40)


def _word(text: str, *, quoted: bool = False) -> Word:
    return Word((Text(text, quoted),))


def _only(command: str) -> Simple:
    [statement] = parse(command)
    assert isinstance(statement.command, Simple)
    return statement.command


def test_a_command_has_assignments_words_and_redirections() -> None:
    [statement] = parse("A=1 cmd x >out 2>&1 &")
    assert statement == Statement(
        Simple((Assignment("A", _word("1")),), (_word("cmd"), _word("x"))),
        (Redirect(">", _word("out")), Redirect(">&", _word("1"))),
        background=True,
    )


def test_lists_and_pipes_are_binary() -> None:
    [statement] = parse("a && b || c |& d")
    assert isinstance(statement.command, Binary)
    assert statement.command.operator == "||"
    assert isinstance(statement.command.left.command, Binary)
    assert statement.command.left.command.operator == "&&"
    assert isinstance(statement.command.right.command, Binary)
    assert statement.command.right.command.operator == "|&"


def test_words_keep_what_is_quoted_and_what_is_not() -> None:
    [_, word] = _only("cmd a\"b $x\"'c'").words
    assert word.parts == (
        Text("a", False),
        Text("", True),
        Text("b ", True),
        Variable("x", plain=True, quoted=True),
        Text("c", True),
    )


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("'a b'", "a b"),
        ('"a \\$b \\` \\" \\\\ \\n"', 'a $b ` " \\ \\n'),
        ("a\\ b\\*", "a b*"),
        ("$'a\\tb\\x41\\101\\u00e9\\''", "a\tbAA\u00e9'"),
        ('$"loc"', "loc"),
        ("a\\\nb", "ab"),
        ("''", ""),
        ("[", "["),
        ("{}", "{}"),
        ("a~", "a~"),
    ],
)
def test_a_word_that_the_line_fixes_has_its_text(written: str, text: str) -> None:
    assert _only(f"cmd {written}").words[1].fixed == text


@pytest.mark.parametrize(
    "written", ["$x", '"$x"', "$(a)", "a*", "a?", "[ab]", "{a,b}", "{1..3}", "~", "~/x", "$((1))", "$'\\xff'", "@(a|b)"]
)
def test_a_word_that_a_run_decides_has_no_text(written: str) -> None:
    assert _only(f"cmd {written}").words[1].fixed is None


def test_a_heredoc_is_data_and_runs_only_unquoted() -> None:
    [quoted] = parse("cat <<'E'\n$(a) > b\nE")
    [plain] = parse("cat <<E\n$(a) \\$b\nE")
    assert quoted.redirects[0].body == Word((Text("$(a) > b\n", True),))
    assert plain.redirects[0].body is not None
    assert [type(part) for part in plain.redirects[0].body.parts] == [Substitution, Text, Text, Text]
    assert "".join(part.value for part in plain.redirects[0].body.parts if isinstance(part, Text)) == " $b\n"


def test_compound_commands_keep_every_body() -> None:
    kinds = {}
    for command in (
        "if a; then b; else c; fi",
        "for i in x; do b; done",
        "while a; do b; done",
        "case x in a) b;; esac",
    ):
        [statement] = parse(command)
        assert isinstance(statement.command, Branches)
        kinds[statement.command.kind] = [len(body) for body in statement.command.bodies]
    assert kinds == {"IfClause": [1, 1, 0, 1], "ForClause": [1], "WhileClause": [1, 1], "CaseClause": [1]}


def test_groups_subshells_and_functions() -> None:
    group, subshell, function = (statement.command for statement in parse("{ a; }; (b); f() { c; }"))
    assert isinstance(group, Group)
    assert not group.subshell
    assert isinstance(subshell, Group)
    assert subshell.subshell
    assert isinstance(function, Function)
    assert function.name == "f"


@pytest.mark.parametrize(
    "command", ["echo 'open", "if a; then", "a\0b", "x" * (shell.COMMAND_LIMIT + 1), "\ud800", ") ("]
)
def test_what_is_no_command_is_unreadable(command: str) -> None:
    with pytest.raises(Unreadable):
        parse(command)


def test_a_parser_that_does_not_answer_makes_a_command_unreadable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    slow = tmp_path / "shfmt"
    slow.write_text(f"#!{sys.executable}\nimport signal\nsignal.pause()\n")
    slow.chmod(0o755)
    monkeypatch.setattr(shell, "binary", lambda: str(slow))
    monkeypatch.setattr(shell, "TIMEOUT_S", 0.2)
    with pytest.raises(Unreadable, match="did not answer"):
        parse("ls")


@pytest.mark.parametrize("answer", ["[]", "no json", '{"Stmts":[{"Cmd":{"Type":"CallExpr","Args":[{"Parts":3}]}}]}'])
def test_an_answer_that_is_not_understood_makes_a_command_unreadable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, answer: str
) -> None:
    strange = tmp_path / "shfmt"
    strange.write_text(f"#!{sys.executable}\nprint({answer!r})\n")
    strange.chmod(0o755)
    monkeypatch.setattr(shell, "binary", lambda: str(strange))
    with pytest.raises(Unreadable, match=r"not understood|not an object"):
        parse("ls")


def test_operators_are_read_from_the_source_where_they_come_as_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    word = {"Parts": [{"Type": "Lit", "Value": "f"}]}
    tree = {"Stmts": [{"Redirs": [{"Op": 63, "OpPos": {"Offset": 3}, "Word": word}]}]}
    monkeypatch.setattr(shell, "_run", lambda source: tree)
    [statement] = parse("é >> f")
    assert statement.redirects[0].operator == ">>"


def test_carriage_returns_are_not_read_since_the_parser_drops_some() -> None:
    with pytest.raises(Unreadable, match="carriage return"):
        parse("echo > 'a\r\n'")


@settings(max_examples=60, deadline=None)
@given(TEXTS)
def test_quoting_comes_back_as_the_text(text: str) -> None:
    assert _only(f"cmd {shlex.quote(text)}").words[1].fixed == text


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=80))
def test_any_text_is_read_or_unreadable(text: str) -> None:
    try:
        found = parse(text)
    except Unreadable:
        return
    assert all(isinstance(statement, Statement) for statement in found)
