"""Answers as one message and as a stream say the same."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skilltrial.tasks.preflight.loopback.messages import encoded, events, identity, message
from skilltrial.tasks.preflight.loopback.scenarios import Step, StreamError, ToolUse, Usage
from tests.preflight.loopback.requests import request, result, said

WORDS = st.text(min_size=1, max_size=60)
TOOLS = st.builds(ToolUse, name=st.sampled_from(["Bash", "Write"]), input=st.dictionaries(WORDS, WORDS, max_size=3))


def assembled(stream: list[dict[str, Any]]) -> dict[str, Any]:
    """A client's view of a stream: the message that its events add up to."""
    whole: dict[str, Any] = {}
    json_texts: dict[int, str] = {}
    for event in stream:
        kind, index, delta = event["type"], event.get("index", -1), event.get("delta", {})
        if kind == "message_start":
            whole = {**event["message"], "content": []}
        elif kind == "content_block_start":
            whole["content"].append(dict(event["content_block"]))
        elif kind == "content_block_delta" and delta["type"] == "input_json_delta":
            json_texts[index] = json_texts.get(index, "") + delta["partial_json"]
        elif kind == "content_block_delta":
            name = delta["type"].removesuffix("_delta")
            whole["content"][index][name] += delta[name]
        elif kind == "content_block_stop" and index in json_texts:
            whole["content"][index]["input"] = orjson.loads(json_texts[index])
        elif kind == "message_delta":
            whole.update(delta)
            whole["usage"] = {**whole["usage"], **event["usage"]}
    return whole


def test_message_holds_thinking_text_and_tool_calls_in_order() -> None:
    tools = (ToolUse(name="Bash", input={"command": "ls"}), ToolUse(name="Read", input={"file_path": "a"}))
    step = Step(thinking="Hm.", text="I look.", tools=tools, usage=Usage(input_tokens=7, output_tokens=9))
    value: dict[str, Any] = message(step, request("x"))
    assert [block["type"] for block in value["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert [block["name"] for block in value["content"][2:]] == ["Bash", "Read"]
    assert value["stop_reason"] == "tool_use"
    assert value["model"] == "claude-test-1"
    assert value["usage"] == {
        "input_tokens": 7,
        "output_tokens": 9,
        "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 300,
        "service_tier": "standard",
    }


def test_answer_without_tool_calls_ends_the_turn_and_a_step_can_say_otherwise() -> None:
    assert message(Step(text="x"), request("x"))["stop_reason"] == "end_turn"
    assert message(Step(text="x", stop_reason="max_tokens", model="other"), request("x"))["model"] == "other"
    assert message(Step(text="x", stop_reason="max_tokens"), request("x"))["stop_reason"] == "max_tokens"


@given(
    thinking=st.none() | WORDS,
    text=WORDS,
    tools=st.lists(TOOLS, max_size=3),
    size=st.integers(min_value=1, max_value=50),
)
def test_stream_adds_up_to_the_message(thinking: str | None, text: str, tools: list[ToolUse], size: int) -> None:
    step = Step(thinking=thinking, text=text, tools=tuple(tools), chunk_characters=size)
    assert assembled(list(events(step, request("x")))) == message(step, request("x"))


def test_stream_starts_with_one_output_token_and_ends_with_all() -> None:
    stream: list[dict[str, Any]] = list(events(Step(text="abc", usage=Usage(output_tokens=42)), request("x")))
    assert stream[0]["message"]["usage"]["output_tokens"] == 1
    assert stream[-2]["usage"] == {"output_tokens": 42}
    assert [event["type"] for event in stream] == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]


def test_stream_error_follows_the_first_event_and_is_the_last() -> None:
    step = Step(text="never said", stream_error=StreamError(message="busy"))
    stream = list(events(step, request("x")))
    assert [event["type"] for event in stream] == ["message_start", "error"]
    assert stream[1] == {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}


def test_event_is_encoded_as_one_server_sent_event() -> None:
    assert encoded({"type": "ping", "text": "a\nb"}) == b'event: ping\ndata: {"type":"ping","text":"a\\nb"}\n\n'


def test_ids_are_equal_for_a_retry_and_differ_by_step_and_session() -> None:
    first, retried = request("x"), request("x")
    assert identity(first) == identity(retried)
    assert len({identity(first), identity(request("x", said(), result()))}) == 2
    assert len({identity(first), identity(request("x", metadata={"user_id": "two"}))}) == 2


@pytest.mark.parametrize("count", [1, 12])
def test_tool_calls_of_one_message_have_different_ids(count: int) -> None:
    step = Step(tools=tuple(ToolUse(name="Bash") for _ in range(count)))
    value: dict[str, Any] = message(step, request("x"))
    assert len({block["id"] for block in value["content"]}) == count
