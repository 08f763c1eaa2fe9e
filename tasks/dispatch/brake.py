"""The brake of a campaign: what one cell's end means for those that have not started.

A rate limit or an overload is shared by all cells, so the whole campaign waits; a fault that every cell would
share stops it; any other infrastructure failure makes only its own cell wait before the next try. All of it is
read from the outcomes' policies.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from skilltrial.data.errors import CampaignStopped
from skilltrial.data.outcomes import Outcome, Pause, Retry, policy

LONGEST_S: Final = 900.0
"""No wait is longer than this, however often it doubled."""

Sleep = Callable[[threading.Condition, float], object]
Paused = Callable[[float, str, "str | None"], object]
"""Is told of a wait: its seconds, the outcome that caused it, and the cell that waits (null: every one)."""


class Brake:
    """Holds cells back. One for each run of a campaign, shared by its threads.

    `clock` is monotonic, in seconds; `sleep` waits on a held condition for at most so many seconds;
    `paused` is told once of each wait that keeps somebody from starting, and must return at once.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        sleep: Sleep = lambda condition, seconds: condition.wait(seconds),
        paused: Paused = lambda _seconds, _why, _cell: None,
    ) -> None:
        self._clock, self._sleep, self._paused = clock, sleep, paused
        self._changed = threading.Condition()
        self._stopped: tuple[str, Outcome, str] | None = None
        self._campaign_until = 0.0
        self._cell_until: dict[str, float] = {}
        self._why: dict[str | None, str] = {}
        self._told: set[tuple[str | None, float]] = set()
        self._campaign_failures = 0
        self._cell_failures: Counter[str] = Counter()

    def wait(self, cell: str) -> None:
        """Return when the cell may be dispatched; `CampaignStopped` when no further cell may."""
        with self._changed:
            while True:
                if self._stopped is not None:
                    raise CampaignStopped(*self._stopped)
                left = max(self._campaign_until, self._cell_until.get(cell, 0.0)) - self._clock()
                if left <= 0:
                    return
                self._tell(cell)
                self._sleep(self._changed, left)

    def report(self, cell: str, outcome: Outcome | str, reason: str) -> None:
        """Take note of how an attempt at the cell ended.

        Waits double with each failure in a row: of the cell, or of the whole campaign when the failure is
        one that cells share. A shared failure that is reported while the campaign waits already is part of
        the same incident and lengthens nothing.
        """
        found, now = policy(outcome), self._clock()
        with self._changed:
            if found.pause is Pause.STOP:
                self._stopped = self._stopped or (cell, Outcome(outcome), reason)
            elif found.pause is Pause.WAIT:
                if now >= self._campaign_until:
                    self._campaign_until = now + _doubled(found.backoff_s, self._campaign_failures)
                    self._why[None] = str(Outcome(outcome))
                    self._campaign_failures += 1
            elif found.retry is Retry.NOW:
                self._cell_until[cell] = now + _doubled(found.backoff_s, self._cell_failures[cell])
                self._why[cell] = str(Outcome(outcome))
                self._cell_failures[cell] += 1
            elif found.settled:
                # the service works: a later incident begins with a short wait again
                self._campaign_failures = 0
            self._changed.notify_all()

    def stop(self) -> None:
        """Let no further cell start, for no fault of a cell: the run ends."""
        with self._changed:
            self._stopped = self._stopped or ("the run's end", Outcome.CANCELLED, "cancelled")
            self._changed.notify_all()

    def _tell(self, cell: str) -> None:
        """Tell of the wait that keeps the cell, unless that was told already."""
        own = self._cell_until.get(cell, 0.0)
        waiting, until = (None, self._campaign_until) if self._campaign_until >= own else (cell, own)
        if (waiting, until) not in self._told:
            self._told.add((waiting, until))
            self._paused(until - self._clock(), self._why[waiting], waiting)


def _doubled(seconds: float, times: int) -> float:
    return min(LONGEST_S, seconds * 2.0 ** min(times, 32))
