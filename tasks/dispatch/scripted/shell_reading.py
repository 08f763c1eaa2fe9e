"""Reading a shell command far enough to decide on it: which programs it starts and where it redirects to.

Deliberately narrow: what it cannot read with certainty (substitutions, compound commands, here-documents)
is `None`, and a permission mode then refuses it as the CLI would.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_SEPARATORS: Final = ("&&", "||", ";", "|", "&", "\n")
_COMPOUND: Final = frozenset(
    {"if", "for", "while", "until", "case", "select", "function", "{", "}", "[[", "!", "time", "coproc"}
)
_REDIRECT: Final = re.compile(r"(\d*)(>>|>\||>|<)(&\d|&-)?")


class SimpleCommand(NamedTuple):
    """One program with its arguments, quotes removed. `variable` tells that a word depends on the environment."""

    text: str
    words: tuple[str, ...]
    writes_to: tuple[str, ...]
    reads_from: tuple[str, ...]
    variable: bool


def read(command: str) -> list[SimpleCommand] | None:
    """The simple commands of a list or pipeline, in order; null when the text needs a real parser."""
    found: list[SimpleCommand] = []
    rest = command
    while rest.strip():
        reader = _Reader(rest)
        if not reader.run():
            return None
        simple = reader.simple()
        if simple is None:
            if reader.separator != "\n" or reader.text.strip():
                return None
        else:
            if not simple.words and not simple.writes_to:
                return None
            if simple.words and (simple.words[0] in _COMPOUND or "=" in simple.words[0]):
                return None
            found.append(simple)
        rest = reader.rest
    return found or None


class _Reader:
    """Reads one simple command up to its separator."""

    def __init__(self, text: str) -> None:
        self._source = text
        self._at = 0
        self._words: list[str] = []
        self._word: str | None = None
        self._writes: list[str] = []
        self._reads: list[str] = []
        self._target: list[str] | None = None  # the list that the next word belongs to
        self._variable = False
        self.separator = ""
        self.text = ""
        self.rest = ""

    def run(self) -> bool:
        """Read; false for text that is beyond this reader."""
        source = self._source
        while self._at < len(source):
            character = source[self._at]
            separator = next((s for s in _SEPARATORS if source.startswith(s, self._at)), None)
            if separator is not None:
                self.separator = separator
                break
            if character in "(`)" or source.startswith(("<<", "$("), self._at):
                return False
            if character in "'\"":
                if not self._quoted(character):
                    return False
            elif character == "\\":
                self._word = (self._word or "") + source[self._at + 1 : self._at + 2]
                self._at += 2
            elif character in " \t":
                self._end_word()
                self._at += 1
            elif character == "#" and self._word is None:
                end = source.find("\n", self._at)
                self._at = len(source) if end < 0 else end
            elif not self._redirection():
                self._variable |= character == "$"
                self._word = (self._word or "") + character
                self._at += 1
        self._end_word()
        self.text = source[: self._at].strip()
        self.rest = source[self._at + len(self.separator) :]
        return self._target is None

    def simple(self) -> SimpleCommand | None:
        """What was read; null for an empty command."""
        if not (self._words or self._writes or self._reads):
            return None
        return SimpleCommand(self.text, tuple(self._words), tuple(self._writes), tuple(self._reads), self._variable)

    def _quoted(self, quote: str) -> bool:
        end = self._source.find(quote, self._at + 1)
        while quote == '"' and end > 0 and self._source[end - 1] == "\\":
            end = self._source.find(quote, end + 1)
        if end < 0:
            return False
        inner = self._source[self._at + 1 : end]
        if quote == '"':
            if "$(" in inner or "`" in inner:
                return False
            self._variable |= "$" in inner
            inner = re.sub(r'\\(["\\$`])', r"\1", inner)
        self._word = (self._word or "") + inner
        self._at = end + 1
        return True

    def _redirection(self) -> bool:
        match = _REDIRECT.match(self._source, self._at) if self._word is None else None
        if match is None and self._source[self._at] in "<>":
            match = _REDIRECT.match(self._source, self._at)
        if match is None:
            return False
        self._end_word()
        self._at = match.end()
        if match[3] is None:
            self._target = self._reads if match[2] == "<" else self._writes
        return True

    def _end_word(self) -> None:
        if self._word is None:
            return
        if self._target is not None:
            self._target.append(self._word)
            self._target = None
        else:
            self._words.append(self._word)
        self._word = None
