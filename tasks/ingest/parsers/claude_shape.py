"""Whether a record is of Claude Code, or only of the same form: other CLIs write streams that look alike."""

from __future__ import annotations

from typing import Any, Final

from skilltrial.tasks.ingest.values import listing, mapping, string

_LOG_TYPES: Final = frozenset(
    {"summary", "file-history-snapshot", "permission-mode", "mode", "queue-operation", "progress"}
)
_LOG_KEYS: Final = frozenset({"leafUuid", "messageId", "sessionId", "parentUuid"})


def looks_like(record: dict[str, Any]) -> bool:
    """Whether a record is of Claude Code's form, in a stream, a single result or a session log."""
    kind = record.get("type")
    if kind in ("assistant", "user"):
        return isinstance(record.get("message"), dict) or isinstance(record.get("data"), dict)
    if kind == "system":
        return isinstance(record.get("subtype"), str) or isinstance(record.get("data"), dict)
    if kind == "result":
        return not {"subtype", "result", "total_cost_usd", "data"}.isdisjoint(record)
    if kind == "stream_event":
        return isinstance(record.get("event"), dict)
    if kind == "rate_limit_event":
        return True
    return kind in _LOG_TYPES and not _LOG_KEYS.isdisjoint(record)


def is_foreign(record: dict[str, Any]) -> bool:
    """Whether a record shows that another CLI wrote the stream in Claude Code's form.

    Cursor has records of type `thinking` and `tool_call` and an init without tools; Amp has thread ids
    (`T-…`) and usages with `max_tokens`; Qwen Code writes `permission_mode`, its own version and tool names
    in lower case (streams of all three, seen).
    """
    kind = record.get("type")
    if kind in ("thinking", "tool_call"):
        return True
    if (string(record.get("session_id")) or "").startswith("T-"):
        return True
    if kind == "assistant":
        return "max_tokens" in mapping(mapping(record.get("message")).get("usage"))
    if kind != "system" or record.get("subtype") != "init" or "claude_code_version" in record or "harness" in record:
        return False
    own = [name for name in listing(record.get("tools")) if isinstance(name, str) and not name.startswith("mcp__")]
    return (
        "permission_mode" in record
        or any(key.endswith("_code_version") for key in record)
        or ("apiKeySource" in record and "tools" not in record)
        or (bool(own) and all(name == name.lower() for name in own))
    )
