"""The program that owns one round: it starts the CLI, watches it, and lets nothing of it survive.

Run as `python -I -S supervisor.py`, with only the standard library, so that it starts within some tens of
milliseconds. Its job comes as one line of JSON on stdin (`Job`); after that line stdin stays open, and its
end means that whoever wanted the round is gone or wants it no more. It leaves a process record (the fields
of `data.attempt.ProcessRecord`) as its last act. The job holds secrets, so it is never written to a file.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from typing import IO, TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING or __package__:
    from skilltrial.tasks.dispatch import descendants, redact
else:  # run by path: of the project, only this folder is at hand
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    import descendants
    import redact

    sys.path.pop(0)

INTERRUPT_S, TERMINATE_S, KILL_S = 1.0, 3.0, 5.0
"""How long each stage of ending waits before the next one; the last is given up on."""

PARTING_S = 0.1
"""How long what a CLI started may take to end by itself, once the CLI has exited, before it is a leftover."""

STDERR_HEAD, STDERR_TAIL = 32_768, 32_768
"""Bytes of stderr that are kept from its beginning and from its end."""

_CHUNK = 65_536
_TICK_S = 1.0
_LONGEST_RESULT = 8 << 20
_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Job(TypedDict):
    """What to run and within which limits. Paths are absolute, limits in seconds."""

    argv: list[str]
    environment: dict[str, str]
    mark: str  # the variable in `environment` that every process of the round carries, as NAME=value
    folder: str  # working directory of the CLI
    prompt: str  # file that becomes its stdin
    events: str  # file that takes its stdout
    stderr: str
    record: str
    deadline_s: float
    silence_s: float
    grace_s: float  # how long it may live after its result
    results: list[dict[str, str]]  # a record with all fields of one of these is a result; dots enter objects
    secrets: list[str]


class Stderr:
    """Keeps the beginning and the end of what the CLI says, and counts all of it."""

    def __init__(self, path: str, secrets: list[str]) -> None:
        self.bytes = 0
        self._redactor = redact.StreamRedactor(secrets)
        self._file = open(path, "wb", buffering=0)  # noqa: PTH123, SIM115 (closed by `finish`)
        self._head = self._left_out = 0
        self._tail = b""

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        self.bytes += len(chunk)
        self._keep(self._redactor.feed(chunk))

    def finish(self) -> None:
        """Write what was kept of the end, with a line that tells how much is missing before it."""
        self._keep(self._redactor.finish())
        if self._left_out:
            self._file.write(b"\n[%d bytes left out]\n" % self._left_out)
        self._file.write(self._tail)
        self._file.close()

    def _keep(self, text: bytes) -> None:
        if self._head < STDERR_HEAD:
            part = text[: STDERR_HEAD - self._head]
            self._file.write(part)
            self._head += len(part)
            text = text[len(part) :]
        tail = self._tail + text
        self._left_out += max(0, len(tail) - STDERR_TAIL)
        self._tail = tail[-STDERR_TAIL:]


class Events:
    """The event file: the CLI writes to it directly, unless secrets must be taken out on the way."""

    def __init__(self, job: Job) -> None:
        self.file: IO[bytes] = open(job["events"], "w+b", buffering=0)  # noqa: PTH123, SIM115
        self.pumped = bool(job["secrets"])
        self._redactor = redact.StreamRedactor(job["secrets"])
        self._results = job["results"]
        self._seen = 0
        self._is_result = False

    def size(self) -> int:
        """Bytes so far."""
        return os.fstat(self.file.fileno()).st_size

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes (only when pumped)."""
        _write_all(self.file.fileno(), self._redactor.feed(chunk))

    def finish(self) -> None:
        """Write what the redactor still holds, and see to it that all is on the disk."""
        _write_all(self.file.fileno(), self._redactor.finish())
        os.fsync(self.file.fileno())

    def end_in_result(self) -> bool:
        """Whether the last line is a result record, and whole."""
        size = self.size()
        if size != self._seen:
            self._seen = size
            # a line that is being written is not read again and again: it may have hundreds of megabytes
            whole = size > 0 and os.pread(self.file.fileno(), 1, size - 1) == b"\n"
            self._is_result = whole and bool(self._results) and self._matches(self._last_line(size))
        return self._is_result

    def _last_line(self, size: int) -> bytes:
        """The last line that has its end; empty when it is absurdly long."""
        tail = b""
        while len(tail) < min(size, _LONGEST_RESULT):
            start = max(0, size - max(_CHUNK, 4 * len(tail)))
            tail = os.pread(self.file.fileno(), size - start, start)
            end = tail.rfind(b"\n")
            begin = tail.rfind(b"\n", 0, max(end, 0))
            if end >= 0 and (begin >= 0 or start == 0):
                return tail[begin + 1 : end]
        return b""

    def _matches(self, line: bytes) -> bool:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            return False
        return any(all(_lookup(record, name) == value for name, value in wanted.items()) for wanted in self._results)


class Round:
    """One run of the CLI, from its start until nothing of it is left."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.events = Events(job)
        self.stderr = Stderr(job["stderr"], job["secrets"])
        self.selector = selectors.DefaultSelector()
        self.started_at, self.started = time.time(), time.monotonic()
        self.ended_by = "exit"
        self.leftovers: set[int] = set()
        self.wanted = True
        self.child: subprocess.Popen[bytes] | None = None
        self._active, self._size = self.started, 0
        self._result_since: float | None = None

    def run(self) -> None:
        """Run to the end and leave the record."""
        error = self._start()
        if error is None:
            self._watch()
            self._end_everything()
            self._drain()
        self.events.finish()
        self.stderr.finish()
        self._write_record(error)

    def _start(self) -> str | None:
        """Start the CLI; returns why that is not possible."""
        job, parent = self.job, os.getpid()
        self._watch_control()
        try:
            with open(job["prompt"], "rb") as prompt:  # noqa: PTH123
                self.child = subprocess.Popen(
                    job["argv"],
                    cwd=job["folder"],
                    env=job["environment"],
                    stdin=prompt,
                    stdout=subprocess.PIPE if self.events.pumped else self.events.file,
                    stderr=subprocess.PIPE,
                    bufsize=0,
                    start_new_session=True,
                    preexec_fn=lambda: _prepare_child(parent),  # noqa: PLW1509 (this process has one thread)
                )
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            self.ended_by = "not_started"
            return str(error)
        for pipe, take in ((self.child.stdout, self.events.feed), (self.child.stderr, self.stderr.feed)):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
                self.selector.register(pipe, selectors.EVENT_READ, take)
        return None

    def _watch_control(self) -> None:
        """Wake up at the end of stdin, at the end of a child, and when somebody signals this process."""
        reader, writer = os.pipe()
        for end in (reader, writer, sys.stdin.fileno()):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(writer)
        for number in (signal.SIGCHLD, *_ENDING_SIGNALS):
            signal.signal(number, lambda *_: None)
        self.selector.register(reader, selectors.EVENT_READ, "signal")
        self.selector.register(sys.stdin.fileno(), selectors.EVENT_READ, "stdin")

    def _watch(self) -> None:
        """Wait until the CLI exits or has to be ended, and say which."""
        while self.child is not None and self.child.poll() is None:
            self._look(min(_TICK_S, self._until_next_limit()))
            reason = self._due()
            if reason is not None:
                if self.child.poll() is None:
                    self.ended_by = reason
                return

    def _until_next_limit(self) -> float:
        job, now = self.job, time.monotonic()
        limits = [self.started + job["deadline_s"], self._active + job["silence_s"]]
        if self._result_since is not None:
            limits.append(self._result_since + job["grace_s"])
        return max(0.0, min(limits) - now)

    def _due(self) -> str | None:
        """Why the CLI has to be ended now."""
        job, now, size = self.job, time.monotonic(), self.events.size()
        if not self.wanted:
            return "cancelled"
        if size != self._size:
            self._size, self._active = size, now
            self._result_since = now if self.events.end_in_result() else None
        if self._result_since is not None and now - self._result_since >= job["grace_s"]:
            return "lingering"
        if now - self.started >= job["deadline_s"]:
            return "deadline"
        return "silence" if now - self._active >= job["silence_s"] else None

    def _look(self, seconds: float) -> None:
        """Handle what is there to read, after waiting at most so long for it."""
        for key, _ in self.selector.select(seconds):
            try:
                chunk = os.read(key.fd, _CHUNK)
            except BlockingIOError:
                continue
            if key.data == "signal":
                self.wanted = self.wanted and not any(number in chunk for number in _ENDING_SIGNALS)
                continue
            if key.data == "stdin":
                self.wanted = self.wanted and bool(chunk)
            elif chunk:
                self._active = time.monotonic()
                key.data(chunk)
            if not chunk:
                self.selector.unregister(key.fileobj)

    def _end_everything(self) -> None:
        """Interrupt, terminate, kill: the CLI, what it started, and what carries the mark of the round."""
        assert self.child is not None
        stages = [(signal.SIGTERM, TERMINATE_S), (signal.SIGKILL, KILL_S)]
        if self.child.poll() is None:
            self._signal_group(signal.SIGINT)
            self._wait_for_child(INTERRUPT_S)
        else:
            self._wait_for_family(PARTING_S)
        for number, seconds in stages:
            end = time.monotonic() + seconds
            sent: set[int] = set()
            while living := self._living():
                # a killed process may have forked meanwhile: newcomers get the signal as well
                descendants.send(living - sent, number)
                sent |= living
                if time.monotonic() >= end:
                    break
                self._look(0.02)

    def _living(self) -> set[int]:
        """What still lives of the round; what outlived the CLI is counted."""
        assert self.child is not None
        exited = self.child.poll() is not None
        found = descendants.family(os.getpid(), self.child.pid, self.job["mark"].encode())
        if exited:
            self.leftovers |= found
            self._reap()
        return found

    def _wait_for_child(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while self.child is not None and self.child.poll() is None and time.monotonic() < end:
            self._look(max(0.0, end - time.monotonic()))

    def _wait_for_family(self, seconds: float) -> None:
        assert self.child is not None
        end, mark = time.monotonic() + seconds, self.job["mark"].encode()
        while time.monotonic() < end and descendants.family(os.getpid(), self.child.pid, mark):
            self._look(0.02)

    def _signal_group(self, number: signal.Signals) -> None:
        assert self.child is not None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.child.pid, number)

    def _reap(self) -> None:
        """Take the exit codes of adopted processes, so that they leave the process table."""
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass

    def _drain(self) -> None:
        """Read what is left in the pipes: all writers are gone, so their end comes at once."""
        end = time.monotonic() + 2.0
        while time.monotonic() < end and any(callable(key.data) for key in self.selector.get_map().values()):
            self._look(0.05)

    def _write_record(self, error: str | None) -> None:
        code = self.child.returncode if self.child is not None else None
        started = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(self.started_at))
        record: dict[str, Any] = {
            "ended_by": self.ended_by,
            "exit_code": code,
            "started_at": f"{started}.{int(self.started_at % 1 * 1e6):06d}Z",
            "duration_ms": round((time.monotonic() - self.started) * 1000),
            "stdout_bytes": self.events.size(),
            "stderr_bytes": self.stderr.bytes,
            "leftovers": len(self.leftovers),
            "error": error,
        }
        scratch = f"{self.job['record']}.{os.getpid()}.tmp"
        with open(scratch, "wb") as handle:  # noqa: PTH123
            handle.write(json.dumps(record, indent=2).encode() + b"\n")
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(scratch, self.job["record"])  # noqa: PTH105


def _prepare_child(parent: int) -> None:
    """Runs in the child before `exec`: die with the supervisor, and take no signal settings over from it."""
    descendants.die_with_parent()
    for number in (signal.SIGCHLD, *_ENDING_SIGNALS):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if os.getppid() != parent:
        os._exit(1)


def _lookup(record: object, name: str) -> object:
    for part in name.split("."):
        record = record.get(part) if isinstance(record, dict) else None
    return record


def _write_all(descriptor: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def _read_job() -> Job:
    """The first line of stdin, read without buffering beyond it."""
    line = b""
    while not line.endswith(b"\n"):
        chunk = os.read(sys.stdin.fileno(), _CHUNK)
        if not chunk:
            raise SystemExit("no job came on stdin")
        line += chunk
    job: Job = json.loads(line)
    return job


def main() -> None:
    """Do the job that comes on stdin."""
    job = _read_job()
    descendants.become_adopter()
    Round(job).run()


if __name__ == "__main__":
    main()
