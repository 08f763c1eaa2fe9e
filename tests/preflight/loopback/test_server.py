"""The HTTP application, and the server thread on the loopback interface."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

import anyio
import httpx
import orjson
import pytest

from skilltrial.tasks.preflight.loopback.scenarios import ApiError, Conversation, Script, Step, StreamError, ToolUse
from skilltrial.tasks.preflight.loopback.server import LoopbackServer, Model
from tests.preflight.loopback.requests import request, result, said

TEXT = Step(text="Hello there.")
CALL = Step(tools=(ToolUse(name="Write", input={"file_path": "{cwd}/a.md", "content": "A"}),))


def script(*steps: Step, models: tuple[str, ...] = ()) -> Script:
    return Script(conversations=(Conversation(name="greet", prompt="^Greet", steps=steps),), models=models)


def exchange(model: Model, *bodies: dict[str, Any], headers: dict[str, str] | None = None) -> list[httpx.Response]:
    """Answers of the application to requests for a message, one after the other, without a socket."""

    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app=model.application())
        async with httpx.AsyncClient(transport=transport, base_url="http://loopback", headers=headers) as client:
            return [await client.post("/v1/messages?beta=true", json=body) for body in bodies]

    return anyio.run(ask)


def stream_of(response: httpx.Response) -> list[dict[str, Any]]:
    lines = [line for line in response.text.splitlines() if line.startswith("data: ")]
    return [orjson.loads(line.removeprefix("data: ")) for line in lines]


def test_whole_answer_and_stream_say_the_same() -> None:
    whole, streamed = exchange(Model(script(TEXT)), request("Greet", stream=False), request("Greet"))
    assert whole.headers["content-type"] == "application/json"
    assert streamed.headers["content-type"] == "text/event-stream; charset=utf-8"
    events = stream_of(streamed)
    assert whole.json()["content"] == [{"type": "text", "text": "Hello there."}]
    assert events[2]["delta"]["text"] == "Hello there."
    assert events[0]["message"]["id"] == whole.json()["id"]
    assert whole.headers["request-id"] == streamed.headers["request-id"]


def test_second_request_of_a_conversation_gets_its_second_step() -> None:
    model = Model(script(CALL, TEXT))
    first, second = exchange(model, request("Greet", stream=False), request("Greet", said(), result(), stream=False))
    assert first.json()["content"][0]["input"] == {"file_path": "/srv/w1/project/a.md", "content": "A"}
    assert second.json()["content"] == [{"type": "text", "text": "Hello there."}]
    assert [entry.step for entry in model.log] == [0, 1]


def test_error_is_answered_so_many_times_and_then_no_more() -> None:
    error = ApiError(status=529, message="busy", times=2, headers={"retry-after": "1"})
    model = Model(script(TEXT.model_copy(update={"error": error})))
    answers = exchange(model, *(request("Greet", stream=False) for _ in range(4)))
    assert [answer.status_code for answer in answers] == [529, 529, 200, 200]
    assert answers[0].json() == {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
    assert answers[0].headers["retry-after"] == "1"
    assert [entry.status for entry in model.log] == [529, 529, 200, 200]


def test_error_without_a_limit_never_ends() -> None:
    model = Model(script(Step(error=ApiError(status=401, message="invalid x-api-key"))))
    answers = exchange(model, *(request("Greet") for _ in range(5)))
    assert [answer.status_code for answer in answers] == [401] * 5
    assert answers[4].json()["error"]["type"] == "authentication_error"


def test_steps_fail_independently() -> None:
    failing = TEXT.model_copy(update={"error": ApiError(status=500, times=1)})
    model = Model(script(failing, failing))
    later = request("Greet", said(), result())
    answers = exchange(model, request("Greet"), request("Greet"), later, later)
    assert [answer.status_code for answer in answers] == [500, 200, 500, 200]


def test_unknown_model_is_not_found() -> None:
    known, unknown = exchange(
        Model(script(TEXT, models=("claude-test-1",))), request("Greet"), request("Greet", model="claude-none")
    )
    assert known.status_code == 200
    assert unknown.status_code == 404
    assert unknown.json() == {"type": "error", "error": {"type": "not_found_error", "message": "model: claude-none"}}


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        (request("Sing"), "loopback: no scripted conversation has this prompt"),
        (request("Greet", said()), "loopback: conversation 'greet' has no step 1"),
    ],
)
def test_request_beyond_the_script_is_refused_with_the_reason(body: dict[str, Any], complaint: str) -> None:
    (answer,) = exchange(Model(script(TEXT)), body)
    assert answer.status_code == 400
    assert answer.json()["error"] == {"type": "invalid_request_error", "message": complaint}


def test_body_that_is_no_json_object_is_refused() -> None:
    with LoopbackServer(script(TEXT)) as server:
        answers = [httpx.post(f"{server.url}/v1/messages", content=content) for content in (b"{", b"[]")]
    assert [answer.status_code for answer in answers] == [400, 400]


def test_log_tells_what_was_asked_but_no_key() -> None:
    model = Model(script(TEXT))
    exchange(model, request("Greet", skills=True), headers={"x-api-key": "sk-secret-1"})
    exchange(model, request("Greet", stream=False), headers={"authorization": "Bearer sk-secret-2"})
    exchange(model, request("Greet"))
    first = model.log[0]
    assert (first.method, first.path, first.model) == ("POST", "/v1/messages", "claude-test-1")
    assert (first.conversation, first.step, first.tools) == ("greet", 0, ("Bash", "Write"))
    assert first.skills == ("tidy-notes", "plain-skill", "demo:demo-skill")
    assert [entry.key_sent for entry in model.log] == [True, True, False]
    assert [entry.stream for entry in model.log] == [True, False, True]
    assert "sk-secret" not in "".join(entry.model_dump_json() for entry in model.log)


def test_server_answers_everything_else_that_a_cli_asks() -> None:
    with LoopbackServer(script(TEXT, models=("a", "b"))) as server, httpx.Client(base_url=server.url) as client:
        assert client.head("/").status_code == 200
        assert client.get("/health").json() == {"ok": True}
        listed = client.get("/v1/models").json()
        assert [entry["id"] for entry in listed["data"]] == ["a", "b"]
        assert (listed["first_id"], listed["last_id"], listed["has_more"]) == ("a", "b", False)
        assert client.post("/v1/messages/count_tokens", content=b"x" * 400).json() == {"input_tokens": 100}
        assert client.get("/v1/files").status_code == 404
    assert [entry.status for entry in server.log] == [200, 200, 200, 200, 404]
    assert server.questions == ()


def test_server_listens_on_loopback_only_and_ends_with_its_block() -> None:
    with LoopbackServer(script(TEXT)) as server:
        url = server.url
        assert url.startswith("http://127.0.0.1:")
        assert httpx.post(f"{url}/v1/messages", json=request("Greet", stream=False)).status_code == 200
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/health")
    with pytest.raises(RuntimeError, match="not running"):
        _ = server.url
    assert len(server.questions) == 1


def test_two_servers_run_side_by_side() -> None:
    with LoopbackServer(script(TEXT)) as one, LoopbackServer(script(TEXT)) as two:
        assert one.url != two.url
        httpx.get(f"{two.url}/health")
    assert (len(one.log), len(two.log)) == (0, 1)


def events_until_the_end(url: str) -> tuple[list[str], bool]:
    """Types of the events of a streamed answer, and whether the connection broke before the stream's end."""
    kinds: list[str] = []
    try:
        with httpx.stream("POST", f"{url}/v1/messages", json=request("Greet")) as response:
            for line in response.iter_lines():
                kinds += [line.removeprefix("event: ")] if line.startswith("event: ") else []
    except httpx.RemoteProtocolError:
        return kinds, True
    return kinds, False


def test_connection_breaks_after_the_scripted_number_of_events() -> None:
    with LoopbackServer(script(Step(text="x" * 2000, disconnect_after=4))) as server:
        kinds, broken = events_until_the_end(server.url)
    assert kinds == ["message_start", "content_block_start", "content_block_delta", "content_block_delta"]
    assert broken


def test_answer_that_is_no_stream_breaks_off_too() -> None:
    step = Step(text="x" * 2000, disconnect_after=4)
    with LoopbackServer(script(step)) as server, pytest.raises(httpx.RemoteProtocolError, match="complete message"):
        httpx.post(f"{server.url}/v1/messages", json=request("Greet", stream=False))


@pytest.mark.parametrize(("kind", "status"), [("overloaded_error", 529), ("api_error", 500), ("odd_error", 500)])
def test_stream_error_is_a_plain_error_where_nothing_streams(kind: str, status: int) -> None:
    (answer,) = exchange(Model(script(Step(stream_error=StreamError(type=kind)))), request("Greet", stream=False))
    assert answer.status_code == status
    assert answer.json()["error"] == {"type": kind, "message": "scripted stream error"}


def test_watcher_sees_the_body_of_every_question() -> None:
    seen: list[dict[str, Any]] = []
    first, second = request("Greet"), request("Sing")
    exchange(Model(script(TEXT), seen.append), first, second)
    assert seen == [first, second]


def test_stream_error_ends_the_stream_properly() -> None:
    with LoopbackServer(script(Step(stream_error=StreamError()))) as server:
        assert events_until_the_end(server.url) == (["message_start", "error"], False)


def test_whole_stream_is_not_broken() -> None:
    with LoopbackServer(script(Step(text="Hello", chunk_delay_s=0.001))) as server:
        kinds, broken = events_until_the_end(server.url)
    assert (kinds[0], kinds[-1], broken) == ("message_start", "message_stop", False)


@pytest.mark.parametrize("field", ["delay_s", "chunk_delay_s"])
def test_scripted_delay_does_not_outlive_the_block(field: str) -> None:
    slow = TEXT.model_copy(update={field: 3600.0})
    sent = threading.Event()

    def ask(url: str) -> None:
        client = httpx.Client(timeout=None, event_hooks={"request": [lambda _: sent.set()]})
        # the server ends the request with an error of its own, or by hanging up
        with client, contextlib.suppress(httpx.HTTPError):
            client.post(f"{url}/v1/messages", json=request("Greet"))

    with LoopbackServer(script(slow)) as server:
        asking = threading.Thread(target=ask, args=(server.url,))
        asking.start()
        assert sent.wait(10)
    asking.join(20)
    assert not asking.is_alive()
