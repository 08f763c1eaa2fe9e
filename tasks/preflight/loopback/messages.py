"""Answers of the Messages API built from a scripted step: one JSON message, or a stream of events."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

import orjson
from pydantic import JsonValue

from skilltrial.tasks.preflight.loopback.scenarios import Step, error_body

Event = dict[str, JsonValue]


def message(step: Step, request: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The whole answer to a request; its ids are a function of the conversation so far, never of time."""
    seed = identity(request)
    blocks: list[JsonValue] = []
    if step.thinking is not None:
        blocks.append({"type": "thinking", "thinking": step.thinking, "signature": "c2NyaXB0ZWQ="})
    if step.text is not None:
        blocks.append({"type": "text", "text": step.text})
    for index, tool in enumerate(step.tools):
        blocks.append({"type": "tool_use", "id": f"toolu_{seed}{index:02d}", "name": tool.name, "input": tool.input})
    return {
        "id": f"msg_{seed}",
        "type": "message",
        "role": "assistant",
        "model": step.model or request.get("model"),
        "content": blocks,
        "stop_reason": step.stop_reason or ("tool_use" if step.tools else "end_turn"),
        "stop_sequence": None,
        "usage": {**step.usage.model_dump(), "service_tier": "standard"},
    }


def events(step: Step, request: Mapping[str, JsonValue]) -> Iterator[Event]:
    """The same answer as stream events. The first one tells one output token, as the real API does."""
    whole = message(step, request)
    usage = step.usage
    start_usage: JsonValue = {**usage.model_dump(), "output_tokens": 1, "service_tier": "standard"}
    yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None, "usage": start_usage}}
    if step.stream_error is not None:
        yield error_body(step.stream_error.type, step.stream_error.message)
        return
    blocks = whole["content"]
    assert isinstance(blocks, list)
    for index, block in enumerate(blocks):
        assert isinstance(block, dict)
        empty, deltas = _parts(block, step.chunk_characters)
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ending: JsonValue = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ending, "usage": {"output_tokens": usage.output_tokens}}
    yield {"type": "message_stop"}


def encoded(event: Event) -> bytes:
    """One event in the form of server-sent events."""
    return b"event: %s\ndata: %s\n\n" % (str(event["type"]).encode(), orjson.dumps(event))


def identity(request: Mapping[str, JsonValue]) -> str:
    """16 hexadecimal digits of a request's session and messages: equal for retries, different otherwise."""
    told = orjson.dumps([request.get("metadata"), request.get("messages")])
    return hashlib.sha256(told).hexdigest()[:16]


def _parts(block: dict[str, JsonValue], size: int) -> tuple[dict[str, JsonValue], list[JsonValue]]:
    """A block as it starts, empty, and the pieces that fill it."""
    if block["type"] == "thinking":
        return {**block, "thinking": "", "signature": ""}, [
            {"type": "thinking_delta", "thinking": block["thinking"]},
            {"type": "signature_delta", "signature": block["signature"]},
        ]
    if block["type"] == "text":
        pieces = _cut(str(block["text"]), size)
        return {**block, "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces]
    pieces = _cut(orjson.dumps(block["input"]).decode(), size)
    return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]


def _cut(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]
