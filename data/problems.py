"""From pydantic's errors to problems that name file, JSON path, value and what is allowed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from skilltrial.data.errors import Problem

_MESSAGES: Final = {"string_pattern_mismatch": "has not the right form", "literal_error": "is not a known value"}
"""Of errors whose own message repeats what is allowed."""


def problems_of(
    error: ValidationError, file: str, prefix: str = "", model: type[BaseModel] | None = None
) -> list[Problem]:
    """Every fault of a validation error as one `Problem`; `prefix` is the path of the validated part.

    With the `model` that was validated, an unknown field's problem lists the known ones, and paths
    leave out the tags that pydantic adds for the members of a union.
    """
    found = error.errors(include_url=False)
    return [_problem(details, file, prefix, model) for details in found if not _follows(details, found)]


def json_path(parts: Sequence[str | int], prefix: str = "") -> str:
    """`evals[2].files[0]` of `("evals", 2, "files", 0)`."""
    path = prefix
    for part in parts:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def unreadable(error: OSError) -> str:
    """Why a file that a person named could not be read."""
    return "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror or error}"


def _follows(details: ErrorDetails, found: Sequence[ErrorDetails]) -> bool:
    """Whether a list is called too short only because pydantic does not count its faulty items."""
    place = details["loc"]
    return details["type"] == "too_short" and any(
        other["loc"][: len(place)] == place and len(other["loc"]) > len(place) for other in found
    )


def _problem(details: ErrorDetails, file: str, prefix: str, model: type[BaseModel] | None) -> Problem:
    kind, context = details["type"], details.get("ctx", {})
    parts, owner = _written(details["loc"], model)
    where = json_path(parts, prefix)
    if kind == "missing":
        return Problem(file, where, None, "is missing")
    if kind == "extra_forbidden":
        known = ", ".join(owner.model_fields) if owner else ""
        return Problem(file, where, details["input"], "is not a known field", known)
    if kind == "union_tag_invalid":
        where = json_path([*parts, "type"], prefix)
        return Problem(file, where, context["tag"], "is not a known type", context["expected_tags"])
    if kind in {"too_short", "too_long"}:  # pydantic's own words tell of Python's tuples
        bound, limit = ("at least", "min_length") if kind == "too_short" else ("at most", "max_length")
        message = f"has {context['actual_length']} items"
        return Problem(file, where, None, message, f"{bound} {context[limit]}")
    message = _MESSAGES.get(kind) or details["msg"].removeprefix("Value error, ")
    allowed = str(context.get("expected") or context.get("pattern") or "")
    value = details["input"] if not isinstance(details["input"], (dict, list, tuple)) else None
    return Problem(file, where, value, message[:1].lower() + message[1:], allowed)


def _written(
    location: Sequence[str | int], model: type[BaseModel] | None
) -> tuple[list[str | int], type[BaseModel] | None]:
    """(the location as a person wrote it, the model that owns its last field)."""
    parts: list[str | int] = []
    candidates = [] if model is None else [model]
    owner = model
    for part in location:
        tagged = [member for member in candidates if len(candidates) > 1 and part == _tag(member)]
        if tagged:
            candidates = tagged
            continue
        parts.append(part)
        owner = candidates[0] if candidates else None
        if isinstance(part, str) and owner is not None and part in owner.model_fields:
            candidates = list(_models_in(owner.model_fields[part].annotation))
    return parts, owner


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)


def _tag(member: type[BaseModel]) -> object:
    """The value of a union member's `type` literal; null: it has none."""
    field = member.model_fields.get("type")
    values = get_args(field.annotation) if field else ()
    return values[0] if values else None
