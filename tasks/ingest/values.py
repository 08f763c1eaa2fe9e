"""Reading values whose type nobody guarantees: what fits is taken, anything else is "not told" (null)."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from skilltrial.tasks.ingest.records import TEXT_LIMIT

_WHOLE_LIMIT: Final = 2**63
_MILLISECONDS_FROM: Final = 1e11  # epoch numbers above this (the year 5138 in seconds) are milliseconds


def string(value: object) -> str | None:
    """The value if it is text."""
    return value if isinstance(value, str) else None


def whole(value: object) -> int | None:
    """The value if it is a whole number that fits 64 bits; a real number without a fraction counts as one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and -_WHOLE_LIMIT <= value < _WHOLE_LIMIT:
        return value
    return None


def number(value: object) -> float | None:
    """The value as a finite real number. Zero stays zero."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            found = float(value)
        except OverflowError:
            return None
        return found if math.isfinite(found) else None
    return None


def flag(value: object) -> bool | None:
    """The value if it is true or false."""
    return value if isinstance(value, bool) else None


def mapping(value: object) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def listing(value: object) -> list[Any]:
    """The value if it is an array, else an empty one."""
    return value if isinstance(value, list) else []


def clip(text: str, limit: int = TEXT_LIMIT) -> str:
    """The text, cut to `limit` characters."""
    return text if len(text) <= limit else text[:limit]


def size_of(text: str) -> int:
    """Bytes of the text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def as_json(value: object) -> str:
    """The value as compact JSON. What nests deeper than JSON can be written (254 levels are sure) is said to."""
    try:
        return orjson.dumps(value).decode()
    except orjson.JSONEncodeError:
        try:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        except RecursionError:
            return '"(nested too deeply)"'


def moment(value: object) -> datetime | None:
    """A time stamp as UTC: ISO 8601 (without zone: UTC), or seconds or milliseconds since 1970."""
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value)
            if found.tzinfo is UTC:
                return found
            return found.astimezone(UTC) if found.tzinfo is not None else found.replace(tzinfo=UTC)
        seconds = number(value)
        if seconds is None:
            return None
        return datetime.fromtimestamp(seconds / 1000 if abs(seconds) > _MILLISECONDS_FROM else seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None
