"""Reading the fragments that ingest and grading left in the attempts, and telling which are damaged.

A table of a campaign is made of the newest fitting attempt of each cell and nothing else, so that no
cell can be counted twice, whatever lies in older attempt folders.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from skilltrial.data.attempt import AttemptRecord
from skilltrial.data.errors import Terminal
from skilltrial.data.plan import CampaignPlan, Cell
from skilltrial.data.store import AttemptFolder, CampaignFolder
from skilltrial.data.tables import TABLES
from skilltrial.data.tables.columns import CELL_KEY, Table, TableMismatch

FRAGMENT_TABLES: Final = tuple(name for name in TABLES if name != "cells")
"""The tables that have fragments; `cells` is made from the records and from these."""

BATCH: Final = 64
"""Fragments read at once: a stream's texts are capped at 32 KiB a row, so this stays far below a GiB."""

_FILE: Final = "__file"


@dataclass(frozen=True, slots=True)
class CellAttempt:
    """A cell with its newest finished attempt that fits the plan."""

    cell: Cell
    records: tuple[AttemptRecord, ...]  # all finished attempts that fit, oldest first
    folder: AttemptFolder

    @property
    def record(self) -> AttemptRecord:
        """The newest finished attempt."""
        return self.records[-1]

    def has(self, table: str) -> bool:
        """Whether the attempt has a fragment of that table."""
        return self.path(table).is_file()

    def path(self, table: str) -> Path:
        """Where the attempt's fragment of that table lies, or would lie."""
        return self.folder.fragment(table)


@dataclass(frozen=True, slots=True)
class Damage:
    """One fragment that cannot be used."""

    cell: str
    path: str
    problem: str


class DamagedFragments(Terminal):
    """Some fragments are half-written, of another schema or of another attempt; lists all of them."""

    def __init__(self, campaign: str, damages: Iterable[Damage]) -> None:
        self.campaign, self.damages = campaign, tuple(damages)
        super().__init__(campaign, self.damages)

    def __str__(self) -> str:
        listed = "\n".join(f"  - {damage.cell}: {damage.path}: {damage.problem}" for damage in self.damages)
        return (
            f"campaign {self.campaign!r} has {len(self.damages)} damaged table fragment(s); delete the `tables` "
            "folders that hold them and run the campaign again, which reads and grades these cells anew without "
            f"dispatching them:\n{listed}"
        )


def newest_attempts(plan: CampaignPlan, folder: CampaignFolder) -> list[CellAttempt]:
    """The newest finished attempt of each cell that has one, sorted by the cells' key."""
    found = []
    for cell in sorted(plan.cells, key=lambda cell: (cell.eval_id, cell.condition, cell.repetition)):
        cell_folder = folder.cell(cell)
        records = tuple(cell_folder.records(cell.digest))
        if records:
            found.append(CellAttempt(cell, records, cell_folder.attempt(records[-1].attempt)))
    return found


def read(campaign: str, attempts: Sequence[CellAttempt], table: Table) -> Iterator[pl.DataFrame]:
    """The table's rows over all attempts, sorted by its key, in pieces of bounded size.

    Raises `DamagedFragments` with every damaged fragment of the table.
    """
    present = [attempt for attempt in attempts if attempt.has(table.name)]
    for start in range(0, len(present), BATCH):
        batch = present[start : start + BATCH]
        try:
            yield _checked(batch, table)
        except (pl.exceptions.PolarsError, OSError, TableMismatch) as error:
            # the whole table, so that one run names every file to repair
            raise DamagedFragments(campaign, damages(present, table)) from error


def damages(attempts: Iterable[CellAttempt], table: Table) -> Iterator[Damage]:
    """Every fragment of the table that cannot be used, one by one."""
    for attempt in attempts:
        if not attempt.has(table.name):
            continue
        try:
            _checked([attempt], table)
        except (pl.exceptions.PolarsError, OSError, TableMismatch) as error:
            yield Damage(attempt.cell.label, str(attempt.path(table.name)), str(error).strip().splitlines()[0])


def _checked(attempts: Sequence[CellAttempt], table: Table) -> pl.DataFrame:
    paths = [attempt.path(table.name) for attempt in attempts]
    lazy = pl.scan_parquet(paths, glob=False, hive_partitioning=False, include_file_paths=_FILE)
    rows = lazy.collect()
    frame = rows.drop(_FILE)
    table.check(frame)
    _require_own(rows, attempts, table)
    return frame.sort(table.key, nulls_last=False, maintain_order=True)


def _require_own(rows: pl.DataFrame, attempts: Sequence[CellAttempt], table: Table) -> None:
    identity = [*CELL_KEY, "attempt"]
    owners = pl.DataFrame(
        [
            (str(a.path(table.name)), a.cell.eval_id, a.cell.condition, a.cell.repetition, a.record.attempt)
            for a in attempts
        ],
        schema={_FILE: pl.String, "eval_id": pl.String, "condition": pl.String, "repetition": pl.Int64}
        | {"attempt": pl.Int64},
        orient="row",
    )
    strange = rows.select(_FILE, *identity).unique().join(owners, on=[_FILE, *identity], how="anti")
    if strange.height:
        raise TableMismatch(table.name, "attempt", f"holds rows of another attempt: {strange.row(0)[1:]}")
