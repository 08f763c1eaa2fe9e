"""The program that owns one command line of a check, so that nothing of it survives, whoever else dies.

Run as `python -I -S warden.py`, with only the standard library, in the folder and with the stdout and stderr that
the command is to have. Its job comes as one line of JSON on stdin (`Job`); the end of stdin means that the command is
wanted no more, or that whoever wanted it is gone. What it found goes to the descriptor `report` as its last act.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING or __package__:
    from skilltrial.tasks.dispatch import descendants
else:  # run by path: of the project, only this folder is at hand
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    import descendants

    sys.path.pop(0)

KILL_S = 2.0
"""How long killed processes are waited for."""

_CHUNK = 65_536


class Job(TypedDict):
    """What to run."""

    command: str  # for `/bin/sh -c`
    environment: dict[str, str]
    mark: str  # the variable in `environment` that every process of the command carries, as NAME=value
    report: int  # inherited descriptor that takes the `Report`


class Report(TypedDict):
    """How it ended."""

    exit_code: int | None  # negative: ended by that signal; null: it could not be started, or was ended by us
    leftovers: int  # processes that outlived the command and were ended
    error: str | None  # why it could not be started


def main() -> None:
    """Do the job that comes on stdin."""
    line = b""
    while not line.endswith(b"\n"):
        chunk = os.read(0, _CHUNK)
        if not chunk:
            raise SystemExit("no job came on stdin")
        line += chunk
    job: Job = json.loads(line)
    os.set_inheritable(job["report"], False)
    descendants.become_adopter()
    report = _run(job)
    os.write(job["report"], json.dumps(report).encode())


def _run(job: Job) -> Report:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    try:
        child = subprocess.Popen(
            ["/bin/sh", "-c", job["command"]],
            env=job["environment"],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=descendants.die_with_parent,  # noqa: PLW1509 (this process has one thread)
        )
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return Report(exit_code=None, leftovers=0, error=str(error))
    os.close(1)  # the readers of the command's output shall see its end
    os.close(2)
    with selectors.DefaultSelector() as selector:
        selector.register(0, selectors.EVENT_READ)
        selector.register(reader, selectors.EVENT_READ)
        wanted = True
        while wanted and child.poll() is None:
            for key, _ in selector.select():
                wanted = bool(os.read(key.fd, _CHUNK)) or key.fd != 0
    exit_code = child.poll()
    return Report(exit_code=exit_code, leftovers=_end_everything(child, job["mark"].encode()), error=None)


def _end_everything(child: subprocess.Popen[bytes], mark: bytes) -> int:
    """Kill the command with all its processes, wherever they went; returns how many outlived it."""
    found: set[int] = set()
    deadline = time.monotonic() + KILL_S
    while time.monotonic() < deadline:
        living = descendants.family(os.getpid(), child.pid, mark)
        if not living:
            break
        found |= living
        descendants.send(living, signal.SIGSTOP)  # else a shell has time to remark that its child was killed
        descendants.send(living, signal.SIGKILL)
        time.sleep(0.01)
        child.poll()
        _reap()
    return len(found)


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


if __name__ == "__main__":
    main()
