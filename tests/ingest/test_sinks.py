"""Rows become Parquet files with exactly the declared columns, all of them or none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

from skilltrial.data.tables import TABLES
from skilltrial.data.tables.columns import TableMismatch
from skilltrial.tasks.ingest import sinks
from skilltrial.tasks.ingest.sinks import ParquetSink

IDENTITY = {"eval_id": "e", "condition": "with_skill", "repetition": 2, "attempt": 1}


def denial(order: int, **other: Any) -> dict[str, Any]:
    row = {"order": order, "tool_use_id": None, "tool": "Bash", "source": "hook", "reason": "no", "reason_type": None}
    return row | {"evidence": ["event", "result"], "input_keys": [], "agent_id": None} | other


def test_files_have_the_declared_schema_even_without_rows(tmp_path: Path) -> None:
    names = [name for name in TABLES if name != "cells"]
    with ParquetSink(tmp_path, IDENTITY, names):
        pass
    for name in names:
        frame = pl.read_parquet(tmp_path / f"{name}.parquet")
        assert (frame.schema, frame.height) == (TABLES[name].schema, 0)


def test_rows_get_identity_and_round_and_stay_in_order(tmp_path: Path) -> None:
    with ParquetSink(tmp_path, IDENTITY, ["denials"]) as sink:
        sink.add("denials", denial(0))
        sink.round = 2
        sink.add("denials", denial(0))
        sink.add("denials", denial(1, tool="Write"))
    frame = pl.read_parquet(tmp_path / "denials.parquet")
    TABLES["denials"].check(frame)
    assert frame.select("eval_id", "condition", "repetition", "attempt").unique().rows() == [("e", "with_skill", 2, 1)]
    assert frame.select("round", "order", "tool").rows() == [(1, 0, "Bash"), (2, 0, "Bash"), (2, 1, "Write")]
    assert frame["evidence"].to_list() == [["event", "result"]] * 3


def test_row_groups_are_bounded_by_rows_and_by_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sinks, "GROUP_ROWS", 4)
    monkeypatch.setattr(sinks, "GROUP_CHARACTERS", 100)
    with ParquetSink(tmp_path, IDENTITY, ["denials"]) as sink:
        for order in range(10):
            sink.add("denials", denial(order))
        sink.add("denials", denial(10, reason="x" * 200))
    with pq.ParquetFile(tmp_path / "denials.parquet") as file:
        groups = [file.metadata.row_group(index).num_rows for index in range(file.metadata.num_row_groups)]
    assert groups == [4, 4, 3]


@pytest.mark.parametrize(
    ("row", "column"),
    [
        (denial(0) | {"tool": None}, "tool"),
        (denial(0) | {"order": "first"}, "order"),
        ({key: value for key, value in denial(0).items() if key != "source"}, "source"),
    ],
)
def test_a_row_that_does_not_fit_leaves_no_file(row: dict[str, Any], column: str, tmp_path: Path) -> None:
    with pytest.raises(TableMismatch) as caught, ParquetSink(tmp_path, IDENTITY, ["denials", "usage"]) as sink:
        sink.add("denials", row)
    assert caught.value.column == column
    assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_reader_leaves_the_old_files(tmp_path: Path) -> None:
    with ParquetSink(tmp_path, IDENTITY, ["denials"]) as sink:
        sink.add("denials", denial(0))
    with pytest.raises(ZeroDivisionError), ParquetSink(tmp_path, IDENTITY, ["denials"]):
        raise ZeroDivisionError
    assert [path.name for path in tmp_path.iterdir()] == ["denials.parquet"]
    assert pl.read_parquet(tmp_path / "denials.parquet").height == 1
