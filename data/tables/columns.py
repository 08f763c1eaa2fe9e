"""What a table is: a name, a key and a list of columns, each with its type, unit and meaning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from skilltrial.data.errors import Terminal

_TEXT: Final = pl.String()
UTC_MS: Final = pl.Datetime("ms", "UTC")
NAMES: Final = pl.List(pl.String())


class TableMismatch(Terminal):
    """Rows do not fit the declaration of their table: a fault of skilltrial, never of a user's input."""

    def __init__(self, table: str, column: str, problem: str) -> None:
        self.table, self.column, self.problem = table, column, problem
        super().__init__(table, column, problem)

    def __str__(self) -> str:
        return f"table {self.table}, column {self.column}: {self.problem}"


@dataclass(frozen=True, slots=True)
class Column:
    """One column. `nullable` columns hold null for "not known", never a zero or an empty text instead."""

    name: str
    dtype: pl.DataType
    description: str
    nullable: bool = False
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """One table. `key` names the columns that together identify a row within a campaign."""

    name: str
    description: str
    key: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def schema(self) -> pl.Schema:
        """Names and types of the columns, in order (without the hive key `campaign`)."""
        return pl.Schema({column.name: column.dtype for column in self.columns})

    def column(self, name: str) -> Column:
        """The column of that name (`KeyError` if there is none)."""
        return {column.name: column for column in self.columns}[name]

    def frame(self, rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
        """A frame of the rows with exactly the declared columns; `TableMismatch` for a row that does not fit."""
        listed = list(rows)
        names = {column.name for column in self.columns}
        for row in listed:
            for name in names.symmetric_difference(row):
                raise TableMismatch(self.name, name, "not declared" if name in row else "missing from a row")
        try:
            frame = pl.DataFrame(listed, schema=self.schema, orient="row", strict=True)
        except (pl.exceptions.PolarsError, TypeError) as error:
            raise TableMismatch(self.name, "(any)", str(error)) from error
        self.check(frame)
        return frame

    def check(self, frame: pl.DataFrame) -> None:
        """Raise `TableMismatch` unless the frame has the declared columns, types and no undeclared null."""
        if frame.schema != self.schema:
            for name in {*frame.schema, *self.schema}:
                found, declared = frame.schema.get(name), self.schema.get(name)
                if found != declared:
                    raise TableMismatch(self.name, name, f"is {found}, declared {declared}")
            raise TableMismatch(self.name, "(all)", "columns are in another order than declared")
        for column in self.columns:
            if not column.nullable and frame[column.name].null_count():
                raise TableMismatch(self.name, column.name, "holds null, declared as never null")


def text(name: str, description: str, *, nullable: bool = False) -> Column:
    """A column of text."""
    return Column(name, _TEXT, description, nullable)


def whole(name: str, description: str, *, nullable: bool = False, unit: str | None = None) -> Column:
    """A column of whole numbers (64 bit)."""
    return Column(name, pl.Int64(), description, nullable, unit)


def number(name: str, description: str, *, nullable: bool = False, unit: str | None = None) -> Column:
    """A column of real numbers (64 bit)."""
    return Column(name, pl.Float64(), description, nullable, unit)


def flag(name: str, description: str, *, nullable: bool = False) -> Column:
    """A column of true and false."""
    return Column(name, pl.Boolean(), description, nullable)


def moment(name: str, description: str, *, nullable: bool = False) -> Column:
    """A column of moments: UTC, milliseconds."""
    return Column(name, UTC_MS, description, nullable, "UTC")


def names(name: str, description: str, *, nullable: bool = False) -> Column:
    """A column of lists of text."""
    return Column(name, NAMES, description, nullable)


IDENTITY: Final = (
    text("eval_id", "the eval"),
    text("condition", "the arm of the trial"),
    whole("repetition", "which repetition of the eval in this arm, from 1"),
    whole("attempt", "which attempt at the cell, from 1; always the newest one"),
)
"""The columns every table starts with: which cell, and which attempt at it."""

CELL_KEY: Final = ("eval_id", "condition", "repetition")
"""The columns that identify a cell within a campaign, and join any two tables."""
