"""Who watches a campaign run: the flow reports to one observer, the command line decides which.

A flow's parameters must be plain data, so the observer of this process travels in a context variable
and is handed to the tasks from there; on a worker nobody set one, and what Prefect itself records is all that shows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from contextvars import ContextVar

from skilltrial.data.attempt import AttemptRecord
from skilltrial.data.plan import CampaignPlan, Cell
from skilltrial.data.store import AttemptFolder


class Observer:
    """Is told what happens, from any thread; must return at once. This one says nothing of it."""

    def planned(self, plan: CampaignPlan, settled: Sequence[AttemptRecord]) -> None:
        """The plan is made; these cells need no dispatch."""

    def warned(self, warnings: Sequence[str]) -> None:
        """Preflight has something to say."""

    def stage(self, name: str) -> None:
        """A stage of the pipeline begins."""

    def paused(self, seconds: float, why: str, cell: str | None) -> None:
        """An outcome makes one cell wait before its next try, or (cell null) every cell that has not started."""

    def started(self, cell: Cell, attempt: AttemptFolder) -> None:
        """An attempt at a cell begins."""

    def finished(self, cell: Cell, record: AttemptRecord) -> None:
        """An attempt at a cell ended, settled or not."""


_observer: ContextVar[Observer] = ContextVar("observer", default=Observer())  # noqa: B039 (it keeps nothing)


def current() -> Observer:
    """The observer of this process."""
    return _observer.get()


@contextlib.contextmanager
def observed_by(observer: Observer) -> Iterator[None]:
    """Flows that run inside report to `observer`."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)
