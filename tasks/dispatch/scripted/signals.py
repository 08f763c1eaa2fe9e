"""Signals that stop the agent, delivered only where it waits, so that no step is torn apart."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType
from typing import Final

STOPPING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(BaseException):
    """A stopping signal arrived. `waiting` tells whether the agent was waiting for its model."""

    def __init__(self, number: int, for_model: bool) -> None:
        super().__init__(number)
        self.number = number
        self.for_model = for_model


class Signals:
    """The one place that knows which signal is pending and whether it may interrupt what runs now."""

    def __init__(self) -> None:
        self._waiting = False
        self._for_model = False
        self._writing = False
        self._pending: int | None = None

    def install(self) -> None:
        """Take over SIGINT, SIGTERM and SIGHUP."""
        for number in STOPPING:
            signal.signal(number, self._arrived)

    @contextlib.contextmanager
    def waiting(self, for_model: bool = False) -> Iterator[None]:
        """A stretch that a signal interrupts with `Stopped`, also one that arrived before."""
        self._for_model = for_model
        self._waiting = True
        try:
            if self._pending is not None:
                raise Stopped(self._pending, for_model)
            yield
        finally:
            self._waiting = False

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """A write: SIGTERM and SIGHUP end the process at once, since a full pipe would hold it for ever."""
        self._writing = True
        try:
            yield
        finally:
            self._writing = False

    def _arrived(self, number: int, _frame: FrameType | None) -> None:
        if self._waiting:
            self._waiting = False
            raise Stopped(number, self._for_model)
        if self._writing and number != signal.SIGINT:
            os._exit(128 + number)
        self._pending = number
