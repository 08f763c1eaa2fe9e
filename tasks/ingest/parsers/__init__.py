"""One parser for each kind of event stream, found by the name that a descriptor gives (`transcript.parser`).

Every parser class has the constructor `Parser(sink: RowSink, role: Callable[[str], str])`, where `role` maps a
tool's name to what it does (`descriptors.model.Tools.role`), and the class attributes `name` and `version`.
Its module has `looks_like(record) -> bool`, by which streams of unknown origin are told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final, cast

from skilltrial.data.errors import UnknownName
from skilltrial.tasks.ingest.records import RowSink, StreamParser

Role = Callable[[str], str]
"""Maps a tool's name to read, write, patch, shell, skill, subagent or other."""

UNKNOWN: Final = "unknown"
"""Name of the parser for streams that no parser knows: it counts records and reads nothing into them."""

_CLASSES: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "claude-stream-json": ("claude", "ClaudeParser"),
        "codex-items": ("codex", "CodexParser"),
        "opencode-events": ("opencode", "OpencodeParser"),
        "cline-json": ("cline", "ClineParser"),
        UNKNOWN: ("unknown", "UnknownParser"),
    }
)

NAMES: Final = tuple(_CLASSES)
"""The names of all parsers."""


def parser_class(name: str) -> type[Any]:
    """The class of the parser of that name, imported when it is first asked for; `UnknownName` lists the known."""
    if name not in _CLASSES:
        raise UnknownName("stream parser", name, NAMES)
    return cast(type[Any], getattr(_module(name), _CLASSES[name][1]))


def make_parser(name: str, sink: RowSink, role: Role) -> StreamParser:
    """A new parser of that name; `UnknownName` lists the known ones."""
    return cast(StreamParser, parser_class(name)(sink, role))


def sniff(records: Iterable[dict[str, Any]]) -> str:
    """The name of the parser for a stream that begins with these records; `UNKNOWN` when none fits."""
    from skilltrial.tasks.ingest.parsers.claude_shape import is_foreign

    found = UNKNOWN
    for record in records:
        if not isinstance(record.get("type"), str):
            continue
        if is_foreign(record):
            return UNKNOWN
        if found == UNKNOWN:
            matching = (name for name in NAMES if name != UNKNOWN and _module(name).looks_like(record))
            found = next(matching, UNKNOWN)
    return found


def _module(name: str) -> Any:
    return import_module(f"skilltrial.tasks.ingest.parsers.{_CLASSES[name][0]}")
