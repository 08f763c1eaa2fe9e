"""Reading the compacted tables back."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from skilltrial.data.errors import Terminal, UnknownName
from skilltrial.data.store import Store
from skilltrial.data.tables import TABLES, Table


class NoTables(Terminal):
    """A table was asked for before any campaign was aggregated."""

    def __init__(self, table: str, campaign: str | None, home: str) -> None:
        self.table, self.campaign, self.home = table, campaign, home
        super().__init__(table, campaign, home)

    def __str__(self) -> str:
        of = f" of campaign {self.campaign!r}" if self.campaign else ""
        return (
            f"there is no table {self.table}{of} below {self.home}; `skilltrial run` writes it when a campaign's cells "
            "are graded"
        )


def declared(name: str) -> Table:
    """The declaration of a table; `UnknownName` lists the known ones."""
    if name not in TABLES:
        raise UnknownName("table", name, TABLES)
    return TABLES[name]


def parts(store: Store, name: str, campaign: str | None = None) -> list[Path]:
    """The files of a table, of one campaign or of all."""
    folders = [store.partition(name, campaign)] if campaign else sorted((store.tables / name).glob("campaign=*"))
    return [path for folder in folders for path in sorted(folder.glob("*.parquet"))]


def scan(store: Store, name: str, campaign: str | None = None) -> pl.LazyFrame:
    """A table as a lazy frame, its hive key `campaign` as the last column. Raises `NoTables`."""
    found = parts(store, declared(name).name, campaign)
    if not found:
        raise NoTables(name, campaign, str(store.home))
    # stated, since a campaign called 2026 would otherwise be read as a number
    return pl.scan_parquet(found, glob=False, hive_partitioning=True, hive_schema={"campaign": pl.String})


def row_count(store: Store, name: str, campaign: str | None = None) -> int | None:
    """Rows of a table, from the files' footers; null: it was never written."""
    if not parts(store, name, campaign):
        return None
    return int(scan(store, name, campaign).select(pl.len()).collect().item())


def first_rows(store: Store, name: str, campaign: str | None, number: int) -> pl.DataFrame:
    """The first rows of a table; none, with all its columns, while it was never written."""
    if not parts(store, name, campaign):
        return TABLES[name].frame([]).with_columns(pl.lit(None, pl.String).alias("campaign"))
    return scan(store, name, campaign).head(number).collect()
