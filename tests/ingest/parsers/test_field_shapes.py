"""No field of a record is trusted to have the type that it should have."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Final

import pytest

from skilltrial.tasks.ingest.parsers import make_parser
from skilltrial.tasks.ingest.sinks import NullSink

Record = dict[str, Any]

WRONG: Final[tuple[Any, ...]] = ([None], {}, {"a": [1]}, 5, -1.5, None, True, "x", "")

_CALL: Final = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"skill": "x"}}
_SAID: Final = {"id": "m", "content": [_CALL], "usage": {"input_tokens": 1}}
_ANSWER: Final = {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "t"}]}

STREAMS: Final[dict[str, tuple[str, list[Record]]]] = {
    "claude": (
        "claude-stream-json",
        [
            {"type": "system", "subtype": "init", "session_id": "s", "mcp_servers": [{"name": "n", "status": "x"}]},
            {"type": "assistant", "uuid": "u", "message": _SAID},
            {"type": "user", "message": {"content": [_ANSWER]}, "tool_result_meta": [{"id": "t"}]},
            {"type": "system", "subtype": "hook_response", "hook_event": "PreToolUse", "exit_code": 2, "stdout": "{}"},
            {"type": "system", "subtype": "task_started", "task_id": "b", "patch": {"status": "x"}},
            {"type": "rate_limit_event", "rate_limit_info": {"status": "rejected"}},
            {
                "type": "result",
                "subtype": "success",
                "is_error": False,
                "session_id": "s",
                "errors": ["e"],
                "usage": {"input_tokens": 1},
                "modelUsage": {"m": {"inputTokens": 1, "costUSD": 1}},
                "total_cost_usd": 1,
                "permission_denials": [{"tool_use_id": "t", "tool_name": "B", "tool_input": {}}],
                "result_index": 0,
            },
        ],
    ),
    "codex": (
        "codex-items",
        [
            {"type": "thread.started", "thread_id": "t"},
            {"type": "item.completed", "item": {"id": "i", "type": "command_execution", "exit_code": 0}},
            {"type": "item.completed", "item": {"type": "mcp_tool_call", "server": "s", "error": {"message": "m"}}},
            {"type": "turn.completed", "usage": {"input_tokens": 1}},
            {"type": "turn.failed", "error": {"message": "m"}},
        ],
    ),
    "codex-rollout": (
        "codex-items",
        [
            {"type": "session_meta", "payload": {"id": "i", "cli_version": "1"}},
            {"type": "response_item", "payload": {"type": "function_call", "name": "n", "call_id": "c"}},
            {"type": "response_item", "payload": {"type": "function_call_output", "call_id": "c", "output": "x"}},
            {"type": "event_msg", "payload": {"type": "token_count", "info": {"total_token_usage": {}}}},
        ],
    ),
    "opencode": (
        "opencode-events",
        [
            {
                "type": "tool_use",
                "sessionID": "s",
                "part": {"tool": "bash", "state": {"status": "error", "error": "e"}},
            },
            {"type": "step_finish", "sessionID": "s", "part": {"reason": "stop", "tokens": {"cache": {"read": 1}}}},
            {"type": "error", "sessionID": "s", "error": {"name": "n", "data": {"statusCode": 400}}},
        ],
    ),
    "cline": (
        "cline-json",
        [
            {"type": "agent_event", "ts": 1, "event": {"type": "content_start", "contentType": "tool", "input": {}}},
            {"type": "agent_event", "ts": 1, "event": {"type": "content_end", "contentType": "tool", "error": "e"}},
            {"type": "run_result", "ts": 1, "finishReason": "completed", "usage": {"inputTokens": 1}},
            {"type": "say", "say": "text", "text": "x", "ts": 1},
        ],
    ),
}


def _places(value: object, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of everything inside a record, but for its own type."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inside in items:
        here = (*above, key)
        if here != ("type",):
            yield here
        yield from _places(inside, here)


@pytest.mark.parametrize("name", STREAMS)
def test_a_field_of_another_type_than_its_own_is_survived(name: str) -> None:
    parser_name, records = STREAMS[name]
    for number, record in enumerate(records):
        for *above, last in _places(record):
            for wrong in WRONG:
                changed = copy.deepcopy(records)
                place: Any = changed[number]
                for key in above:
                    place = place[key]
                place[last] = wrong
                parser = make_parser(parser_name, NullSink(), lambda _: "other")
                for one in changed:
                    parser.feed(one)
                assert parser.finish().parser == parser_name
