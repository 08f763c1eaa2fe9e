"""A Bash command as a small syntax tree of our own, read by shfmt (shfmt 3.14.1, in the wheel `shfmt-py`).

Only the standard library is imported, since the guard's hook starts for every tool call. Whatever cannot be
read raises `Unreadable`; whoever decides must then assume the worst.
"""

from __future__ import annotations

import functools
import json
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from skilltrial.tasks.guard.syntax import (
    Assignment,
    Binary,
    Branches,
    Function,
    Group,
    Part,
    Redirect,
    Simple,
    Statement,
    Substitution,
    Text,
    Variable,
    Word,
)

COMMAND_LIMIT: Final = 32 * 1024
"""Bytes of a command beyond which it is not read: a line of 100,000 statements takes shfmt seconds."""

TIMEOUT_S: Final = 2.0
DEPTH_LIMIT: Final = 100
"""Levels of nesting beyond which a command is not read."""


class Unreadable(ValueError):
    """A command cannot be read: too long, too deep, no valid Bash, or no parser at hand."""


_OPERATOR: Final = re.compile(rb"&>>|&>\||&>|>>|>\||>&|<<<|<<-|<<|<&|<>|>|<|&&|\|\||\|&|\|")


def parse(command: str) -> tuple[Statement, ...]:
    """The statements of a Bash command; `Unreadable` says why there are none to be had."""
    try:
        source = command.encode()
    except UnicodeEncodeError as error:
        raise Unreadable("holds characters that UTF-8 does not have") from error
    if len(source) > COMMAND_LIMIT:
        raise Unreadable(f"longer than {COMMAND_LIMIT} bytes")
    if b"\0" in source:
        raise Unreadable("holds a NUL")
    if b"\r" in source:  # shfmt drops those before a line's end, Bash takes them for a part of the word
        raise Unreadable("holds a carriage return")
    tree = _run(source)
    try:
        return _Reader(source).statements(tree.get("Stmts"))
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Unreadable(f"not understood: {error!r}") from error


@functools.cache
def binary() -> str | None:
    """The path of shfmt: of this interpreter's environment, else of PATH; null: there is none."""
    folders = [sysconfig.get_path("scripts"), str(Path(sys.executable).parent)]
    for folder in folders:
        found = shutil.which("shfmt", path=folder)
        if found is not None:
            return found
    return shutil.which("shfmt")


def _run(source: bytes) -> dict[str, Any]:
    program = binary()
    if program is None:
        raise Unreadable("shfmt is not installed")
    try:
        done = subprocess.run(
            [program, "--to-json", "-ln", "bash"], input=source, capture_output=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unreadable(f"shfmt did not answer: {error}") from error
    if done.returncode != 0:
        raise Unreadable(done.stderr.decode("utf-8", "replace").strip()[:500])
    try:
        tree = json.loads(done.stdout)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"shfmt's answer is not understood: {error}") from error
    if not isinstance(tree, dict):
        raise Unreadable("shfmt's answer is not an object")
    return tree


class _Reader:
    """From shfmt's JSON to our tree. Unknown kinds of nodes become what only a run can tell."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._depth = 0

    def statements(self, nodes: Iterable[dict[str, Any]] | None) -> tuple[Statement, ...]:
        return tuple(self._statement(node) for node in nodes or ())

    def _statement(self, node: dict[str, Any]) -> Statement:
        self._depth += 1
        if self._depth > DEPTH_LIMIT:
            raise Unreadable(f"nested more than {DEPTH_LIMIT} levels deep")
        command = node.get("Cmd")
        found = Statement(
            None if command is None else self._command(command),
            tuple(self._redirect(redirect) for redirect in node.get("Redirs") or ()),
            bool(node.get("Background") or node.get("Coprocess")),
        )
        self._depth -= 1
        return found

    def _command(self, node: dict[str, Any]) -> Simple | Binary | Group | Branches | Function:
        kind = node["Type"]
        if kind == "CallExpr":
            return Simple(self._assignments(node.get("Assigns")), self._words(node.get("Args")))
        if kind == "BinaryCmd":
            return Binary(self._operator(node), self._statement(node["X"]), self._statement(node["Y"]))
        if kind in ("Block", "Subshell"):
            return Group(self.statements(node.get("Stmts")), kind == "Subshell")
        if kind == "FuncDecl":
            return Function(node["Name"]["Value"], self._statement(node["Body"]))
        if kind == "TimeClause":
            return Group((self._statement(node["Stmt"]),) if node.get("Stmt") else (), False)
        if kind == "CoprocClause":
            return Group((self._statement(node["Stmt"]),), True)
        if kind == "DeclClause":
            return self._declaration(node)
        return self._branches(kind, node)

    def _declaration(self, node: dict[str, Any]) -> Simple:
        """`export a=b` and the like: the assignments, without their options."""
        named = [argument for argument in node.get("Args") or () if argument.get("Name")]
        bare = [
            argument["Value"] for argument in node.get("Args") or () if not argument.get("Name") and "Value" in argument
        ]
        words = (Word((Text(node["Variant"]["Value"], False),)), *(self._word(value) for value in bare))
        return Simple(self._assignments(named), words)

    def _branches(self, kind: str, node: dict[str, Any]) -> Branches:
        bodies: list[tuple[Statement, ...]] = []
        names: list[str] = []
        words: list[Word] = []
        if kind == "IfClause":
            branch: dict[str, Any] | None = node
            while branch is not None:
                bodies += [self.statements(branch.get("Cond")), self.statements(branch.get("Then"))]
                branch = branch.get("Else")
        elif kind == "WhileClause":
            bodies = [self.statements(node.get("Cond")), self.statements(node.get("Do"))]
        elif kind == "ForClause":
            loop = node["Loop"]
            names += [loop["Name"]["Value"]] if "Name" in loop else []
            words += self._words(loop.get("Items"))
            names += self._assigned(loop)
            words += self._nested(loop) if "Items" not in loop else []
            bodies = [self.statements(node.get("Do"))]
        elif kind == "CaseClause":
            words.append(self._word(node["Word"]))
            for item in node.get("Items") or ():
                words += self._words(item.get("Patterns"))
                bodies.append(self.statements(item.get("Stmts")))
        else:  # TestClause, ArithmCmd, LetClause and what may come: no file is written, but commands may run inside
            names += self._assigned(node)
            words += self._nested(node)
        return Branches(kind, tuple(bodies), tuple(names), tuple(words))

    def _nested(self, node: object) -> list[Word]:
        """Every word below a node of arithmetic or a test, for the commands that run inside."""
        if isinstance(node, list):
            return [word for inner in node for word in self._nested(inner)]
        if not isinstance(node, dict):
            return []
        if "Parts" in node:
            return [self._word(node)]
        return [word for inner in node.values() for word in self._nested(inner)]

    def _assigned(self, node: object) -> list[str]:
        """Names that arithmetic may set: all that it mentions."""
        words = (word.fixed for word in self._nested(node))
        return [word for word in words if word is not None and word.isidentifier()]

    def _assignments(self, nodes: Iterable[dict[str, Any]] | None) -> tuple[Assignment, ...]:
        found = []
        for node in nodes or ():
            followed = not (node.get("Append") or node.get("Index") or node.get("Array"))
            value = self._word(node["Value"]) if node.get("Value") else Word(())
            name = node["Name"]["Value"] if node.get("Name") else ""
            found.append(Assignment(name, value if followed else None))
            if not followed:
                # what runs inside still runs: keep it as the value of nothing
                found += [
                    Assignment("", word)
                    for word in self._nested([node.get("Array"), node.get("Index"), node.get("Value")])
                ]
        return tuple(found)

    def _redirect(self, node: dict[str, Any]) -> Redirect:
        target = self._word(node["Word"])
        body: Word | None = None
        if node.get("Hdoc"):
            quoted = any(not isinstance(part, Text) or part.quoted for part in target.parts)
            body = self._heredoc(node["Hdoc"], quoted)
        return Redirect(self._operator(node), target, body)

    def _heredoc(self, node: dict[str, Any], quoted: bool) -> Word:
        if quoted:
            return Word(tuple(Text(part.get("Value", ""), True) for part in node.get("Parts") or ()))
        return Word(tuple(part for piece in node.get("Parts") or () for part in self._part(piece, "heredoc")))

    def _operator(self, node: dict[str, Any]) -> str:
        told = node.get("Op")
        if isinstance(told, str):
            return told
        # older versions number the operators, which changes between versions: the source does not
        found = _OPERATOR.match(self._source, node["OpPos"]["Offset"])
        if found is None:
            raise Unreadable("an operator is not understood")
        return found[0].decode()

    def _words(self, nodes: Iterable[dict[str, Any]] | None) -> tuple[Word, ...]:
        return tuple(self._word(node) for node in nodes or ())

    def _word(self, node: dict[str, Any]) -> Word:
        return Word(tuple(part for piece in node.get("Parts") or () for part in self._part(piece, "plain")))

    def _part(self, node: dict[str, Any], where: str) -> Iterator[Part]:
        kind = node.get("Type")
        if kind == "Lit":
            yield from _literal(node.get("Value", ""), where)
        elif kind == "SglQuoted":
            value = node.get("Value", "")
            text = _ansi_c(value) if node.get("Dollar") else value
            yield Substitution(()) if text is None else Text(text, True)
        elif kind == "DblQuoted":
            yield Text("", True)  # "" alone is a word as well
            for piece in node.get("Parts") or ():
                yield from self._part(piece, "quoted")
        elif kind == "ParamExp":
            yield self._variable(node, where)
            for word in self._nested([value for name, value in node.items() if name != "Param"]):
                yield from word.substitutions()
        elif kind in ("CmdSubst", "ProcSubst"):
            yield Substitution(self.statements(node.get("Stmts")), kind == "ProcSubst")
        else:  # arithmetic, extended patterns
            yield Substitution(())
            for word in self._nested(list(node.values())):
                yield from word.substitutions()

    def _variable(self, node: dict[str, Any], where: str) -> Variable:
        plain = not set(node) - {"Type", "Pos", "End", "Dollar", "Rbrace", "Short", "Param"}
        return Variable((node.get("Param") or {}).get("Value", ""), plain, where != "plain")


_ESCAPED: Final = {
    "plain": re.compile(r"\\(\n|.|$)", re.DOTALL),
    "quoted": re.compile(r"\\([$`\"\\\n])"),
    "heredoc": re.compile(r"\\([$`\\\n])"),
}


def _literal(value: str, where: str) -> Iterator[Text]:
    """A literal without its backslashes; what they protected is quoted."""
    at = 0
    for found in _ESCAPED[where].finditer(value):
        if found.start() > at:
            yield Text(value[at : found.start()], where != "plain")
        if found[1] != "\n":
            yield Text(found[1] or "\\", True)
        at = found.end()
    if at < len(value):
        yield Text(value[at:], where != "plain")


_ANSI_C: Final = re.compile(
    r"\\(?:(?P<octal>[0-7]{1,3})|x(?P<byte>[0-9a-fA-F]{1,2})|u(?P<short>[0-9a-fA-F]{1,4})"
    r"|U(?P<long>[0-9a-fA-F]{1,8})|(?P<letter>.))",
    re.DOTALL,
)
_LETTERS: Final = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip


def _ansi_c(value: str) -> str | None:
    """The text of `$'…'`; null where it is bytes, or an escape that is not followed."""
    pieces, at = [], 0
    for found in _ANSI_C.finditer(value):
        pieces.append(value[at : found.start()])
        at = found.end()
        digits = found["octal"] or found["byte"] or found["short"] or found["long"]
        if digits is not None:
            code = int(digits, 8 if found["octal"] else 16)
            several = found["short"] or found["long"]
            if code == 0 or code > (0x10FFFF if several else 0x7F) or 0xD800 <= code <= 0xDFFF:
                return None
            pieces.append(chr(code))
        elif found["letter"] in _LETTERS:
            pieces.append(_LETTERS[found["letter"]])
        else:
            return None
    return "".join(pieces) + value[at:]
