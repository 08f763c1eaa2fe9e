"""Small real programs that stand in for an agent CLI, and a way to run one as a round."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil

from skilltrial.data.attempt import ProcessRecord
from skilltrial.tasks.dispatch import process
from skilltrial.tasks.dispatch.marks import MARK_NAME, new_mark

LONG = process.Limits(deadline_s=120.0, silence_s=60.0)


class Bench:
    """A folder in which rounds run. `pids` is a named pipe: programs tell there which processes they started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files = process.RoundFiles.inside(folder / "round-1", folder / "prompt.txt")
        self.files.prompt.write_bytes(b"do it")
        self.pids = folder / "pids"
        os.mkfifo(self.pids)
        self.mark = new_mark(folder)

    def program(self, code: str) -> list[str]:
        """An argument vector that runs the Python code; `tell(pid)` writes to the pipe, `fork(code)` starts a child."""
        path = self.folder / "program.py"
        path.write_text(_PRELUDE.format(pids=str(self.pids)) + textwrap.dedent(code))
        return [sys.executable, "-I", "-S", str(path)]

    def run(
        self,
        argv: list[str],
        limits: process.Limits = LONG,
        *,
        environment: Mapping[str, str] | None = None,
        parser: str = "claude-stream-json",
        secrets: tuple[str, ...] = (),
        ticket: int | None = None,
    ) -> ProcessRecord:
        """Run a round in this folder."""
        return process.run_round(
            argv,
            {MARK_NAME: self.mark, **(environment or {})},
            self.folder,
            self.files,
            limits,
            parser=parser,
            secrets=secrets,
            ticket=ticket,
        )

    def meanwhile(self, argv: list[str], act: Callable[[list[psutil.Process]], None]) -> ProcessRecord:
        """Run a round in another thread, and `act` with the processes that its program told of."""
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(self.run, argv)
            act(self.told())
            return future.result(timeout=30)

    def told(self) -> list[psutil.Process]:
        """The processes that the program told of; waits until it has closed the pipe."""
        return [psutil.Process(int(line)) for line in self.pids.read_text().split()]


def living(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those of the processes that still run, after a short wait for their end."""
    _, alive = psutil.wait_procs(processes, timeout=10)
    return alive


_PRELUDE = """\
import os, signal, subprocess, sys, time

def tell(*pids):
    with open({pids!r}, "w") as pipe:
        pipe.write(" ".join(str(pid) for pid in pids))

def stubborn_session():
    \"\"\"A child in a session of its own that ignores every signal that can be ignored.\"\"\"
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        os.write(writer, b"x")
        while True:
            signal.pause()
    os.read(reader, 1)
    return pid

def daemon():
    \"\"\"The id of a grandchild whose parent is gone.\"\"\"
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        pid = os.fork()
        if pid == 0:
            while True:
                signal.pause()
        os.write(writer, str(pid).encode())
        os._exit(0)
    os.wait()
    return int(os.read(reader, 20))

def say(text):
    sys.stdout.write(text + "\\n")
    sys.stdout.flush()

"""
