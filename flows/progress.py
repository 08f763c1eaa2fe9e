"""How a running campaign looks: a live panel on a terminal, one line for each event elsewhere."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from skilltrial.data.attempt import AttemptRecord
from skilltrial.data.plan import CampaignPlan, Cell
from skilltrial.data.store import AttemptFolder
from skilltrial.flows.observing import Observer

_TAIL_BYTES: Final = 16_384
_SHOWN_RUNNING: Final = 12


@dataclass(slots=True)
class _Running:
    attempt: AttemptFolder
    since: float


@dataclass(slots=True)
class Tally:
    """What is known of the campaign so far. Money is null until some CLI has told a price."""

    total: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    settled: int = 0
    kept: int = 0  # settled before this run
    cost_usd: float | None = None
    running: dict[str, _Running] = field(default_factory=dict)

    def count(self, record: AttemptRecord) -> None:
        """Take the end of one attempt into account."""
        self.outcomes[record.outcome] += 1
        self.settled += record.settled
        if record.cost_usd is not None:
            self.cost_usd = (self.cost_usd or 0.0) + record.cost_usd


class Plain(Observer):
    """One line for each thing that happens, for logs and pipes; stages and starts show in what comes of them."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lock = threading.Lock()
        self._tally = Tally()

    def __enter__(self) -> Plain:
        return self

    def __exit__(self, *_: object) -> None:
        """There is nothing to clear away."""

    def planned(self, plan: CampaignPlan, settled: Sequence[AttemptRecord]) -> None:
        """Say what is to be done."""
        with self._lock:
            self._tally.total = len(plan.cells)
            self._tally.kept = self._tally.settled = len(settled)
            left = len(plan.cells) - len(settled)
            self._say(f"campaign {plan.campaign}: {len(plan.cells)} cells, {len(settled)} settled, {left} to dispatch")

    def warned(self, warnings: Sequence[str]) -> None:
        """Say every warning."""
        with self._lock:
            for warning in warnings:
                self._say(f"warning: {warning}")

    def paused(self, seconds: float, why: str, cell: str | None) -> None:
        """Say who waits, and for how long."""
        with self._lock:
            what = "no cell starts" if cell is None else f"{cell} is not tried again"
            self._say(f"{why}: {what} for {seconds:.0f} s")

    def finished(self, cell: Cell, record: AttemptRecord) -> None:
        """Say how the attempt ended."""
        with self._lock:
            self._tally.count(record)
            width = len(str(self._tally.total))
            done = f"[{self._tally.settled:>{width}}/{self._tally.total}]"
            again = f" (attempt {record.attempt})" if record.attempt > 1 else ""
            why = f" {record.reason}" if record.reason else ""
            self._say(f"{done} {cell.label} {record.outcome}{why} {record.duration_ms / 1000:.1f} s{again}")

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


class Panel(Observer):
    """A live panel: cells by state, elapsed time, money, and the newest event of each running cell."""

    def __init__(self, console: Console) -> None:
        self._lock = threading.Lock()
        self._tally = Tally()
        self._begin = time.monotonic()
        self._stage = "starting"
        self._title = ""
        self._pause = (self._begin, "")  # until when no cell starts, and why
        self._live = Live(get_renderable=self.render, console=console, refresh_per_second=4, transient=True)

    def __enter__(self) -> Panel:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def planned(self, plan: CampaignPlan, settled: Sequence[AttemptRecord]) -> None:
        """Show the totals from now on."""
        with self._lock:
            self._title = plan.campaign
            self._tally.total = len(plan.cells)
            self._tally.kept = self._tally.settled = len(settled)

    def warned(self, warnings: Sequence[str]) -> None:
        """Print warnings above the panel, where they stay."""
        for warning in warnings:
            self._live.console.print(f"warning: {warning}", style="yellow", markup=False, highlight=False)

    def stage(self, name: str) -> None:
        """Show the stage."""
        with self._lock:
            self._stage = name

    def paused(self, seconds: float, why: str, cell: str | None) -> None:
        """Show what keeps every cell waiting; a cell that waits alone is one of the waiting."""
        with self._lock:
            if cell is None:
                self._pause = (time.monotonic() + seconds, why)

    def started(self, cell: Cell, attempt: AttemptFolder) -> None:
        """Show the cell among the running ones."""
        with self._lock:
            self._tally.running[cell.label] = _Running(attempt, time.monotonic())

    def finished(self, cell: Cell, record: AttemptRecord) -> None:
        """Take the cell out of the running ones."""
        with self._lock:
            self._tally.running.pop(cell.label, None)
            self._tally.count(record)

    def render(self) -> RenderableType:
        """The panel as it is now."""
        with self._lock:
            now, tally = time.monotonic(), self._tally
            head = Text.assemble((self._title or "campaign", "bold"), f"  {self._stage}  {_clock(now - self._begin)}")
            cost = "not told" if tally.cost_usd is None else f"${tally.cost_usd:.2f}"
            states = [f"{tally.settled} settled", f"{len(tally.running)} running"]
            states += [f"{number} {outcome}" for outcome, number in sorted(tally.outcomes.items())]
            waiting = tally.total - tally.settled - len(tally.running)
            line = f"{' · '.join(states)} · {max(waiting, 0)} waiting · cost so far {cost}"
            until, why = self._pause
            if now < until:
                line += f"\n{why}: no cell starts for {_clock(until - now)}"
            running = list(tally.running.items())[:_SHOWN_RUNNING]
            # in a grid, since a bar alone does not end its line
            bar = Table.grid()
            bar.add_row(ProgressBar(total=max(tally.total, 1), completed=tally.settled, width=40))
        table = Table.grid(padding=(0, 2))
        for _ in ("cell", "clock"):
            table.add_column(no_wrap=True)  # it is the event that is cut
        for label, cell in running:
            event = Text(newest_event(cell.attempt), no_wrap=True, overflow="ellipsis")
            table.add_row(Text(label), _clock(now - cell.since), event)
        return Group(head, bar, Text(line), table)


def newest_event(attempt: AttemptFolder) -> str:
    """The newest event of an attempt in a few words; "" while there is none."""
    rounds = sorted(attempt.root.glob("round-*/events.jsonl"), key=lambda path: (len(path.parts[-2]), path))
    for line in reversed(_tail(rounds[-1]).split(b"\n")[:-1] if rounds else []):
        try:
            event = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(event, dict) and (said := _words(event)):
            return said
    return ""


def _tail(path: Path) -> bytes:
    with path.open("rb") as handle:
        handle.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        return handle.read()


def _words(event: dict[str, Any]) -> str:
    message = event.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    for block in content if isinstance(content, list) else []:
        if not isinstance(block, dict):
            continue
        if block.get("type") == "tool_use":
            arguments = orjson.dumps(block.get("input", {})).decode()
            return f"{block.get('name')} {arguments}"[:100]
        if block.get("type") == "text":
            return " ".join(str(block.get("text", "")).split())[:100]
        if block.get("type") == "tool_result":
            return "tool failed" if block.get("is_error") else "tool answered"
    return " ".join(str(event[key]) for key in ("type", "subtype") if event.get(key))


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}"
