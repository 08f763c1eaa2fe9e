"""The event stream of the scripted agent.

Its lines have the shape of `claude -p --output-format stream-json --verbose` (claude 2.1.332, measured), so
that one parser reads both. Nothing in them passes for a model: `model` is `scripted`, the version says
`(scripted)`, `init` and `result` name the harness, tokens and cost are zero because none were spent.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, Final

from .signals import Signals

VERSION: Final = "1.0.0"
NAME: Final = "scripted"

Json = dict[str, Any]

_NO_TOKENS: Final = {
    "input_tokens": 0,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 0,
}
_NO_SUBAGENTS: Final = {
    "spawned": 0,
    "requested": {"background": 0, "foreground": 0, "unset": 0},
    "started_in_background": 0,
    "max_depth": 0,
    "spawned_by_subagents": 0,
    "completed": 0,
    "failed": 0,
    "killed": {"parent": 0, "user": 0, "system": 0},
    "refused": {"depth_limit": 0, "concurrency_limit": 0, "budget": 0},
    "by_type": {},
}
_NO_FAST_MODE: Final = {"fast_mode_state": "off", "fast_mode_disabled_reason": "sdk_opt_in_required"}


def new_uuid() -> str:
    """A random UUID (version 4); the `uuid` module would cost a third of the start-up."""
    digits = bytearray(os.urandom(16))
    digits[6] = digits[6] & 0x0F | 0x40
    digits[8] = digits[8] & 0x3F | 0x80
    text = digits.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def encoded(event: Json) -> bytes:
    """One event as a line without its end; U+2028 and U+2029 escaped, lone surrogates replaced."""
    text = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").encode("utf-8", "replace")


class Stream:
    """Writes events to a file descriptor and remembers what later lines repeat."""

    def __init__(self, session_id: str, signals: Signals, descriptor: int = 1) -> None:
        self.session_id = session_id
        self.turns = 0  # messages of the model, as the CLI counts them for --max-turns
        self.tool_results = 0
        self.results = 0
        self._signals = signals
        self._descriptor = descriptor
        self._started = time.monotonic()
        self._first_block_ms: int | None = None
        self._message: str | None = None

    @property
    def between_messages(self) -> bool:
        """Whether the next block begins a message of the model."""
        return self._message is None

    @property
    def silent(self) -> bool:
        """Whether the model has not answered at all yet."""
        return self._first_block_ms is None

    def write(self, data: bytes) -> None:
        """Write bytes as they are."""
        with self._signals.writing():
            while data:
                data = data[os.write(self._descriptor, data) :]

    def event(self, event: Json) -> Json:
        """Write one event on a line and return it."""
        self.write(encoded(event) + b"\n")
        return event

    def system(self, subtype: str, fields: Json) -> None:
        """Write a `system` event."""
        identity = {"uuid": new_uuid(), "session_id": self.session_id}
        self.event({"type": "system", "subtype": subtype, **fields, **identity})

    def init(
        self, cwd: Path, *, mode: str, tools: list[str], skills: list[str], memory: str, asked: str | None
    ) -> None:
        """Write the roster of the session. `asked` is the model that was asked for, which nothing here uses."""
        fields = {
            "cwd": str(cwd),
            "session_id": self.session_id,
            "tools": tools,
            "mcp_servers": [],
            "model": NAME,
            "permissionMode": mode,
            "slash_commands": skills,
            "terminal_slash_commands": [],
            "apiKeySource": "none",
            "claude_code_version": f"{VERSION} ({NAME})",
            "output_style": "default",
            "agents": [],
            "skills": skills,
            "plugins": [],
            "capabilities": [],
            "analytics_disabled": True,
            "product_feedback_disabled": True,
            "served_by_anthropic": False,
            "uuid": new_uuid(),
            "sandbox_enabled": False,
            "memory_paths": {"auto": memory},
            "original_cwd": str(cwd),
            "additional_directories": [],
            "messaging_socket_path": None,
            **_NO_FAST_MODE,
            "per_turn_effort_active": False,
            "ultrathink_available": False,
            "ultrathink_typed_raises": False,
            "view_mode": "default",
            "harness": NAME,
            "requested_model": asked,
        }
        self.event({"type": "system", "subtype": "init", **fields})

    def block(self, content: Json, **more: Any) -> Json:
        """The event of one content block of the current message, not yet written."""
        if self._message is None:
            self.turns += 1
            self._message = f"msg_{NAME}{os.urandom(8).hex()}"
        if self._first_block_ms is None:
            self._first_block_ms = self._elapsed_ms()
        message = {
            "id": self._message,
            "type": "message",
            "role": "assistant",
            "model": NAME,
            "content": [content],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**_NO_TOKENS, "service_tier": "standard"},
            "context_management": None,
        }
        request = {"request_id": f"req_{NAME}{self.turns:06d}", **more}
        return {"type": "assistant", "message": message, **self._envelope(), **request}

    def text(self, text: str) -> None:
        """Write a text block."""
        self.event(self.block({"type": "text", "text": text}))

    def thinking(self, text: str) -> None:
        """Write a thinking block; its signature is empty since no model signed it."""
        block = {"type": "thinking", "thinking": text, "signature": ""}
        self.event(self.block(block, thinking_duration_ms=0, thinking_display="updates"))

    def tool_use(self, name: str, tool_input: Json) -> str:
        """Write a tool call and return its identifier."""
        identifier = f"toolu_{NAME}{os.urandom(8).hex()}"
        self.event(self.block({"type": "tool_use", "id": identifier, "name": name, "input": tool_input}))
        return identifier

    def tool_result(
        self, call: str, content: str, *, error: bool | None, structured: object, meta: Json | None = None
    ) -> None:
        """Write the answer to a tool call; it ends the current message. `meta` is absent for invalid calls."""
        block: Json = {"tool_use_id": call, "type": "tool_result", "content": content}
        if error is not None:
            block["is_error"] = error
        more: Json = {"tool_use_result": structured}
        if meta is not None:
            more["tool_result_meta"] = [{"id": call, **meta}]
        self.tool_results += 1
        self._user(block, more)

    def user_text(self, text: str, synthetic: bool = False) -> None:
        """Write a text that the CLI itself puts into the conversation."""
        self._user({"type": "text", "text": text}, {"isSynthetic": True} if synthetic else {})

    def api_error(self, text: str, kind: str, details: Json) -> None:
        """Write the message that stands for a failed request to the model."""
        usage = {
            "output_tokens_details": None,
            **_NO_TOKENS,
            "service_tier": None,
            "inference_geo": None,
            "speed": None,
        }
        message = {
            "diagnostics": None,
            "id": new_uuid(),
            "container": None,
            "model": "<synthetic>",
            "role": "assistant",
            "stop_details": None,
            "stop_reason": "stop_sequence",
            "stop_sequence": "",
            "type": "message",
            "usage": usage,
            "content": [{"type": "text", "text": text}],
            "context_management": None,
        }
        failed = {"error": kind, "is_api_error_message": True, **details}
        self.event({"type": "assistant", "message": message, **self._envelope(), **failed})

    def result(
        self, subtype: str, terminal_reason: str, stop_reason: str | None, denials: list[Json], **fields: Any
    ) -> Json:
        """The event that ends a turn, not yet written. `fields` hold what only this ending has."""
        spent = {NAME: _no_usage()} if self._first_block_ms is not None else {}
        timed = {"ttft_ms": self._first_block_ms} if subtype == "success" and self._first_block_ms is not None else {}
        marks = ("ttft_stream_ms", "time_to_request_ms", "first_content_frame_ms")
        elapsed = self._elapsed_ms()
        event = {
            "duration_api_ms": 0,
            "stop_reason": stop_reason,
            "session_id": self.session_id,
            "total_cost_usd": 0,
            "usage": _no_result_usage(),
            "modelUsage": spent,
            "permission_denials": denials,
            "terminal_reason": terminal_reason,
            **_NO_FAST_MODE,
            "subagent_stats": _NO_SUBAGENTS,
            "safety_stops": 0,
            "is_error": subtype != "success",
            "num_turns": self.tool_results + 1,
            "subtype": subtype,
            **({"api_error_status": None} if subtype == "success" else {}),
            **fields,
            **timed,
            "type": "result",
            "duration_ms": elapsed,
            "uuid": new_uuid(),
            **(dict.fromkeys(marks, self._first_block_ms) if timed else {}),
            "queued_turn_count": 0,
            "result_index": self.results,
            "model_usage_since_last_result": spent,
            "harness": NAME,
        }
        self.results += 1
        return event

    def next_turn(self) -> None:
        """Start counting anew, as the CLI does when a finished background task wakes it."""
        self.tool_results = 0
        self._message = None

    def _user(self, block: Json, more: Json) -> None:
        self._message = None
        message = {"role": "user", "content": [block]}
        self.event({"type": "user", "message": message, **self._envelope(), **more})

    def _envelope(self) -> Json:
        seconds = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03d}Z"
        identity = {"session_id": self.session_id, "uuid": new_uuid(), "timestamp": stamp}
        return {"parent_tool_use_id": None, **identity}

    def _elapsed_ms(self) -> int:
        return round((time.monotonic() - self._started) * 1000)


def _no_usage() -> Json:
    counts = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "webSearchRequests")
    late = ("thinkingTokens", "cacheCreationEphemeral5mInputTokens", "cacheCreationEphemeral1hInputTokens")
    limits = {"costUSD": 0, "contextWindow": 0, "maxOutputTokens": 0}
    origin = {"canonicalModel": NAME, "provider": NAME, "costBasis": "none"}
    return {**dict.fromkeys(counts, 0), **limits, **dict.fromkeys(late, 0), **origin}


def _no_result_usage() -> Json:
    return {
        **_NO_TOKENS,
        "output_tokens_details": {"thinking_tokens": 0},
        "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
        "service_tier": "standard",
        "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0},
        "inference_geo": "",
        "iterations": [],
        "speed": "standard",
        "fallback_credit": None,
    }
