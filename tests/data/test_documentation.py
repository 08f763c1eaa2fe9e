"""The tables' documentation follows their declarations."""

from __future__ import annotations

import polars as pl
import pytest

from skilltrial.data.tables import TABLES
from skilltrial.data.tables.columns import NAMES, UTC_MS, Table, TableMismatch, number, text, whole
from skilltrial.data.tables.documentation import markdown, type_name

SMALL = Table(
    "small",
    "One row for each thing.",
    ("name",),
    (text("name", "a|b"), whole("size", "how large; null: not told", nullable=True, unit="bytes")),
)


def test_a_table_becomes_a_section_with_key_and_columns() -> None:
    assert markdown([SMALL]) == (
        "## small\n\nOne row for each thing.\n\nKey: campaign, name.\n\n"
        "| column | type | unit | null | meaning |\n|---|---|---|---|---|\n"
        "| name | String |  |  | a\\|b |\n"
        "| size | Int64 | bytes | yes | how large; null: not told |\n"
    )


def test_every_column_of_every_table_is_documented() -> None:
    lines = markdown(TABLES.values()).splitlines()
    for table in TABLES.values():
        for column in table.columns:
            assert any(line.startswith(f"| {column.name} | {type_name(column.dtype)} |") for line in lines)


@pytest.mark.parametrize(
    ("dtype", "name"), [(pl.String(), "String"), (NAMES, "List(String)"), (UTC_MS, "Datetime(ms, UTC)")]
)
def test_types_are_named_in_full(dtype: pl.DataType, name: str) -> None:
    assert type_name(dtype) == name


@pytest.mark.parametrize("table", TABLES.values(), ids=lambda table: table.name)
def test_every_declaration_is_sound(table: Table) -> None:
    names = [column.name for column in table.columns]
    assert len(names) == len(set(names))
    assert set(table.key) <= set(names)
    assert "campaign" not in names
    for column in table.columns:
        assert column.description
        assert not column.nullable or "null" in column.description, f"{column.name}: say what null means"


def test_a_row_that_does_not_fit_is_refused_with_its_column() -> None:
    assert SMALL.frame([{"name": "a", "size": None}]).rows() == [("a", None)]
    with pytest.raises(TableMismatch, match="table small, column size: missing from a row"):
        SMALL.frame([{"name": "a"}])
    with pytest.raises(TableMismatch, match="table small, column more: not declared"):
        SMALL.frame([{"name": "a", "size": 1, "more": 2}])
    with pytest.raises(TableMismatch, match="column name: holds null, declared as never null"):
        SMALL.frame([{"name": None, "size": 1}])
    with pytest.raises(TableMismatch, match="table small"):
        SMALL.frame([{"name": "a", "size": "large"}])


def test_a_frame_with_other_columns_is_refused() -> None:
    with pytest.raises(TableMismatch, match="column size: is Float64, declared Int64"):
        SMALL.check(pl.DataFrame({"name": ["a"], "size": [1.0]}))
    with pytest.raises(TableMismatch, match="in another order than declared"):
        SMALL.check(pl.DataFrame({"size": [1], "name": ["a"]}))
    assert Table("t", "d", ("x",), (number("x", "d"),)).frame([]).schema == {"x": pl.Float64}
