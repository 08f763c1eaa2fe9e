"""The shell: commands run for real, in a session of their own, as the CLI runs them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Final, NamedTuple

from .signals import Signals, Stopped

DEFAULT_TIMEOUT_MS: Final = 120_000
LONGEST_TIMEOUT_MS: Final = 600_000
OUTPUT_LIMIT: Final = 30_000
_PREVIEW: Final = 2_000
_QUIET: Final = frozenset({"chmod", "chown", "cp", "ln", "mkdir", "mv", "rm", "rmdir", "touch"})


class Ran(NamedTuple):
    """How a command ended. `exit_code` is that of the shell, 143 after a time-out."""

    exit_code: int
    output: str  # standard output and error as they came, decoded with replacement
    timed_out: bool


class Task(NamedTuple):
    """A command that runs in the background."""

    identifier: str
    process: subprocess.Popen[bytes]
    output: Path


class Shell:
    """Runs commands in one working directory."""

    def __init__(self, cwd: Path, environment: dict[str, str], scratch: Path, signals: Signals) -> None:
        self._cwd = cwd
        self._environment = environment
        self._scratch = scratch
        self._signals = signals
        self.interrupted: Ran | None = None  # what was open when a signal arrived
        self.tasks: dict[str, Task] = {}  # background commands by the call that started them

    def run(self, command: str, timeout_ms: int) -> Ran:
        """Run a command to its end or its time-out; `Stopped` when a signal arrives, its group then killed."""
        output = self._output_file()
        process = self._start(command, output)
        try:
            with self._signals.waiting():
                code = process.wait(min(timeout_ms, LONGEST_TIMEOUT_MS) / 1000)
            ran = Ran(code if code >= 0 else 128 - code, _text(output), timed_out=False)
        except subprocess.TimeoutExpired:
            kill_group(process)
            ran = Ran(143, _text(output), timed_out=True)
        except Stopped:
            kill_group(process)
            self.interrupted = Ran(137, _text(output), timed_out=False)
            raise
        finally:
            output.unlink(missing_ok=True)
        return ran

    def start(self, call: str, command: str) -> Task:
        """Start a command in the background; its output goes to a file."""
        output = self._output_file()
        task = Task(output.stem, self._start(command, output), output)
        self.tasks[call] = task
        return task

    def kill_tasks(self) -> None:
        """End the background commands that still run."""
        for task in self.tasks.values():
            if task.process.poll() is None:
                kill_group(task.process)

    def _output_file(self) -> Path:
        self._scratch.mkdir(parents=True, exist_ok=True)
        return self._scratch / f"b{os.urandom(5).hex()}.output"

    def _start(self, command: str, output: Path) -> subprocess.Popen[bytes]:
        with output.open("wb") as stdout:
            return subprocess.Popen(
                ["/bin/bash", "-c", command],
                cwd=self._cwd,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with its group, and reap it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def is_quiet(command: str) -> bool:
    """Whether a command is one of those that normally print nothing."""
    words = command.split()
    return bool(words) and words[0] in _QUIET


def shortened(output: str, saved: Path) -> str:
    """The text of a result whose output is over the limit; the whole is kept in a file (measured)."""
    saved.parent.mkdir(parents=True, exist_ok=True)
    data = output.encode("utf-8", "replace")
    saved.write_bytes(data)
    size = f"{len(data) / 1024:.1f}KB" if len(data) < 1024 * 1024 else f"{len(data) / 1024 / 1024:.1f}MB"
    head = f"Output too large ({size}). Full output saved to: {saved}"
    return f"<persisted-output>\n{head}\n\nPreview (first 2KB):\n{output[:_PREVIEW]}\n...\n</persisted-output>"


def wait(seconds: float, signals: Signals, for_model: bool) -> None:
    """Wait, with every signal heard."""
    with signals.waiting(for_model):
        time.sleep(seconds)


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace").rstrip("\n")
