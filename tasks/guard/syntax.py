"""The syntax tree of a shell command, as far as it matters for what a command does to files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Text:
    """Characters that the command line fixes. Unquoted ones may still be patterns, braces or a tilde."""

    value: str
    quoted: bool


@dataclass(frozen=True, slots=True)
class Variable:
    """`$name` or `${name…}`; `plain` when nothing but the value is taken."""

    name: str
    plain: bool
    quoted: bool


@dataclass(frozen=True, slots=True)
class Substitution:
    """`$(…)`, backticks, `<(…)` and `>(…)`, or anything else whose text only a run can tell."""

    body: tuple[Statement, ...]
    process: bool = False


Part = Text | Variable | Substitution


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command."""

    parts: tuple[Part, ...]

    @property
    def fixed(self) -> str | None:
        """The word's text where the line itself fixes it; null: it depends on a run, or stands for several words."""
        if not all(isinstance(part, Text) for part in self.parts):
            return None
        texts = [part for part in self.parts if isinstance(part, Text)]
        return None if several(texts) else "".join(text.value for text in texts)

    def substitutions(self) -> Iterator[Substitution]:
        """The commands that run inside the word."""
        return (part for part in self.parts if isinstance(part, Substitution))


@dataclass(frozen=True, slots=True)
class Redirect:
    """One redirection. `body` is a heredoc's text."""

    operator: str
    target: Word
    body: Word | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """`name=value`; null value: an array, an index or an addition, whose result is not followed."""

    name: str
    value: Word | None


@dataclass(frozen=True, slots=True)
class Simple:
    """A command with its words, or assignments alone."""

    assignments: tuple[Assignment, ...]
    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Binary:
    """`left && right`, `left || right`, `left | right`."""

    operator: str
    left: Statement
    right: Statement


@dataclass(frozen=True, slots=True)
class Group:
    """Statements run one after the other: `{ … }`, or `( … )` in a shell of their own."""

    body: tuple[Statement, ...]
    subshell: bool


@dataclass(frozen=True, slots=True)
class Branches:
    """`if`, `case`, `for`, `while` and the like: any of the bodies may run, any number of times.

    `names` are the variables that the construct itself sets, `words` what it reads.
    """

    kind: str
    bodies: tuple[tuple[Statement, ...], ...]
    names: tuple[str, ...] = ()
    words: tuple[Word, ...] = ()


@dataclass(frozen=True, slots=True)
class Function:
    """The definition of a function."""

    name: str
    body: Statement


@dataclass(frozen=True, slots=True)
class Statement:
    """A command with its redirections. The command is null for redirections alone."""

    command: Simple | Binary | Group | Branches | Function | None
    redirects: tuple[Redirect, ...] = ()
    background: bool = False


_PATTERN: Final = re.compile(r"[*?]|\[.+\]", re.DOTALL)
_BRACES: Final = re.compile(r"\{.*(?:,|\.\.).*\}", re.DOTALL)


def several(texts: Iterable[Text]) -> bool:
    """Whether a word of these texts may stand for other words than itself: a pattern, braces or a home folder."""
    shown = "".join("\0" * len(text.value) if text.quoted else text.value for text in texts)
    if shown.startswith("~"):
        return True
    return _PATTERN.search(shown) is not None or _BRACES.search(shown) is not None
