"""Where rows go: nowhere, for whoever wants the summary alone, or into Parquet files of bounded row groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from skilltrial.data.store import scratch_path
from skilltrial.data.tables import TABLES, Table
from skilltrial.data.tables.columns import TableMismatch

GROUP_ROWS: Final = 4096
GROUP_CHARACTERS: Final = 1 << 22
"""A row group is written when either is reached, so that memory does not grow with the stream."""


class NullSink:
    """Drops every row."""

    def add(self, table: str, row: Mapping[str, Any]) -> None:
        """Take one row."""


class ParquetSink:
    """Writes `<folder>/<table>.parquet` for each of `tables`, with exactly the declared columns.

    `identity` holds the columns that are the same in all rows; `round` is the round of the rows that come
    next. Files appear under their names when the sink is left without an error, all or none of them.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any], tables: Sequence[str]) -> None:
        self.round = 1
        self._identity = dict(identity)
        folder.mkdir(parents=True, exist_ok=True)
        self._files = {name: _TableFile(TABLES[name], folder / f"{name}.parquet") for name in tables}

    def __enter__(self) -> ParquetSink:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        files = self._files.values()
        try:
            if kind is None:
                for file in files:
                    file.flush(self._identity)
            for file in files:
                file.writer.close()
            if kind is None:
                for file in files:
                    file.scratch.replace(file.path)
        finally:
            for file in files:
                file.writer.close()
                file.scratch.unlink(missing_ok=True)

    def add(self, table: str, row: Mapping[str, Any]) -> None:
        """Take one row; `TableMismatch` when it does not fit, at the latest when its group is written."""
        file = self._files[table]
        file.rows.append(row)
        file.rounds.append(self.round)
        for name in file.heavy:
            text = row.get(name)
            if text is not None:
                file.characters += len(text)
        if len(file.rows) >= GROUP_ROWS or file.characters >= GROUP_CHARACTERS:
            file.flush(self._identity)


class _TableFile:
    """One table's file in the making."""

    def __init__(self, table: Table, path: Path) -> None:
        self.table, self.path = table, path
        self.scratch = scratch_path(path)
        self.schema = _arrow_schema(table)
        self.writer = pq.ParquetWriter(self.scratch, self.schema, compression="zstd")
        self.rows: list[Mapping[str, Any]] = []
        self.rounds: list[int] = []
        self.characters = 0
        self.heavy = [name for name in ("input", "result", "text", "reason") if name in self.schema.names]

    def flush(self, identity: Mapping[str, Any]) -> None:
        """Write the rows that are held as one row group."""
        if not self.rows:
            return
        arrays = [self._array(column.name, identity) for column in self.table.columns]
        self.writer.write_table(pa.Table.from_arrays(arrays, schema=self.schema))
        self.rows, self.rounds, self.characters = [], [], 0

    def _array(self, name: str, identity: Mapping[str, Any]) -> pa.Array:
        if name in identity:
            values: list[Any] = [identity[name]] * len(self.rows)
        elif name == "round":
            values = self.rounds
        else:
            try:
                values = [row[name] for row in self.rows]
            except KeyError:
                raise TableMismatch(self.table.name, name, "missing from a row") from None
        try:
            array = pa.array(values, self.schema.field(name).type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise TableMismatch(self.table.name, name, str(error)) from error
        if array.null_count and not self.table.column(name).nullable:
            raise TableMismatch(self.table.name, name, "holds null, declared as never null")
        return array


def _arrow_schema(table: Table) -> pa.Schema:
    empty = pl.DataFrame(schema=table.schema)
    return empty.to_arrow(compat_level=pl.CompatLevel.oldest()).schema
