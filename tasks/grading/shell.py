"""Running a check's command line: bounded in time and output, and with nothing of it left running."""

from __future__ import annotations

import contextlib
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

from skilltrial.tasks.dispatch.descendants import family, send

SEARCHED_BYTES: Final = 8 << 20
"""Bytes of an output that a pattern is searched in; more are read and counted, not held."""

KEPT_BYTES: Final = 64 << 10
"""Bytes of an output that are kept for people: a longer one keeps its head and its tail."""

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


def run_shell(command: str, *, cwd: Path, env: Mapping[str, str], timeout_s: float) -> ShellResult:
    """Run `sh -c <command>` in a session of its own, stdin empty; afterwards none of its processes is alive.

    Raises `OSError` when the shell cannot be started.
    """
    mark = f"{_MARK}={uuid.uuid4().hex}"
    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        cwd=cwd,
        env={**env, **dict([mark.split("=")])},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    with _reading(process.stdout) as stdout, _reading(process.stderr) as stderr:
        exit_code: int | None = None
        try:
            exit_code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            pass
        finally:
            leftovers = _end(process, mark.encode())
    return ShellResult(exit_code, stdout, stderr, leftovers)


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


def _end(process: subprocess.Popen[bytes], mark: bytes) -> int:
    """Kill the command with all its processes, wherever they went; returns how many had outlived it."""
    found: set[int] = set()
    deadline = time.monotonic() + _GRACE_S
    while time.monotonic() < deadline:
        alive = family(process.pid, process.pid, mark)
        if not alive and process.poll() is not None:
            break
        found |= alive
        send(alive | ({process.pid} if process.poll() is None else set()), signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.01)
    return len(found)
