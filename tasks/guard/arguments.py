"""The arguments of a command, told apart into options and operands as getopt does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Argument = str | None
"""The text of an argument; null: only a run can tell it."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """Options in order, each with its value where it has one, and the operands."""

    options: tuple[tuple[str, Argument], ...]
    operands: tuple[Argument, ...]

    def has(self, *names: str) -> bool:
        """Whether any of these options is given; long ones also when shortened."""
        return any(_means(given, name) for given, _ in self.options for name in names)

    def values(self, *names: str) -> list[Argument]:
        """The values of these options, in order."""
        return [value for given, value in self.options if any(_means(given, name) for name in names)]


@dataclass(frozen=True, slots=True)
class Grammar:
    """Which options take a value.

    `attached` short options take what follows in the same argument, if anything does (`-i.bak`). With
    `operands_last` the first operand ends the options, as for a command that starts another one.
    """

    short: str = ""
    long: tuple[str, ...] = ()
    attached: str = ""
    operands_last: bool = False


def read(words: Sequence[Argument], grammar: Grammar) -> Arguments:
    """Tell options and operands apart. A word that only a run can tell counts as an operand."""
    options: list[tuple[str, Argument]] = []
    operands: list[Argument] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            operands += rest
            break
        if word is None or word == "-" or not word.startswith("-"):
            operands.append(word)
            if grammar.operands_last:
                operands += rest
                break
        elif word.startswith("--"):
            name, equals, value = word.partition("=")
            if equals:
                options.append((name, value))
            elif any(_means(name, full) for full in grammar.long):
                options.append((name, rest.pop(0) if rest else None))
            else:
                options.append((name, None))
        else:
            _cluster(word[1:], grammar, options, rest)
    return Arguments(tuple(options), tuple(operands))


def _cluster(letters: str, grammar: Grammar, options: list[tuple[str, Argument]], rest: list[Argument]) -> None:
    """`-abVALUE`: letters one after the other, up to one that takes a value."""
    for place, letter in enumerate(letters, start=1):
        behind = letters[place:]
        if letter in grammar.attached:
            options.append((f"-{letter}", behind))
            return
        if letter in grammar.short:
            options.append((f"-{letter}", behind or (rest.pop(0) if rest else None)))
            return
        options.append((f"-{letter}", None))


def _means(given: str, name: str) -> bool:
    """Whether an option is the named one: GNU takes a long option by any unambiguous beginning of it."""
    if given == name:
        return True
    return name.startswith("--") and len(given) > 3 and given.startswith("--") and name.startswith(given)
