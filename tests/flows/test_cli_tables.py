"""`skilltrial tables`."""

from __future__ import annotations

import importlib.util
from typing import Any

import orjson
import pytest

from skilltrial.data.errors import UnknownName
from skilltrial.data.store import Store, write_model
from skilltrial.data.tables import TABLES
from skilltrial.flows.cli.tables import tables
from skilltrial.tasks.analysis.compaction import compact
from skilltrial.tasks.analysis.sql import BadQuery, NoDuckDB
from tests.analysis.trials import TREATMENT, Trial, make_plan


@pytest.fixture
def compacted(store: Store) -> Store:
    """Two compacted campaigns, `trial` with passes in treatment only, `2026` with all failing."""
    for name in ("trial", "2026"):
        made = Trial(make_plan(campaign=name), store)
        write_model(store.campaign(name).plan_path, made.plan)
        made.run_all(lambda cell, name=name: [name == "trial" and cell.condition == TREATMENT] * 2)  # type: ignore[misc]
        compact(made.plan, store)
    return store


def output(capsys: pytest.CaptureFixture[str]) -> Any:
    return orjson.loads(capsys.readouterr().out)


def test_the_list_names_every_table_with_its_rows(compacted: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert tables(home=compacted.home, json=True) == 0
    found = output(capsys)
    assert [one["name"] for one in found["tables"]] == list(TABLES)
    rows = {one["name"]: one["rows"] for one in found["tables"]}
    assert (rows["cells"], rows["assertions"], rows["denials"]) == (16, 32, 0)
    assert tables(home=compacted.home) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in TABLES)


def test_rows_can_be_those_of_one_campaign(compacted: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert tables(campaign="trial", home=compacted.home, json=True) == 0
    assert {one["name"]: one["rows"] for one in output(capsys)["tables"]}["cells"] == 8


def test_a_table_is_described_and_its_head_printed(compacted: Store, capsys: pytest.CaptureFixture[str]) -> None:
    assert tables("cells", campaign="2026", head=3, home=compacted.home, json=True) == 0
    found = output(capsys)
    assert [column["name"] for column in found["columns"]] == TABLES["cells"].schema.names()
    assert found["key"] == ["campaign", "eval_id", "condition", "repetition"]
    assert [(row["campaign"], row["score"]) for row in found["rows"]] == [("2026", 0.0)] * 3
    assert found["rows"][0]["started_at"].startswith("2026-01-02T03:04:05")
    assert tables("cells", home=compacted.home) == 0
    assert "share of the gradable assertions" in capsys.readouterr().out


def test_rows_that_fit_stand_side_by_side(compacted: Store, capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT eval_id, score, cost_usd AS usd, NULL AS nothing FROM cells WHERE score > 0.5 ORDER BY ALL LIMIT 2"
    assert tables(sql=query, home=compacted.home) == 0
    assert capsys.readouterr().out.splitlines() == [
        "2 rows",
        "eval_id  score  usd  nothing",
        "alpha    1.0    0.5  null",
        "alpha    1.0    0.5  null",
    ]


def test_rows_that_are_too_wide_stand_below_one_another_and_are_cut(
    compacted: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    query = "SELECT 'a\nb' AS short, repeat('x', 100) AS a_long_one, []::VARCHAR[] AS none"
    assert tables(sql=query, home=compacted.home) == 0
    assert capsys.readouterr().out.splitlines() == [
        "1 row",
        "",
        "short       a b",
        "a_long_one  xxxxxxxxxxxxxxxxx…",
        "none        []",
    ]


def test_a_table_that_was_never_written_has_columns_and_no_rows(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tables("denials", home=store.home, json=True) == 0
    found = output(capsys)
    assert (found["rows"], len(found["columns"])) == ([], len(TABLES["denials"].columns))
    assert tables(home=store.home, json=True) == 0
    assert {one["rows"] for one in output(capsys)["tables"]} == {None}


def test_unknown_names_list_the_known_ones(compacted: Store) -> None:
    with pytest.raises(UnknownName, match="no table 'cell'; known: cells, rounds"):
        tables("cell", home=compacted.home)
    with pytest.raises(UnknownName, match="no campaign 'x'; known: 2026, trial"):
        tables(campaign="x", home=compacted.home)


def test_sql_sees_every_table_over_all_campaigns(compacted: Store, capsys: pytest.CaptureFixture[str]) -> None:
    query = (
        "SELECT c.campaign, c.condition, avg(c.score) AS score, count(d.tool) AS denials "
        "FROM cells c LEFT JOIN denials d USING (campaign, eval_id, condition, repetition) GROUP BY ALL ORDER BY ALL"
    )
    assert tables(sql=query, home=compacted.home, json=True) == 0
    assert [tuple(row.values()) for row in output(capsys)] == [
        ("2026", "with_skill", 0.0, 0),
        ("2026", "without_skill", 0.0, 0),
        ("trial", "with_skill", 1.0, 0),
        ("trial", "without_skill", 0.0, 0),
    ]


def test_sql_can_be_about_one_campaign_and_about_none_yet(
    compacted: Store, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert tables(sql="SELECT count(*) AS n FROM cells", campaign="trial", home=compacted.home, json=True) == 0
    assert output(capsys) == [{"n": 8}]
    assert tables(sql="SELECT count(*) AS n FROM cells", home=tmp_path / "empty", json=True) == 0
    assert output(capsys) == [{"n": 0}]


def test_a_wrong_query_is_told_in_the_engines_words(compacted: Store) -> None:
    with pytest.raises(BadQuery, match=r"the query cannot be answered: .*nothing_such"):
        tables(sql="SELECT * FROM nothing_such", home=compacted.home)


def test_sql_without_duckdb_says_what_to_install(compacted: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(NoDuckDB) as caught:
        tables(sql="SELECT 1", home=compacted.home)
    assert str(caught.value) == "--sql needs DuckDB, which is not installed: pip install duckdb"
