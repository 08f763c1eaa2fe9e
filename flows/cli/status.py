"""`skilltrial status`: how the cells of a campaign stand, at once and without Prefect."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter

from skilltrial.flows.cli.output import emit_json

if TYPE_CHECKING:
    from rich.console import RenderableType

    from skilltrial.data.store import Store
    from skilltrial.tasks.analysis.states import CellState

_STATES: Final = ("settled", "unsettled", "running", "missing")
_NEVER_WRAPPED: Final = 27
"""Characters of a cell's name that leave 12 for an outcome on a line of 80."""


def status(
    campaign: str | None = None,
    *,
    watch: Annotated[bool, Parameter(negative="")] = False,
    home: Path | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Show every cell of a campaign: state, outcome, attempt, rounds, duration and cost.

    States: settled; unsettled (`skilltrial run` or `retry` tries it again); running; missing (never finished).

    Parameters
    ----------
    campaign
        Name of the campaign; without one, all campaigns are listed.
    watch
        Show it anew each second, until every cell is settled or the run that was seen has ended.
    home
        The store's folder.
    json
        Print the states as JSON.
    """
    from skilltrial.data.store import Store

    store = Store.open(home)
    if campaign is None:
        return _list(store, json)
    if json:
        emit_json(_document(store, campaign))
    elif watch:
        _watch(store, campaign)
    else:
        from rich.console import Console

        Console().print(_view(store, campaign))
    return 0


def _list(store: Store, json: bool) -> int:
    campaigns = [_document(store, name) for name in store.campaigns()]
    if json:
        emit_json({"home": str(store.home), "campaigns": [_without_cells(one) for one in campaigns]})
        return 0
    for one in campaigns:
        counted = ", ".join(f"{number} {state}" for state, number in one["states"].items() if number)
        running = f", run by process {one['holder']}" if one["holder"] else ""
        print(f"{one['campaign']}: {counted}{running}")
    if not campaigns:
        print(f"no campaign in {store.home}; `skilltrial run` makes one")
    return 0


def _without_cells(document: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != "cells"}


def _document(store: Store, campaign: str) -> dict[str, Any]:
    from dataclasses import asdict

    from skilltrial.tasks.analysis.states import cell_states

    folder, plan = store.planned(campaign)
    cells = cell_states(plan, folder)
    return {
        "campaign": campaign,
        "harness": plan.harness.label,
        "holder": folder.holder(),
        "states": {state: sum(cell.state == state for cell in cells) for state in _STATES},
        "cells": [asdict(cell) for cell in cells],
    }


def _view(store: Store, campaign: str) -> RenderableType:
    from skilltrial.tasks.analysis.states import cell_states

    folder, plan = store.planned(campaign)
    return table_of(campaign, cell_states(plan, folder))


def _watch(store: Store, campaign: str) -> None:
    import time

    from rich.live import Live

    from skilltrial.tasks.analysis.states import cell_states

    folder, plan = store.planned(campaign)
    seen_running = False
    with Live(refresh_per_second=4) as live:
        while True:
            holder = folder.holder()  # before the cells: what ends in between is shown as ended
            cells = cell_states(plan, folder)
            live.update(table_of(campaign, cells), refresh=True)
            if all(cell.state == "settled" for cell in cells) or (seen_running and holder is None):
                return
            seen_running = seen_running or holder is not None
            time.sleep(1)


def table_of(campaign: str, cells: list[CellState]) -> RenderableType:
    """The cells by name, below a line of totals."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    # on a narrow terminal it is the outcome that wraps, not the name
    longest = max((len(cell.cell) for cell in cells), default=0)
    table.add_column("cell", overflow="fold", no_wrap=longest <= _NEVER_WRAPPED)
    for name in ("state", "outcome"):
        table.add_column(name, overflow="fold")
    for name in ("attempt", "rounds", "seconds", "USD"):
        table.add_column(name, justify="right")
    for cell in sorted(cells, key=lambda cell: (cell.eval_id, cell.condition, cell.repetition)):
        why = f" ({cell.reason})" if cell.reason else ""
        duration = "" if cell.duration_ms is None else f"{cell.duration_ms / 1000:.1f}"
        cost = "" if cell.cost_usd is None else f"{cell.cost_usd:.4f}"
        outcome = f"{cell.outcome or ''}{why}"
        table.add_row(
            *map(Text, (cell.cell, cell.state, outcome, _text(cell.attempt), _text(cell.rounds), duration, cost))
        )
    counts = [f"{sum(cell.state == state for cell in cells)} {state}" for state in _STATES]
    costs = [cell.cost_usd for cell in cells if cell.cost_usd is not None]
    money = f", ${sum(costs):.2f}" if costs else ""
    return Group(Text(f"{campaign}: {len(cells)} cells: {', '.join(counts)}{money}"), table)


def _text(value: int | None) -> str:
    return "" if value is None else str(value)
