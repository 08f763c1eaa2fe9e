"""Calls reach the table in order, and memory stays bounded whatever is left unanswered."""

from __future__ import annotations

import pytest

from skilltrial.tasks.ingest import calls
from skilltrial.tasks.ingest.calls import Call, CallQueue
from tests.ingest.sinks import MemorySink


def call(order: int) -> Call:
    return Call(order, f"t{order}", None, None, "Bash", "shell", {"command": "x" * 90}, None, None)


def test_a_call_waits_for_those_before_it() -> None:
    sink = MemorySink()
    queue = CallQueue(sink, lambda _: False)
    first, second = call(0), call(1)
    queue.open(first)
    queue.open(second)
    second.decided = True
    queue.answer(second, "ok", 2, 0)
    queue.settle()
    assert sink.rows == {}
    first.decided = True
    queue.answer(first, "", 0, 0)
    queue.settle()
    assert [(row["order"], row["result"]) for row in sink.rows["tool_calls"]] == [(0, ""), (1, "ok")]
    assert (queue.calls, queue.answered, queue.forced) == (2, 2, 0)


def test_beyond_the_limit_the_oldest_go_as_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "HELD_CHARACTERS", 250)
    sink = MemorySink()
    queue = CallQueue(sink, lambda _: None)
    for order in range(5):
        queue.open(call(order))
    assert [row["order"] for row in sink.rows["tool_calls"]] == [0, 1, 2]
    assert (queue.forced, queue.held("t1"), queue.is_known("t1")) == (3, None, True)
    queue.finish()
    assert [row["order"] for row in sink.rows["tool_calls"]] == [0, 1, 2, 3, 4]
    assert {row["answered"] for row in sink.rows["tool_calls"]} == {False}
