"""The tables' documentation, made from their declarations and never written beside them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import polars as pl

from skilltrial.data.tables.columns import Column, Table

DENIALS_EXAMPLE: Final = """\
table = lambda name: pl.scan_parquet(home / "tables" / name / "**/*.parquet", hive_partitioning=True)
denials = table("denials").join(table("cells"), on=["campaign", "eval_id", "condition", "repetition"])
print(denials.group_by("condition", "tool").len().sort("condition", "tool").collect())
"""
"""Which tools were denied, in which arm, how often: three lines, given `pl` and the store's `home` as a Path."""


def markdown(tables: Iterable[Table]) -> str:
    """Every table with its key and its columns, as Markdown."""
    return "\n".join(_section(table) for table in tables)


def type_name(dtype: pl.DataType) -> str:
    """A column's type in polars' words, without its class noise: `String`, `List(String)`, `Datetime(ms, UTC)`."""
    if isinstance(dtype, pl.List):
        inner = dtype.inner
        return f"List({type_name(inner if isinstance(inner, pl.DataType) else inner())})"
    if isinstance(dtype, pl.Datetime):
        return f"Datetime({dtype.time_unit}, {dtype.time_zone})"
    return str(dtype.base_type())


def _section(table: Table) -> str:
    lines = [
        f"## {table.name}",
        "",
        table.description,
        "",
        f"Key: campaign, {', '.join(table.key)}.",
        "",
        "| column | type | unit | null | meaning |",
        "|---|---|---|---|---|",
    ]
    lines += [_line(column) for column in table.columns]
    return "\n".join([*lines, ""])


def _line(column: Column) -> str:
    meaning = column.description.replace("|", "\\|")
    nullable = "yes" if column.nullable else ""
    return f"| {column.name} | {type_name(column.dtype)} | {column.unit or ''} | {nullable} | {meaning} |"
