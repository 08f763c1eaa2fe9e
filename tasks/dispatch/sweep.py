"""Ending what dead runs left behind, known by the mark in its environment.

A supervisor outlives the run that started it and ends its round; this is for the day when the supervisor was
killed as well. Where other processes' environments cannot be read, nothing is found.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Final

import psutil

from skilltrial.tasks.dispatch.marks import MARK_NAME

_TERMINATE_S: Final = 1.0
_KILL_S: Final = 5.0


def sweep(mark: str) -> int:
    """End every process whose mark begins with `mark`; returns how many there were.

    `mark` is a whole mark, or `marks.campaign_mark` for all attempts of a campaign that nobody runs now.
    """
    if not mark:
        raise ValueError("an empty mark would match the processes of every run")
    ended: set[int] = set()
    while found := [process for process in _marked(mark) if process.pid not in ended]:
        ended |= {process.pid for process in found}
        _signal(found, kill=False)
        _, living = psutil.wait_procs(found, timeout=_TERMINATE_S)
        _signal(living, kill=True)
        psutil.wait_procs(living, timeout=_KILL_S)
    return len(ended)


def _marked(mark: str) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        if process.pid == os.getpid():
            continue
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(MARK_NAME, "").startswith(mark):
                yield process


def _signal(processes: list[psutil.Process], *, kill: bool) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            if kill:
                process.kill()
            else:
                process.terminate()
