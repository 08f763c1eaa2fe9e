"""`skilltrial tables`: what tables there are, what their columns mean, rows of them, and SQL over all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number

from skilltrial.flows.cli.output import emit_json

if TYPE_CHECKING:
    import polars as pl

    from skilltrial.data.store import Store


def tables(
    table: str | None = None,
    *,
    campaign: str | None = None,
    head: Annotated[int, Parameter(validator=Number(gte=0))] = 10,
    sql: str | None = None,
    home: Path | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """List the tables; describe one and print its first rows; or query all of them.

    Parameters
    ----------
    table
        Name of a table; without one, all are listed.
    campaign
        Only rows of this campaign; default: of all.
    head
        How many rows to print.
    sql
        A DuckDB query; every table is a view under its own name, with the column `campaign`.
    home
        The store's folder.
    json
        Print descriptions and rows as JSON.
    """
    from skilltrial.data.store import Store

    store = Store.open(home)
    _require_campaign(store, campaign)
    if sql is not None:
        from skilltrial.tasks.analysis.sql import query

        _print_rows(query(store, sql, campaign), json)
    elif table is None:
        _list(store, campaign, json)
    else:
        _describe(store, table, campaign, head, json)
    return 0


def _require_campaign(store: Store, campaign: str | None) -> None:
    from skilltrial.data.errors import UnknownName

    if campaign is not None and campaign not in store.campaigns():
        raise UnknownName("campaign", campaign, store.campaigns())


def _list(store: Store, campaign: str | None, json: bool) -> None:
    from skilltrial.data.tables import TABLES
    from skilltrial.tasks.analysis.tables import row_count

    counts = {name: row_count(store, name, campaign) for name in TABLES}
    if json:
        listed = [{**_declaration(name), "rows": counts[name]} for name in TABLES]
        emit_json({"folder": str(store.tables), "tables": listed})
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name, justify in (("table", "left"), ("rows", "right"), ("what a row is", "left")):
        shown.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for name, declared in TABLES.items():
        rows = "" if counts[name] is None else f"{counts[name]:,}"
        shown.add_row(name, rows, Text(declared.description))
    console = Console()
    console.print(shown)
    console.print(Text(f"files: {store.tables}/<table>/campaign=<campaign>/*.parquet"), soft_wrap=True)


def _declaration(name: str) -> dict[str, Any]:
    from skilltrial.data.tables import TABLES
    from skilltrial.data.tables.documentation import type_name

    table = TABLES[name]
    return {
        "name": name,
        "description": table.description,
        "key": ["campaign", *table.key],
        "columns": [
            {
                "name": column.name,
                "type": type_name(column.dtype),
                "unit": column.unit,
                "nullable": column.nullable,
                "description": column.description,
            }
            for column in table.columns
        ],
    }


def _describe(store: Store, table: str, campaign: str | None, head: int, json: bool) -> None:
    from skilltrial.tasks.analysis.tables import declared, first_rows

    name = declared(table).name
    rows = first_rows(store, name, campaign, head)
    if json:
        emit_json({**_declaration(name), "rows": rows.to_dicts()})
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console, shown = Console(), Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for title in ("column", "type", "meaning"):
        shown.add_column(title, overflow="fold")
    for column in _declaration(name)["columns"]:
        unit = f" [{column['unit']}]" if column["unit"] else ""
        shown.add_row(column["name"], column["type"], Text(f"{column['description']}{unit}"))
    console.print(Text(declared(table).description))
    console.print(shown)
    console.print()
    _print_rows(rows, json=False)


def _print_rows(rows: pl.DataFrame, json: bool) -> None:
    """Rows side by side where they fit the terminal, else one below the other, a line for each column."""
    if json:
        emit_json(rows.to_dicts())
        return
    import shutil

    width = shutil.get_terminal_size((120, 24)).columns
    texts = [rows.columns, *([_one_line(value) for value in row] for row in rows.iter_rows())]
    widths = [max(len(row[place]) for row in texts) for place in range(rows.width)]
    print(f"{rows.height} row{'' if rows.height == 1 else 's'}")
    if sum(widths) + 2 * len(widths) <= width or not rows.height:
        for row in texts if rows.height else []:
            print("  ".join(f"{text:<{size}}" for text, size in zip(row, widths, strict=True)).rstrip())
        return
    longest = max(map(len, rows.columns))
    for row in texts[1:]:
        print()
        for name, text in zip(rows.columns, row, strict=True):
            line = f"{name:<{longest}}  {text}"
            print(line if len(line) <= width else line[: width - 1] + "…")


def _one_line(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "[]"
    return " ".join(str(value).split())
