"""Running one round of an attempt through a supervisor, from any thread, and ending all of them at once."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import IO, Final

from skilltrial.data.attempt import EndedBy, ProcessRecord
from skilltrial.data.errors import Transient
from skilltrial.data.store import read_model, write_model
from skilltrial.tasks.dispatch.marks import MARK_NAME
from skilltrial.tasks.dispatch.supervisor import Job
from skilltrial.tasks.dispatch.sweep import sweep

SUPERVISOR: Final = Path(__file__).with_name("supervisor.py")

_LOADER_VARIABLES: Final = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""What some Python installations need in order to start at all; the CLI does not get them from here."""

GRACE_S: Final = 10.0
"""Seconds that a CLI may live after its result: claude 2.1.332 exits within 0.1 s, exit hooks may take longer."""

RESULTS: Final[Mapping[str, tuple[Mapping[str, str], ...]]] = MappingProxyType(
    {
        "claude-stream-json": ({"type": "result"},),
        "codex-items": ({"type": "turn.completed"}, {"type": "turn.failed"}),
        "opencode-events": ({"type": "step_finish", "part.reason": "stop"},),
        "cline-json": ({"type": "run_result"},),
    }
)
"""By the name of a stream's parser: the records after which a CLI has nothing left to do."""


class SupervisorLost(Transient):
    """The supervisor of a round ended without a record; what it watched was ended by the environment mark."""

    def __init__(self, folder: str, exit_code: int, stderr: str) -> None:
        self.folder, self.status, self.stderr = folder, exit_code, stderr
        super().__init__(folder, exit_code, stderr)

    def __str__(self) -> str:
        return f"the supervisor of {self.folder} ended without a record ({self.status}): {self.stderr.strip()}"


@dataclass(frozen=True, slots=True)
class Limits:
    """How long one round may take, in seconds."""

    deadline_s: float
    silence_s: float
    grace_s: float = GRACE_S


@dataclass(frozen=True, slots=True)
class RoundFiles:
    """Where one round reads its prompt from and leaves what it wrote."""

    prompt: Path
    events: Path
    stderr: Path
    record: Path

    @classmethod
    def inside(cls, folder: Path, prompt: Path) -> RoundFiles:
        """The files of a round in its folder, by the names that the store gives them."""
        return cls(prompt, folder / "events.jsonl", folder / "stderr.log", folder / "process.json")


class _Helpers:
    """The live supervisors and wardens of this process: programs of ours that own processes of others."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._live: set[subprocess.Popen[bytes]] = set()
        self._endings = 0

    def endings(self) -> int:
        with self._lock:
            return self._endings

    def start(
        self, program: Path, ticket: int, *, stdout: int, cwd: Path | None, pass_fds: Sequence[int]
    ) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if ticket != self._endings:
                return None
            helper = subprocess.Popen(
                [sys.executable, "-I", "-S", str(program)],
                stdin=subprocess.PIPE,
                stdout=stdout,
                stderr=subprocess.PIPE,
                cwd=cwd,
                pass_fds=pass_fds,
                env={name: os.environ[name] for name in _LOADER_VARIABLES if name in os.environ},
                start_new_session=True,  # a Ctrl-C in the terminal reaches this process, which then ends the round
                bufsize=0,
            )
            self._live.add(helper)
            return helper

    def end(self, helper: subprocess.Popen[bytes]) -> None:
        with self._lock:
            _close(helper)

    def hand_over(self, helper: subprocess.Popen[bytes], content: bytes) -> None:
        """No other thread may close the pipe meanwhile: its descriptor could be another file's a moment later."""
        with self._lock:
            if helper.stdin is not None and not helper.stdin.closed:
                _write_all(helper.stdin, content)

    def forget(self, helper: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._live.discard(helper)
            _close(helper)

    def end_all(self) -> int:
        with self._lock:
            self._endings += 1
            for helper in self._live:
                _close(helper)
            return len(self._live)


_HELPERS: Final = _Helpers()


def start_helper(
    program: Path,
    ticket: int,
    *,
    stdout: int = subprocess.DEVNULL,
    cwd: Path | None = None,
    pass_fds: Sequence[int] = (),
) -> subprocess.Popen[bytes] | None:
    """Start a program of ours that ends what it owns when its stdin ends, stderr a pipe; `forget_helper` follows.

    Null when everything was ended since the ticket was drawn.
    """
    return _HELPERS.start(program, ticket, stdout=stdout, cwd=cwd, pass_fds=pass_fds)


def hand_over(helper: subprocess.Popen[bytes], content: bytes) -> None:
    """Write to a helper, or nothing when it was told to end."""
    _HELPERS.hand_over(helper, content)


def end_helper(helper: subprocess.Popen[bytes]) -> None:
    """Tell one helper that its work is wanted no more."""
    _HELPERS.end(helper)


def forget_helper(helper: subprocess.Popen[bytes]) -> None:
    """Close a helper's stdin, and let `end_all` have nothing to do with it any more."""
    _HELPERS.forget(helper)


def ticket() -> int:
    """Drawn when an attempt or its grading begins: after a later `end_all` its helpers do not start any more."""
    return _HELPERS.endings()


def end_all() -> int:
    """End every live round and check of this process as cancelled, and return their number without waiting.

    The threads that wait in `run_round` or for a check return within about five seconds, when nothing is left
    of their processes. For use on SIGTERM, Ctrl-C and at the end of a flow; from any thread.
    """
    return _HELPERS.end_all()


def run_round(
    argv: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    files: RoundFiles,
    limits: Limits,
    *,
    parser: str = "",
    secrets: Sequence[str] = (),
    ticket: int | None = None,
) -> ProcessRecord:
    """Run one CLI process in `folder` until nothing of it is left, and return how it ended.

    `environment` is all that the CLI gets and must hold the mark of its attempt (`marks.MARK_NAME`).
    `parser` names the stream's format, by which a result is known. `secrets` are kept out of every file.
    Blocks without polling; safe from any thread. Raises `SupervisorLost`.
    """
    job: Job = {
        "argv": list(argv),
        "environment": dict(environment),
        "mark": f"{MARK_NAME}={environment[MARK_NAME]}",
        "folder": str(folder),
        "prompt": str(files.prompt),
        "events": str(files.events),
        "stderr": str(files.stderr),
        "record": str(files.record),
        "deadline_s": limits.deadline_s,
        "silence_s": limits.silence_s,
        "grace_s": limits.grace_s,
        "results": [dict(result) for result in RESULTS.get(parser, ())],
        "secrets": list(secrets),
    }
    files.record.parent.mkdir(parents=True, exist_ok=True)
    files.record.unlink(missing_ok=True)
    drawn = _HELPERS.endings() if ticket is None else ticket
    supervisor = start_helper(SUPERVISOR, drawn)
    if supervisor is None:
        return _cancelled_before_start(files)
    try:
        complaint = _attend(supervisor, job)
    finally:
        forget_helper(supervisor)
    if not files.record.is_file():
        sweep(environment[MARK_NAME])
        if _HELPERS.endings() != drawn:
            return _cancelled_before_start(files)
        raise SupervisorLost(str(files.record.parent), supervisor.returncode, complaint)
    return read_model(files.record, ProcessRecord)


def _attend(supervisor: subprocess.Popen[bytes], job: Job) -> str:
    """Hand over the job and wait for the supervisor's end; returns what it complained of."""
    assert supervisor.stderr is not None
    with supervisor.stderr as stderr:
        try:
            with contextlib.suppress(BrokenPipeError):  # it died: that there is no record tells
                hand_over(supervisor, json.dumps(job).encode() + b"\n")
            complaint = stderr.read()
            supervisor.wait()
        except BaseException:
            # an interrupt in this very thread: still leave nothing behind
            end_helper(supervisor)
            supervisor.wait()
            raise
    return complaint.decode(errors="replace")


def _write_all(pipe: IO[bytes], content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[pipe.write(view) :]


def _cancelled_before_start(files: RoundFiles) -> ProcessRecord:
    record = ProcessRecord(
        ended_by=EndedBy.CANCELLED,
        exit_code=None,
        started_at=datetime.now(UTC),
        duration_ms=0,
        stdout_bytes=0,
        stderr_bytes=0,
        leftovers=0,
    )
    write_model(files.record, record)
    return record


def _close(helper: subprocess.Popen[bytes]) -> None:
    if helper.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            helper.stdin.close()
