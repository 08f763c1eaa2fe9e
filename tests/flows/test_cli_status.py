"""`skilltrial status`."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

import orjson
import pytest

from skilltrial.data.errors import UnknownName
from skilltrial.data.outcomes import Outcome
from skilltrial.data.store import Store, write_model
from skilltrial.flows.cli.status import status
from tests.analysis.trials import CONTROL, TREATMENT, Trial, make_plan


@pytest.fixture
def begun(store: Store) -> Trial:
    """A campaign with one settled, one unsettled and six missing cells."""
    trial = Trial(make_plan(), store)
    write_model(store.campaign("trial").plan_path, trial.plan)
    trial.attempt(trial.cell("alpha", TREATMENT), cost_usd=0.25, duration_ms=1500)
    trial.attempt(trial.cell("alpha", CONTROL), Outcome.RATE_LIMITED, reason="api_429")
    return trial


def test_json_has_every_cell_in_the_order_of_the_plan(begun: Trial, capsys: pytest.CaptureFixture[str]) -> None:
    assert status("trial", home=begun.store.home, json=True) == 0
    found = orjson.loads(capsys.readouterr().out)
    assert found["states"] == {"settled": 1, "unsettled": 1, "running": 0, "missing": 6}
    assert [cell["cell"] for cell in found["cells"]] == [cell.label for cell in begun.plan.cells]
    settled = next(cell for cell in found["cells"] if cell["state"] == "settled")
    assert settled == {
        "cell": "alpha/with_skill/r1",
        "eval_id": "alpha",
        "condition": TREATMENT,
        "repetition": 1,
        "state": "settled",
        "outcome": "completed",
        "reason": "",
        "attempt": 1,
        "rounds": 1,
        "duration_ms": 1500,
        "cost_usd": 0.25,
        "folder": str(begun.store.campaign("trial").cell(begun.cell("alpha", TREATMENT)).attempt(1).root),
    }


def test_a_person_sees_totals_and_one_line_for_each_cell(
    begun: Trial, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert status("trial", home=begun.store.home) == 0
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "trial: 8 cells: 1 settled, 1 unsettled, 0 running, 6 missing, $0.25"
    assert lines[2].split() == ["alpha/with_skill/r1", "settled", "completed", "1", "1", "1.5", "0.2500"]
    assert sum(line.startswith(("alpha/", "beta/")) for line in lines) == 8


def test_without_a_name_the_campaigns_are_listed(begun: Trial, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(home=begun.store.home) == 0
    assert capsys.readouterr().out == "trial: 1 settled, 1 unsettled, 6 missing\n"
    assert status(home=begun.store.home, json=True) == 0
    (found,) = orjson.loads(capsys.readouterr().out)["campaigns"]
    assert (found["campaign"], found["states"]["missing"], "cells" in found) == ("trial", 6, False)


def test_an_empty_store_says_how_to_begin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(home=tmp_path) == 0
    assert capsys.readouterr().out == f"no campaign in {tmp_path}; `skilltrial run` makes one\n"


def test_an_unknown_campaign_lists_the_known_ones(begun: Trial) -> None:
    with pytest.raises(UnknownName, match="no campaign 'other'; known: trial"):
        status("other", home=begun.store.home)


def test_watching_ends_when_every_cell_is_settled(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    trial = Trial(make_plan(evals=["alpha"], repetitions=1), store)
    write_model(store.campaign("trial").plan_path, trial.plan)
    for cell in trial.plan.cells:
        trial.attempt(cell)
    assert status("trial", home=store.home, watch=True) == 0
    assert "2 settled" in capsys.readouterr().out


def test_watching_ends_when_the_run_that_was_seen_has_ended(begun: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    holders = iter([None, 4711, 4711, None])
    monkeypatch.setattr("skilltrial.data.store.CampaignFolder.holder", lambda _: next(holders, None))
    monkeypatch.setattr("time.sleep", lambda _: None)
    begun.store.campaign("trial").lock_path.touch()
    watching = threading.Thread(target=status, args=("trial",), kwargs={"home": begun.store.home, "watch": True})
    watching.start()
    watching.join(timeout=20)
    assert not watching.is_alive()


def test_status_reads_no_table_and_starts_no_engine(begun: Trial) -> None:
    import subprocess

    code = (
        "import sys, pathlib; from skilltrial.flows.cli.status import status\n"
        f"status('trial', home=pathlib.Path({str(begun.store.home)!r}))\n"
        "assert not {'polars', 'prefect', 'pyarrow'} & set(sys.modules), 'heavy imports'"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_at_80_columns_every_column_is_there_and_the_outcome_wraps(
    store: Store, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = Trial(make_plan(evals=["no-asserts"]), store)
    write_model(store.campaign("trial").plan_path, trial.plan)
    trial.attempt(trial.cell("no-asserts", CONTROL), Outcome.RATE_LIMITED, reason="rate_limit")
    monkeypatch.setenv("COLUMNS", "80")
    assert status("trial", home=store.home) == 0
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines[1].split() == ["cell", "state", "outcome", "attempt", "rounds", "seconds", "USD"]
    assert max(map(len, lines)) <= 80
    [tried] = [line for line in lines if "rate_limited" in line]
    assert tried.split()[:3] == ["no-asserts/without_skill/r1", "unsettled", "rate_limited"]
