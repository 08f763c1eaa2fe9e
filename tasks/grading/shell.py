"""Running a check's command line: bounded in time and output, and with nothing of it left running."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from skilltrial.data.errors import Transient
from skilltrial.tasks.dispatch import process
from skilltrial.tasks.dispatch import warden as warden_program
from skilltrial.tasks.dispatch.descendants import marked, send
from skilltrial.tasks.dispatch.warden import KILL_S, Job, Report

SEARCHED_BYTES: Final = 8 << 20
"""Bytes of an output that a pattern is searched in; more are read and counted, not held."""

KEPT_BYTES: Final = 64 << 10
"""Bytes of an output that are kept for people: a longer one keeps its head and its tail."""

WARDEN: Final = Path(warden_program.__file__)

_MARK: Final = "CHECK_RUN"
_PIECE: Final = 1 << 16
_GRACE_S: Final = 2.0


@dataclass(slots=True)
class Output:
    """What was written to one stream."""

    head: bytearray = field(default_factory=bytearray)
    tail: bytes = b""
    size: int = 0

    def take(self, piece: bytes) -> None:
        """Take the next bytes."""
        self.size += len(piece)
        self.head += piece[: SEARCHED_BYTES - len(self.head)]
        self.tail = (self.tail + piece)[-KEPT_BYTES // 2 :]

    @property
    def whole(self) -> bool:
        """Whether all of it is in `head`."""
        return self.size == len(self.head)

    @property
    def excerpt(self) -> bytes:
        """At most `KEPT_BYTES`, and a line that says how many bytes are missing in the middle."""
        if self.size <= KEPT_BYTES:
            return bytes(self.head)
        missing = self.size - 2 * (KEPT_BYTES // 2)
        return bytes(self.head[: KEPT_BYTES // 2]) + f"\n[… {missing} bytes left out …]\n".encode() + self.tail


@dataclass(frozen=True, slots=True)
class ShellResult:
    """How a command line ended."""

    exit_code: int | None  # negative: ended by that signal; null: it was ended for taking too long
    stdout: Output
    stderr: Output
    leftovers: int  # processes that outlived the command and were ended

    @property
    def timed_out(self) -> bool:
        """Whether the time limit ended it."""
        return self.exit_code is None


class CheckCancelled(Transient):
    """The run ended while a check was under way, so that there is nothing to be said of it."""

    def __str__(self) -> str:
        return "the run ended before the check did"


def run_shell(
    command: str, *, cwd: Path, env: Mapping[str, str], timeout_s: float, ticket: int | None = None
) -> ShellResult:
    """Run `sh -c <command>` in a session of its own, stdin empty; afterwards none of its processes is alive.

    A warden owns the processes, so that they end with this process as well, however it ends. Raises `OSError`
    when the shell cannot be started, `CheckCancelled` when `process.end_all` was called since the ticket was drawn
    (default: now).
    """
    drawn = process.ticket() if ticket is None else ticket
    mark = f"{_MARK}={uuid.uuid4().hex}"
    reader, writer = os.pipe()
    try:
        warden = process.start_helper(WARDEN, drawn, stdout=subprocess.PIPE, cwd=cwd, pass_fds=(writer,))
    finally:
        os.close(writer)
    with open(reader, "rb") as report:  # noqa: PTH123 (a descriptor)
        if warden is None:
            raise CheckCancelled
        job: Job = {
            "command": command,
            "environment": {**env, **dict([mark.split("=")])},
            "mark": mark,
            "report": writer,
        }
        assert warden.stdout is not None
        assert warden.stderr is not None
        with _reading(warden.stdout) as stdout, _reading(warden.stderr) as stderr:
            try:
                with contextlib.suppress(BrokenPipeError):  # it died: that there is no report tells
                    process.hand_over(warden, json.dumps(job).encode() + b"\n")
                timed_out = not _ended(warden, timeout_s)
            finally:
                process.forget_helper(warden)
                if not _ended(warden, _GRACE_S + KILL_S):
                    warden.kill()
                    warden.wait()
        found = report.read()
    if process.ticket() != drawn:
        raise CheckCancelled
    if not found:
        _kill_marked(mark.encode())
        raise OSError(f"the command's warden ended with {warden.returncode} and no report")
    told: Report = json.loads(found)
    if told["error"] is not None:
        raise OSError(told["error"])
    return ShellResult(None if timed_out else told["exit_code"], stdout, stderr, told["leftovers"])


def _ended(warden: subprocess.Popen[bytes], limit_s: float) -> bool:
    try:
        warden.wait(limit_s)
    except subprocess.TimeoutExpired:
        return False
    return True


@contextlib.contextmanager
def _reading(stream: IO[bytes]) -> Iterator[Output]:
    """Read a stream in the background for as long as the context lasts, and to its end when that comes soon."""
    output = Output()
    descriptor = stream.fileno()
    closed = threading.Event()

    def read() -> None:
        while not closed.is_set():
            piece = os.read(descriptor, _PIECE)
            if not piece:
                return
            output.take(piece)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield output
    finally:
        reader.join(_GRACE_S)
        closed.set()
        if not reader.is_alive():  # else a process that could not be found holds the other end
            stream.close()


def _kill_marked(mark: bytes) -> None:
    """Kill what a killed warden left behind."""
    deadline = time.monotonic() + _GRACE_S
    while time.monotonic() < deadline and (living := marked(mark)):
        send(living, signal.SIGKILL)
