"""Reading JSON that people write: the place of every fault, and nothing taken silently."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from skilltrial.data.errors import Problem
from skilltrial.data.problems import json_path, unreadable


class _Object(dict[str, object]):
    """A JSON object that remembers the keys which were given twice."""

    def __init__(self, pairs: list[tuple[str, object]]) -> None:
        super().__init__(pairs)
        names = [name for name, _ in pairs]
        self.repeated = tuple(name for name in self if names.count(name) > 1) if len(self) < len(names) else ()


def read_json(path: Path) -> tuple[object, list[Problem], list[str]]:
    """(document, problems, notes) of a JSON file; the document is null where it cannot be read at all."""
    file = str(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        return None, [Problem(file, "", None, unreadable(error))], []
    notes = ["starts with a byte order mark, which is ignored"] if content.startswith(b"\xef\xbb\xbf") else []
    try:
        text = content.decode("utf-8-sig")
        document = json.loads(text, object_pairs_hook=_Object, parse_constant=_refuse)
    except UnicodeDecodeError as error:
        return None, [Problem(file, "", None, f"is not UTF-8 at byte {error.start}")], notes
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        return None, [Problem(file, place, None, f"is not JSON: {error.msg}")], notes
    except (ValueError, RecursionError) as error:
        return None, [Problem(file, "", None, f"is not usable JSON: {error}")], notes
    return document, list(_faults(document, file, ())), notes


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is not a JSON value")


def _faults(value: object, file: str, path: tuple[str | int, ...]) -> Iterator[Problem]:
    if isinstance(value, _Object):
        for name in value.repeated:
            yield Problem(file, json_path((*path, name)), None, "is given twice; which one is meant?")
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _faults(inner, file, (*path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _faults(inner, file, (*path, index))
    elif isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
        yield Problem(file, json_path(path), value, "holds half of a surrogate pair, which is no character")
