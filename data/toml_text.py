"""Reading TOML that people write: every way in which a file can be none is a `Problem`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from skilltrial.data.errors import InvalidInput, Problem
from skilltrial.data.problems import unreadable


def read_toml(path: Path) -> dict[str, Any]:
    """The document in a TOML file; `InvalidInput` when it is not there, cannot be read or is no TOML."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInput([Problem(str(path), "", None, unreadable(error))]) from error
    return parse_toml(content, str(path))


def parse_toml(content: bytes, file: str) -> dict[str, Any]:
    """The document in TOML's bytes, a byte order mark before them or not; `file` is how `InvalidInput` names it."""
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InvalidInput([Problem(file, "", None, f"is not UTF-8 at byte {error.start}")]) from error
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput([Problem(file, "", None, f"is not TOML: {error}")]) from error
