"""The stand-in model behind HTTP: a starlette application, and a server thread on the loopback interface.

It answers what claude 2.1.332 asks for (measured): `POST /v1/messages` streaming and not, `count_tokens`,
the list of models, and `HEAD` before anything else.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

import orjson
import uvicorn
from pydantic import JsonValue
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from skilltrial.data.models import Kept
from skilltrial.tasks.preflight.loopback.messages import encoded, events, identity, message
from skilltrial.tasks.preflight.loopback.scenarios import Choice, Script, Step, choose, error_body, fill, roster

_START_TIMEOUT_S = 30.0


class LoggedRequest(Kept):
    """What is remembered of a request: never a key, never a prompt."""

    method: str
    path: str
    key_sent: bool
    status: int  # of the answer
    model: str | None = None
    stream: bool | None = None
    conversation: str | None = None  # null: no conversation has the prompt, or it is not a question to a model
    step: int | None = None
    tools: tuple[str, ...] = ()  # tools offered to the model, in order
    skills: tuple[str, ...] = ()  # skills that the model was told of, in order


@dataclass(slots=True)
class Model:
    """A script at work: what was asked so far, and how often each failing step failed."""

    script: Script
    watch: Callable[[dict[str, JsonValue]], None] | None = None  # sees the body of every question, in its thread
    log: list[LoggedRequest] = field(default_factory=list)
    failures: Counter[tuple[str, int]] = field(default_factory=Counter)

    def application(self) -> Starlette:
        """The HTTP application that speaks for this model."""
        return Starlette(
            routes=[
                Route("/v1/messages", self._answer, methods=["POST"]),
                Route("/v1/messages/count_tokens", self._count_tokens, methods=["POST"]),
                Route("/v1/models", self._models, methods=["GET"]),
                Route("/health", self._healthy, methods=["GET"]),
                Route("/{path:path}", self._other, methods=["GET", "HEAD", "POST", "PUT", "DELETE"]),
            ]
        )

    async def _answer(self, request: Request) -> Response:
        body = await _body(request)
        if body is None:
            return self._refuse(request, 400, "invalid_request_error", "the body is not a JSON object")
        model = body.get("model")
        if self.script.models and model not in self.script.models:
            return self._refuse(request, 404, "not_found_error", f"model: {model}", body)
        choice = choose(self.script, body)
        step = choice.step
        if self.watch is not None:
            self.watch(body)
        if step is None:
            return self._refuse(request, 400, "invalid_request_error", f"loopback: {choice.complaint}", body, choice)
        if step.delay_s:
            await asyncio.sleep(step.delay_s)
        error = step.error
        if error is not None and self._still_failing(choice, error.times):
            self._remember(request, error.status, body, choice)
            return _json(error.body(), error.status, error.headers)
        if step.stream_error is not None and not body.get("stream"):
            return self._refuse(request, step.stream_error.status, *step.stream_error.told, body, choice)
        self._remember(request, 200, body, choice)
        step = fill(step, body)
        headers = {"request-id": f"req_{identity(body)}"}
        if body.get("stream"):
            return EventStream(step, body, headers)
        return CutAnswer(step, body, headers) if step.disconnect_after else _json(message(step, body), 200, headers)

    async def _count_tokens(self, request: Request) -> Response:
        raw = await request.body()
        self._remember(request, 200)
        return _json({"input_tokens": max(1, len(raw) // 4)}, 200)

    async def _models(self, request: Request) -> Response:
        self._remember(request, 200)
        names = self.script.models
        listed: list[JsonValue] = [{"type": "model", "id": name, "display_name": name} for name in names]
        ends: dict[str, JsonValue] = {"first_id": names[0] if names else None, "last_id": names[-1] if names else None}
        return _json({"data": listed, "has_more": False, **ends}, 200)

    async def _healthy(self, request: Request) -> Response:
        self._remember(request, 200)
        return _json({"ok": True}, 200)

    async def _other(self, request: Request) -> Response:
        if request.method == "HEAD":
            self._remember(request, 200)
            return Response(status_code=200)
        return self._refuse(request, 404, "not_found_error", f"loopback: there is no {request.url.path}")

    def _still_failing(self, choice: Choice, times: int | None) -> bool:
        assert choice.conversation is not None
        assert choice.position is not None
        key = (choice.conversation.name, choice.position)
        self.failures[key] += 1
        return times is None or self.failures[key] <= times

    def _refuse(
        self,
        request: Request,
        status: int,
        kind: str,
        text: str,
        body: dict[str, JsonValue] | None = None,
        choice: Choice | None = None,
    ) -> Response:
        self._remember(request, status, body, choice)
        return _json(error_body(kind, text), status)

    def _remember(
        self, request: Request, status: int, body: dict[str, JsonValue] | None = None, choice: Choice | None = None
    ) -> None:
        told = body or {}
        model, tools = told.get("model"), told.get("tools")
        conversation = choice.conversation if choice is not None else None
        self.log.append(
            LoggedRequest(
                method=request.method,
                path=request.url.path,
                key_sent=bool(request.headers.get("x-api-key") or request.headers.get("authorization")),
                status=status,
                model=model if isinstance(model, str) else None,
                stream=bool(told.get("stream")) if body is not None else None,
                conversation=conversation.name if conversation else None,
                step=choice.position if choice is not None else None,
                tools=tuple(str(t.get("name")) for t in tools if isinstance(t, dict))
                if isinstance(tools, list)
                else (),
                skills=roster(told),
            )
        )


class CutAnswer(Response):
    """A step as one message that breaks off in its middle."""

    def __init__(self, step: Step, request: dict[str, JsonValue], headers: dict[str, str]) -> None:
        super().__init__(orjson.dumps(message(step, request)), 200, headers, "application/json")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  (ASGI's signature)
        """Promise the whole message and send half of it, so that the server drops the line."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        half = bytes(self.body)[: len(self.body) // 2]
        await send({"type": "http.response.body", "body": half, "more_body": True})


class EventStream(Response):
    """A step as server-sent events, at the step's pace, cut off where the step says so."""

    def __init__(self, step: Step, request: dict[str, JsonValue], headers: dict[str, str]) -> None:
        super().__init__(status_code=200, headers={"cache-control": "no-cache", **headers})
        del self.headers["content-length"]
        self.headers["content-type"] = "text/event-stream; charset=utf-8"
        self._step, self._request = step, request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  (ASGI's signature)
        """Send the events; a stream that breaks off ends without its last chunk, so the server drops the line."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for count, event in enumerate(events(self._step, self._request), start=1):
            await send({"type": "http.response.body", "body": encoded(event), "more_body": True})
            if count == self._step.disconnect_after:
                return
            if self._step.chunk_delay_s:
                await asyncio.sleep(self._step.chunk_delay_s)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


class LoopbackServer:
    """A scripted model that listens on 127.0.0.1, at a free port, for the length of a `with` block.

    `watch` is called, in the server's thread, with the body of every question to the model: all that an
    agent CLI told it. Headers, and with them keys, are not part of it.
    """

    def __init__(self, script: Script, watch: Callable[[dict[str, JsonValue]], None] | None = None) -> None:
        self._model = Model(script, watch)
        self._socket: socket.socket | None = None
        self._started = threading.Event()
        config = uvicorn.Config(
            self._model.application(),
            http="h11",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level=1000,  # broken connections are part of the script
            access_log=False,
            timeout_graceful_shutdown=1,  # a scripted delay must not outlive the block
        )
        self._server = _AnnouncingServer(config, self._started)
        self._thread = threading.Thread(target=self._serve, name="loopback-model", daemon=True)

    @property
    def url(self) -> str:
        """What `ANTHROPIC_BASE_URL` has to be; only inside the block."""
        if self._socket is None:
            raise RuntimeError("the loopback server is not running: use it in a with block")
        host, port = self._socket.getsockname()
        return f"http://{host}:{port}"

    @property
    def log(self) -> tuple[LoggedRequest, ...]:
        """Every request answered so far, in order; still there after the block."""
        return tuple(self._model.log)

    @property
    def questions(self) -> tuple[LoggedRequest, ...]:
        """The requests to the model itself."""
        return tuple(entry for entry in self.log if entry.path == "/v1/messages")

    def __enter__(self) -> LoopbackServer:
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._thread.start()
        if not self._started.wait(_START_TIMEOUT_S):
            raise RuntimeError(f"the loopback server did not start within {_START_TIMEOUT_S:.0f} s")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join()
        assert self._socket is not None
        self._socket.close()
        self._socket = None

    def _serve(self) -> None:
        assert self._socket is not None
        self._server.run(sockets=[self._socket])


class _AnnouncingServer(uvicorn.Server):
    """uvicorn that says when it accepts connections, so that nobody has to poll."""

    def __init__(self, config: uvicorn.Config, started: threading.Event) -> None:
        super().__init__(config)
        self._announced = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._announced.set()


def _json(value: dict[str, JsonValue], status: int, headers: dict[str, str] | None = None) -> Response:
    return Response(orjson.dumps(value), status, headers, "application/json")


async def _body(request: Request) -> dict[str, JsonValue] | None:
    try:
        value = orjson.loads(await request.body())
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
