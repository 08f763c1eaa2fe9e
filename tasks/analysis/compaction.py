"""Compaction: fragments of single attempts become one file for each table of a campaign."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import polars as pl
import pyarrow.parquet as pq

from skilltrial.data.plan import CampaignPlan
from skilltrial.data.store import Store, scratch_path
from skilltrial.data.tables import TABLES
from skilltrial.data.tables.columns import Table
from skilltrial.tasks.analysis import fragments
from skilltrial.tasks.analysis.cells import rows_of_attempts
from skilltrial.tasks.analysis.fragments import Damage, DamagedFragments, newest_attempts

PART: Final = "part-0.parquet"
"""One name for ever, so that replacing it is one step: a reader sees the old rows or the new ones."""


def compact(plan: CampaignPlan, store: Store) -> dict[str, Path]:
    """Write every table of the campaign anew; returns each table's file.

    Rows are those of the newest finished attempt of each cell of the plan, sorted by the table's key,
    with exactly the declared columns. Nothing is replaced unless all fragments are sound:
    `DamagedFragments` names all that are not. Memory stays bounded by a batch of fragments.
    """
    attempts = newest_attempts(plan, store.campaign(plan.campaign))
    written: dict[str, Path] = {}
    scratch: dict[str, Path] = {}
    damages: list[Damage] = []
    try:
        for name in fragments.FRAGMENT_TABLES:
            target = store.partition(name, plan.campaign) / PART
            scratch[name] = scratch_path(target)
            try:
                _write(scratch[name], TABLES[name], fragments.read(plan.campaign, attempts, TABLES[name]))
            except DamagedFragments as error:
                damages += error.damages
        if damages:
            raise DamagedFragments(plan.campaign, damages)
        scratch["cells"] = scratch_path(store.partition("cells", plan.campaign) / PART)
        _write(scratch["cells"], TABLES["cells"], [rows_of_attempts(plan, store.home, attempts)])
        for name in TABLES:
            written[name] = store.partition(name, plan.campaign) / PART
            scratch[name].replace(written[name])
            _remove_stale(written[name])
    finally:
        for path in scratch.values():
            path.unlink(missing_ok=True)
    return written


def _write(path: Path, table: Table, frames: Iterable[pl.DataFrame]) -> None:
    """One Parquet file with a row group for each frame; a table without rows still has its columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    empty = table.frame([])
    with pq.ParquetWriter(path, empty.to_arrow().schema, compression="zstd") as writer:
        for frame in _or_empty(frames, empty):
            writer.write_table(frame.to_arrow())


def _or_empty(frames: Iterable[pl.DataFrame], empty: pl.DataFrame) -> Iterator[pl.DataFrame]:
    rows = 0
    for frame in frames:
        rows += frame.height
        yield frame
    if not rows:
        yield empty


def _remove_stale(written: Path) -> None:
    """Whatever else lies in the partition: parts of another layout, scratch files of a killed run."""
    for path in written.parent.iterdir():
        if path != written and path.is_file():
            path.unlink()
