"""What stands inside the records of Claude Code: contents of messages, rosters of a session, results."""

from __future__ import annotations

from typing import Any, Final

from skilltrial.tasks.ingest.records import LastResult, Surface
from skilltrial.tasks.ingest.values import as_json, flag, listing, mapping, number, size_of, string, whole

ERROR_LIMIT: Final = 500
"""Characters of one of the CLI's error texts."""

_ROSTERS: Final = (
    ("skills", "skill"),
    ("plugins", "plugin"),
    ("tools", "tool"),
    ("mcp_servers", "mcp_server"),
    ("agents", "agent"),
    ("slash_commands", "command"),
)
_ENTRY: Final = ("source", "version", "status", "path")


def flatten(content: object) -> tuple[str, int, int]:
    """The text of a tool's answer, the bytes of the whole answer, and how many images it holds.

    Text blocks are joined by line feeds, images are left out of the text, anything else stands as JSON.
    """
    if isinstance(content, str):
        return content, size_of(content), 0
    if content is None:
        return "", 0, 0
    texts: list[str] = []
    size, images = 0, 0
    for block in content if isinstance(content, list) else [content]:
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "image":
            images += 1
            size += _image_bytes(mapping(block))
            continue
        text = block if isinstance(block, str) else string(mapping(block).get("text"))
        text = as_json(block) if text is None else text
        texts.append(text)
        size += size_of(text)
    return "\n".join(texts), size, images


def _image_bytes(block: dict[str, Any]) -> int:
    data = mapping(block.get("source")).get("data")
    return len(data) if isinstance(data, str) else len(as_json(block))


def surfaces_of(init: dict[str, Any]) -> dict[str, Surface]:
    """The rosters in an init record, by kind; a kind that the record does not list is absent."""
    found: dict[str, Surface] = {}
    for key, kind in _ROSTERS:
        if isinstance(init.get(key), list):
            entries = [_entry(item) for item in init[key]]
            found[kind] = Surface(kind, [entry for entry in entries if entry is not None])
    return found


def _entry(item: object) -> dict[str, str | None] | None:
    name = item if isinstance(item, str) else string(mapping(item).get("name"))
    if name is None:
        return None
    return {"name": name, **{key: string(mapping(item).get(key)) for key in _ENTRY}}


def last_result_of(record: dict[str, Any]) -> LastResult:
    """A result record in the CLI's own words."""
    errors = [text if isinstance(text, str) else as_json(text) for text in listing(record.get("errors"))]
    return LastResult(
        subtype=string(record.get("subtype")),
        is_error=flag(record.get("is_error")),
        terminal_reason=string(record.get("terminal_reason")),
        api_error_status=whole(record.get("api_error_status")),
        errors=tuple(errors),
        text=string(record.get("result")),
        turns=whole(record.get("num_turns")),
        duration_ms=whole(record.get("duration_ms")),
        api_duration_ms=whole(record.get("duration_api_ms")),
        session_cost_usd=number(record.get("total_cost_usd")),
    )
