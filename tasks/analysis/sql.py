"""SQL over the tables, through DuckDB when it is installed."""

from __future__ import annotations

import importlib.util

import polars as pl

from skilltrial.data.errors import Terminal
from skilltrial.data.store import Store
from skilltrial.data.tables import TABLES
from skilltrial.tasks.analysis.tables import parts


class NoDuckDB(Terminal):
    """A query was asked for without the engine that answers it."""

    exit_code = 2

    def __str__(self) -> str:
        return "--sql needs DuckDB, which is not installed: pip install duckdb"


class BadQuery(Terminal):
    """DuckDB refused a query; carries its words."""

    exit_code = 2

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(problem)

    def __str__(self) -> str:
        return f"the query cannot be answered: {self.problem}"


def query(store: Store, sql: str, campaign: str | None = None) -> pl.DataFrame:
    """The rows that a query gives; each table is a view under its name, empty while it was never written.

    The database lives in memory and ends with the query. Raises `NoDuckDB` and `BadQuery`.
    """
    if importlib.util.find_spec("duckdb") is None:
        raise NoDuckDB
    import duckdb

    with duckdb.connect(":memory:") as connection:
        for name in TABLES:
            found = [str(path) for path in parts(store, name, campaign)]
            if found:
                source = f"read_parquet({_list(found)}, hive_partitioning = true, hive_types = {{'campaign': VARCHAR}})"
                connection.execute(f"CREATE VIEW {name} AS SELECT * FROM {source}")
            else:
                empty = TABLES[name].frame([]).with_columns(pl.lit(None, pl.String).alias("campaign"))
                connection.register(name, empty.to_arrow())
        try:
            relation = connection.sql(sql)
            # null: a statement without rows
            return pl.DataFrame() if relation is None else pl.DataFrame(relation.to_arrow_table())
        except duckdb.Error as error:
            raise BadQuery(str(error)) from error


def _list(texts: list[str]) -> str:
    return "[" + ", ".join("'" + text.replace("'", "''") + "'" for text in texts) + "]"
