"""Rows and fragments of any declared table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import polars as pl

from skilltrial.data.plan import Cell
from skilltrial.data.store import AttemptFolder
from skilltrial.data.tables import TABLES

_NEUTRAL: Final[dict[object, object]] = {
    pl.String: "",
    pl.Int64: 0,
    pl.Float64: 0.0,
    pl.Boolean: False,
    pl.List: [],
    pl.Datetime: datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
}


def row(table: str, cell: Cell, **values: object) -> dict[str, Any]:
    """A row of the cell's first attempt: what is given, null where that may be, and a neutral value elsewhere."""
    identity = {"eval_id": cell.eval_id, "condition": cell.condition, "repetition": cell.repetition, "attempt": 1}
    defaults = {
        column.name: None if column.nullable else _NEUTRAL[column.dtype.base_type()] for column in TABLES[table].columns
    }
    return {**defaults, **identity, **values}


def write_fragment(attempt: AttemptFolder, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write one fragment with exactly the declared schema."""
    attempt.fragments.mkdir(parents=True, exist_ok=True)
    TABLES[table].frame(rows).write_parquet(attempt.fragments / f"{table}.parquet")
