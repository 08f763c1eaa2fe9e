"""Failures on demand: every way in which an agent CLI is known to end badly, or to write a bad stream.

`FAILURES` in `script.py` lists their kinds and options. A failure either raises `Ended`, changes how the session
will end (`Ending`), or only disturbs the stream.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

from .shell import wait
from .signals import STOPPING, Signals
from .stream import Json, Stream, encoded

_LONG_S: Final = 3600.0
_PIECES: Final = 20
_NO_JSON: Final = ("this line is no JSON", '{"type": "assistant", "message": {"content": [', "[1, 2", "")


class Ended(Exception):
    """The process ends with this exit code; everything that it writes is written."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Ending:
    """How the session will end once its steps are through."""

    def __init__(self) -> None:
        self.exit_code = 0
        self.text: str | None = None  # the last text said
        self.result: str | None = None  # instead of it
        self.linger_s = 0.0
        self.streaming = False  # in the middle of a line


class Scene(NamedTuple):
    """What a failure may act on."""

    stream: Stream
    signals: Signals
    ending: Ending
    denials: list[Json]


class ApiError(NamedTuple):
    """A failed request to the model, as the CLI reports it."""

    status: int | None
    retry: str | None  # label of its retries; null: not retried
    error: str
    details: Json
    text: str


API_ERRORS: Final[dict[str, ApiError]] = {
    "rate_limit": ApiError(
        429,
        "rate_limit",
        "rate_limit",
        {"api_error_type": "rate_limit_error"},
        "API Error: Request rejected (429) · rate limited",
    ),
    "overloaded": ApiError(
        529,
        "overloaded",
        "server_error",
        {"api_error_type": "overloaded_error"},
        "API Error: Repeated 529 Overloaded errors. The API is at capacity — this is usually temporary. "
        "Try again in a moment.",
    ),
    "server_error": ApiError(
        500,
        "server_error",
        "server_error",
        {"api_error_type": "api_error"},
        "API Error: 500 Internal server error. This is a server-side issue, usually temporary — try again in a moment.",
    ),
    "auth": ApiError(
        401,
        "authentication_failed",
        "authentication_failed",
        {"api_error_type": "authentication_error"},
        "Invalid API key · Fix external API key",
    ),
    "network": ApiError(
        None,
        "unknown",
        "server_error",
        {"api_error": "connection_failed"},
        "API Error: Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED)",
    ),
    "not_logged_in": ApiError(None, None, "authentication_failed", {}, "Not logged in · Please run /login"),
    "billing": ApiError(
        400, None, "billing_error", {"api_error_type": "invalid_request_error"}, "Credit balance is too low"
    ),
    "model_not_found": ApiError(
        404,
        None,
        "model_not_found",
        {"api_error_type": "not_found_error"},
        "There's an issue with the selected model (scripted). It may not exist or you may not have access to it. "
        "Run --model to pick a different model.",
    ),
}
"""Kinds of API errors; status, labels and texts measured, the host names in some texts left out."""


def is_due(fail: Json) -> bool:
    """Whether a failure limited to some processes happens in this one; counts it if so."""
    if "times" not in fail:
        return True
    path = Path(os.path.expandvars(fail["counter"]))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        count = int(file.read() or "0")
        if count >= fail["times"]:
            return False
        file.truncate(0)
        file.write(str(count + 1))
    return True


def carry_out(fail: Json, scene: Scene) -> None:
    """Let a failure happen. `Ended` when it ends the process."""
    kind = fail["kind"]
    if kind in API_ERRORS:
        _api_error(API_ERRORS[kind], fail, scene)
    else:
        _ACTIONS[kind](fail, scene)


def die(number: int) -> NoReturn:
    """End by a signal, as a crash or a kill does."""
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    time.sleep(_LONG_S)  # the signal is on its way
    raise Ended(128 + number)


def _api_error(error: ApiError, fail: Json, scene: Scene) -> None:
    retries = fail.get("retries", 2) if error.retry else 0
    delay_s = fail.get("retry_delay_s", 0)
    for attempt in range(1, retries + 1):
        fields = {"attempt": attempt, "max_retries": 10, "retry_delay_ms": round(delay_s * 1000)}
        scene.stream.system("api_retry", {**fields, "error_status": error.status, "error": error.retry})
        wait(delay_s, scene.signals, for_model=True)
    if fail.get("recover", False):
        return
    status = {"api_error_status": error.status}
    scene.stream.api_error(error.text, error.error, {**(status if error.status else {}), **error.details})
    ending = {"is_error": True, **status, **error.details, "result": error.text}
    scene.stream.event(scene.stream.result("success", "api_error", "stop_sequence", scene.denials, **ending))
    raise Ended(1)


def _crash(fail: Json, _scene: Scene) -> None:
    sys.stderr.write(fail.get("stderr", "scripted agent: crashed as the script says\n"))
    sys.stderr.flush()
    _exit(fail, 1)


def _no_result(fail: Json, _scene: Scene) -> None:
    _exit(fail, 0)


def _cut_last_line(fail: Json, scene: Scene) -> None:
    line = encoded(_success(scene))
    scene.stream.write(line[: len(line) // 2])
    _exit(fail, 0)


def _exit(fail: Json, code: int) -> NoReturn:
    if "signal" in fail:
        die(getattr(signal, fail["signal"]))
    raise Ended(fail.get("exit_code", code))


def _success(scene: Scene) -> Json:
    text = scene.ending.text or ""
    return scene.stream.result("success", "completed", "end_turn", scene.denials, result=text)


def _failed_session(subtype: str, reason: str, errors: list[str], scene: Scene) -> NoReturn:
    scene.stream.event(scene.stream.result(subtype, reason, "tool_use", scene.denials, errors=errors))
    raise Ended(1)


def max_turns(limit: int, scene: Scene) -> NoReturn:
    """End the session since the limit of turns is reached."""
    _failed_session("error_max_turns", "max_turns", [f"Reached maximum number of turns ({limit})"], scene)


def _max_budget(_fail: Json, scene: Scene) -> None:
    _failed_session("error_max_budget_usd", "budget_exhausted", ["Reached maximum budget ($0)"], scene)


def _error_during_execution(fail: Json, scene: Scene) -> None:
    text = fail.get("message", "[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=tool_use")
    _failed_session("error_during_execution", "aborted_tools", [text], scene)


def _set_exit_code(fail: Json, scene: Scene) -> None:
    scene.ending.exit_code = fail.get("exit_code", 1)


def _empty_result(_fail: Json, scene: Scene) -> None:
    scene.ending.result = ""


def _linger(fail: Json, scene: Scene) -> None:
    scene.ending.linger_s = fail.get("seconds", _LONG_S)


def _hang(fail: Json, scene: Scene) -> None:
    if "child" in fail:
        _leave_running(fail, scene)
    seconds = fail.get("seconds", _LONG_S)
    if not fail.get("ignore_signals", False):
        wait(seconds, scene.signals, for_model=True)
        return
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)
    time.sleep(seconds)


def _leave_running(fail: Json, _scene: Scene) -> None:
    """Start a process that outlives this one; its identifier goes to `pid_file` before this returns."""
    kind = fail.get("child", "session")
    deaf = "trap '' TERM INT HUP; " if kind == "deaf" else ""
    sleep = f"{deaf}exec sleep {fail.get('seconds', _LONG_S)}"
    # printed by the process itself, so that a reader of the file finds it in its final session
    told = 'echo $$ > "$0.part" && mv "$0.part" "$0"' if "pid_file" in fail else ":"
    inner = f"{told}; {sleep}"
    pid_file = os.path.expandvars(fail.get("pid_file", "unused"))
    started = subprocess.Popen(
        ["/bin/sh", "-c", inner if kind == "session" else f"/bin/sh -c '{_quoted(inner)}' \"$0\" & exit 0", pid_file],
        stdin=subprocess.DEVNULL,
        stdout=None if fail.get("hold_output", False) else subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    if kind != "session":
        started.wait()
    else:
        _CHILDREN.append(started)
    deadline = time.monotonic() + 10
    while "pid_file" in fail and not Path(pid_file).exists() and time.monotonic() < deadline:
        time.sleep(0.005)


def _quoted(text: str) -> str:
    return text.replace("'", "'\\''")


def _foreign_session(fail: Json, scene: Scene) -> None:
    scene.stream.session_id = fail.get("session_id", "00000000-0000-4000-8000-000000000000")


def _oversized_line(fail: Json, scene: Scene) -> None:
    scene.stream.text("x" * fail.get("bytes", 2_000_000))


def _garbage(fail: Json, scene: Scene) -> None:
    for line in fail.get("lines", _NO_JSON):
        scene.stream.write(str(line).encode("utf-8", "replace") + b"\n")


def _invalid_utf8(_fail: Json, scene: Scene) -> None:
    line = encoded(scene.stream.block({"type": "text", "text": "bytes: <here>"}))
    scene.stream.write(line.replace(b"<here>", b"\xff\xfe\xc3") + b"\n")


def _slow_output(fail: Json, scene: Scene) -> None:
    line = encoded(scene.stream.block({"type": "text", "text": fail.get("text", "slowly")})) + b"\n"
    size = -(-len(line) // _PIECES)
    scene.ending.streaming = True
    for start in range(0, len(line), size):
        scene.stream.write(line[start : start + size])
        wait(fail.get("seconds", 1) / _PIECES, scene.signals, for_model=True)
    scene.ending.streaming = False


def _stderr_flood(fail: Json, scene: Scene) -> None:
    data = (b"e" * 99 + b"\n") * (fail.get("bytes", 1_000_000) // 100)
    with scene.signals.writing():
        while data:
            data = data[os.write(2, data) :]


_CHILDREN: Final[list[subprocess.Popen[bytes]]] = []  # kept, so that none is reaped or warned about
_ACTIONS: Final[dict[str, Callable[[Json, Scene], None]]] = {
    "crash": _crash,
    "no_result": _no_result,
    "cut_last_line": _cut_last_line,
    "exit_code": _set_exit_code,
    "empty_result": _empty_result,
    "linger": _linger,
    "max_turns": lambda _fail, scene: max_turns(scene.stream.turns, scene),
    "max_budget": _max_budget,
    "error_during_execution": _error_during_execution,
    "hang": _hang,
    "leave_running": _leave_running,
    "foreign_session": _foreign_session,
    "oversized_line": _oversized_line,
    "garbage": _garbage,
    "invalid_utf8": _invalid_utf8,
    "slow_output": _slow_output,
    "stderr_flood": _stderr_flood,
}
