"""The front matter of SKILL.md: YAML as people really write it.

Of some 7,000 public skills, one in a thousand breaks strict YAML, nearly always by `word: ` inside a plain
description; agent CLIs load them all the same, so they are read line by line then.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import yaml

_FENCE: Final = re.compile(r"\s*```[\w-]*[ \t]*\n(?=---[ \t]*\n)")
_BLOCK: Final = re.compile(r"---[ \t]*\n(?P<yaml>(?:.*\n)*?)(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_FIELD: Final = re.compile(r"(?P<name>[A-Za-z_][\w-]*)[ \t]*:(?:[ \t]+(?P<value>.*)|[ \t]*)$")
_BLOCK_MARKER: Final = re.compile(r"(?P<style>[|>])[+-]?\d?[+-]?(?:\s+#.*)?$")


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The fields of a SKILL.md; texts only, since every scalar is kept as it is written."""

    fields: Mapping[str, object]
    notes: tuple[str, ...]  # what an agent CLI may see differently
    visible: bool  # it stands where agent CLIs look for it

    def text(self, name: str) -> str:
        """A field as text on one line; "" where it is missing or not a scalar."""
        value = self.fields.get(name)
        return " ".join(value.split()) if isinstance(value, str) else ""


def read_front_matter(text: str) -> FrontMatter:
    """The front matter of a SKILL.md's text; never raises."""
    notes = []
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if plain is not text and text.startswith("\ufeff"):
        notes.append("starts with a byte order mark")
    fence = _FENCE.match(plain)
    if fence is not None:
        notes.append("has its front matter inside a code fence, where agent CLIs do not look")
        plain = plain[fence.end() :]
    block = _BLOCK.match(plain)
    if block is None:
        unterminated = re.match(r"---[ \t]*\n", plain) is not None
        notes.append("has front matter without an end ('---')" if unterminated else "has no front matter")
        return FrontMatter({}, tuple(notes), visible=False)
    fields, strict = _strict(block["yaml"]), True
    if fields is None:
        fields, strict = _tolerant(block["yaml"]), False
    if not strict:
        notes.append("has front matter that is not valid YAML; it was read line by line")
    return FrontMatter(fields, tuple(notes), visible=fence is None)


def _strict(text: str) -> dict[str, object] | None:
    """The fields as YAML has them; null: it is not a YAML mapping."""
    try:
        value = yaml.load(text, Loader=yaml.BaseLoader)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    if value in (None, ""):
        return {}
    return {str(name): inner for name, inner in value.items()} if isinstance(value, dict) else None


def _tolerant(text: str) -> dict[str, object]:
    """Top-level `name: value` lines; indented lines and lines without a name go on with the field above."""
    fields: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.split("\n"):
        found = _FIELD.match(line)
        if found is None:
            current.append(line.strip())
            continue
        current = [found["value"] or ""]
        fields[found["name"]] = current
    return {name: _unquoted(_joined(lines)) for name, lines in fields.items()}


def _joined(lines: list[str]) -> str:
    marker = _BLOCK_MARKER.match(lines[0].strip())
    if marker is None:
        return " ".join(line for line in lines if line).strip()
    return ("\n" if marker["style"] == "|" else " ").join(lines[1:]).strip()


def _unquoted(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        return text[1:-1]
    return text
