"""From pydantic's errors to problems that name file, JSON path, value and what is allowed."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from skilltrial.data.errors import Problem


def problems_of(error: ValidationError, file: str, prefix: str = "") -> list[Problem]:
    """Every fault of a validation error as one `Problem`; `prefix` is the path of the validated part."""
    return [_problem(details, file, prefix) for details in error.errors(include_url=False)]


def json_path(parts: Sequence[str | int], prefix: str = "") -> str:
    """`evals[2].files[0]` of `("evals", 2, "files", 0)`."""
    path = prefix
    for part in parts:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def _problem(details: ErrorDetails, file: str, prefix: str) -> Problem:
    kind, context = details["type"], details.get("ctx", {})
    where = json_path(details["loc"], prefix)
    if kind == "missing":
        return Problem(file, where, None, "is missing")
    if kind == "extra_forbidden":
        return Problem(file, where, details["input"], "is not a known field")
    message = details["msg"].removeprefix("Value error, ")
    allowed = str(context.get("expected") or context.get("expected_tags") or context.get("pattern") or "")
    value = details["input"] if not isinstance(details["input"], (dict, list, tuple)) else None
    return Problem(file, where, value, message[:1].lower() + message[1:], allowed)
