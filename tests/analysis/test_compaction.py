"""Compaction: one file for each table, nothing twice, nothing replaced when a fragment is damaged."""

from __future__ import annotations

import pickle
from pathlib import Path

import polars as pl
import pytest

from skilltrial.data.outcomes import Outcome
from skilltrial.data.store import Store
from skilltrial.data.tables import TABLES
from skilltrial.data.tables.documentation import DENIALS_EXAMPLE
from skilltrial.tasks.analysis import fragments
from skilltrial.tasks.analysis.compaction import compact
from skilltrial.tasks.analysis.fragments import DamagedFragments
from skilltrial.tasks.analysis.tables import scan
from tests.analysis.trials import CONTROL, TREATMENT, Trial, make_plan, row, write_fragment


def rows_of(written: dict[str, Path], table: str) -> pl.DataFrame:
    return pl.read_parquet(written[table], hive_partitioning=False)


def test_every_table_is_one_file_with_exactly_its_declared_columns(trial: Trial) -> None:
    trial.run_all(lambda _: [True, False])
    written = compact(trial.plan, trial.store)
    assert list(written) == list(TABLES)
    for name, path in written.items():
        assert path == trial.store.home / "tables" / name / "campaign=trial" / "part-0.parquet"
        TABLES[name].check(rows_of(written, name))
    assert rows_of(written, "cells").height == 8
    assert rows_of(written, "assertions").height == 16


def test_a_campaign_without_attempts_has_empty_tables(trial: Trial) -> None:
    written = compact(trial.plan, trial.store)
    for name, path in written.items():
        frame = pl.read_parquet(path, hive_partitioning=False)
        assert (frame.height, frame.schema) == (0, TABLES[name].schema)


def test_only_the_newest_fitting_attempt_is_counted(trial: Trial) -> None:
    cell = trial.cell("alpha", TREATMENT)
    first = trial.attempt(cell, Outcome.OVERLOADED)
    trial.ingest(first, cell, denials=[{"round": 1, "order": 0, "tool": "Old"}])
    second = trial.attempt(cell)
    trial.ingest(second, cell, denials=[{"round": 1, "order": 0, "tool": "New"}])
    written = compact(trial.plan, trial.store)
    assert rows_of(written, "denials").select("attempt", "tool").rows() == [(2, "New")]
    assert rows_of(written, "rounds").height == 1


def test_compacting_again_gives_the_same_rows(trial: Trial) -> None:
    trial.run_all(lambda cell: [cell.repetition == 1, True])
    first = {name: rows_of(compact(trial.plan, trial.store), name) for name in TABLES}
    again = compact(trial.plan, trial.store)
    for name, frame in first.items():
        assert rows_of(again, name).equals(frame)


def test_rows_are_sorted_by_key_across_batches(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fragments, "BATCH", 3)
    for cell in trial.plan.cells:
        folder = trial.attempt(cell)
        calls = [{"round": r, "order": o, "tool": "Bash", "role": "shell"} for r, o in ((2, 0), (1, 1), (1, 0))]
        trial.ingest(folder, cell, tool_calls=calls)
    frame = rows_of(compact(trial.plan, trial.store), "tool_calls")
    key = frame.select(TABLES["tool_calls"].key).rows()
    assert len(key) == 24
    assert key == sorted(key)


def test_stale_parts_and_scratch_files_go_after_the_new_part_stands(trial: Trial) -> None:
    trial.run_all(lambda _: [True, True])
    partition = trial.store.partition("cells", "trial")
    partition.mkdir(parents=True)
    for name in ("part-7.parquet", ".part-0.parquet.abc.tmp"):
        (partition / name).write_bytes(b"old")
    compact(trial.plan, trial.store)
    assert [path.name for path in partition.iterdir()] == ["part-0.parquet"]


def test_other_campaigns_keep_their_part(trial: Trial) -> None:
    trial.run_all(lambda _: [True, True])
    compact(trial.plan, trial.store)
    other = Trial(make_plan(campaign="2026"), trial.store)
    other.run_all(lambda _: [False, False])
    compact(other.plan, other.store)
    counted = scan(trial.store, "cells").group_by("campaign").len().sort("campaign").collect()
    assert counted.rows() == [("2026", 8), ("trial", 8)]


def test_every_damaged_fragment_is_listed_and_nothing_is_replaced(trial: Trial) -> None:
    trial.run_all(lambda _: [True, True])
    before = compact(trial.plan, trial.store)["rounds"].read_bytes()
    folders = {cell.label: trial.store.campaign("trial").cell(cell).attempt(1) for cell in trial.plan.cells}
    torn = folders["alpha/with_skill/r1"].fragments / "rounds.parquet"
    torn.write_bytes(torn.read_bytes()[:-20])
    foreign = folders["beta/without_skill/r2"].fragments / "rounds.parquet"
    pl.DataFrame({"something": [1]}).write_parquet(foreign)
    cell = trial.cell("beta", TREATMENT, 2)
    moved = write_fragment(folders[cell.label], "denials", [row("denials", cell, 3, round=1, order=0)])
    with pytest.raises(DamagedFragments) as caught:
        compact(trial.plan, trial.store)
    listed = [(damage.cell, damage.path) for damage in caught.value.damages]
    assert listed == [
        ("alpha/with_skill/r1", str(torn)),
        ("beta/without_skill/r2", str(foreign)),
        ("beta/with_skill/r2", str(moved)),
    ]
    assert "holds rows of another attempt" in caught.value.damages[2].problem
    message = str(caught.value)
    assert (
        "3 damaged table fragment(s); delete the `tables` folders that hold them and run the campaign again" in message
    )
    assert all(path in message for _, path in listed)
    assert (trial.store.partition("rounds", "trial") / "part-0.parquet").read_bytes() == before
    assert not list(trial.store.tables.rglob("*.tmp"))


def test_the_error_survives_pickling(trial: Trial) -> None:
    error = DamagedFragments("trial", [fragments.Damage("c", "p", "torn")])
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_denials_by_condition_and_tool_take_three_lines(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    refused = {TREATMENT: ["Bash"], CONTROL: ["Bash", "Bash", "Write"]}
    for campaign in ("2026", "second"):
        trial = Trial(make_plan(campaign=campaign, repetitions=1), store)
        for cell in trial.plan.cells:
            folder = trial.attempt(cell)
            rows = [{"round": 1, "order": n, "tool": tool} for n, tool in enumerate(refused[cell.condition])]
            trial.ingest(folder, cell, denials=rows)
        compact(trial.plan, store)
    assert DENIALS_EXAMPLE.count("\n") == 3
    names: dict[str, object] = {"pl": pl, "home": store.home}
    exec(DENIALS_EXAMPLE, names)
    assert isinstance(names["denials"], pl.LazyFrame)
    counted = names["denials"].group_by("condition", "tool").len().sort("condition", "tool").collect()
    assert counted.rows() == [(TREATMENT, "Bash", 4), (CONTROL, "Bash", 8), (CONTROL, "Write", 4)]
    assert "Write" in capsys.readouterr().out
