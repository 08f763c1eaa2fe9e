"""The flow: what runs, what is remembered, and what a change makes run again."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from skilltrial.data.errors import PreflightRefused, StoreConflict
from skilltrial.data.store import Store
from tests.flows.building import WRITE, Files, evals, run, script, table

pytestmark = [pytest.mark.server, pytest.mark.usefixtures("prefect_server")]

SKILLED = script({**WRITE, "when": {"skill": "finisher"}}, {"say": "Finished."})


def test_campaign_scores_both_arms_and_finds_the_effect(files: Files, flow_store: Store) -> None:
    files.write(SKILLED, evals("Finish one.", "Finish two."))
    state, witness = run(files.spec(), flow_store)
    assert state.is_completed(), state.message
    assert state.message == "4 of 4 cells are settled"
    assert sorted(witness.attempts) == [
        (f"e{number}/{condition}/r1", 1, "completed")
        for number in (1, 2)
        for condition in ("with_skill", "without_skill")
    ]
    cells = table(flow_store, "cells")
    assert (
        cells.select("condition", "score", "skill_listed", "skill_used").rows()
        == [
            ("with_skill", 1.0, True, False),
            ("without_skill", 0.0, None, None),
        ]
        * 2
    )
    changed = table(flow_store, "diff_files")
    added = ("with_skill", "done.txt", "added", 1)
    assert changed.select("condition", "path", "status", "lines_added").rows() == [added] * 2


def test_running_again_dispatches_nothing_and_changes_no_table(files: Files, flow_store: Store) -> None:
    files.write(SKILLED, evals("Finish."))
    run(files.spec(), flow_store)
    before = table(flow_store, "cells")
    state, witness = run(files.spec(), flow_store)
    assert state.is_completed()
    assert (witness.settled_before, witness.attempts) == (2, [])
    assert table(flow_store, "cells").equals(before)


def test_edited_assertion_grades_again_without_any_dispatch(files: Files, flow_store: Store) -> None:
    files.write(SKILLED, evals("Finish."))
    run(files.spec(), flow_store)
    missing = {"id": "wrote", "type": "command_check", "command": "test ! -f done.txt"}
    files.write(SKILLED, evals("Finish.", assertions=[missing]))
    _, witness = run(files.spec(), flow_store)
    assert witness.attempts == []
    assert table(flow_store, "cells")["score"].to_list() == [0.0, 1.0]


def test_changed_skill_dispatches_only_the_arm_that_stages_it(files: Files, flow_store: Store) -> None:
    files.write(SKILLED, evals("Finish."))
    run(files.spec(), flow_store)
    files.write(SKILLED, evals("Finish."), skill="Write done.txt at once.")
    _, witness = run(files.spec(), flow_store)
    assert witness.attempts == [("e1/with_skill/r1", 2, "completed")]
    assert table(flow_store, "cells").select("condition", "attempt").rows() == [("with_skill", 2), ("without_skill", 1)]


def test_changed_prompt_dispatches_only_its_eval(files: Files, flow_store: Store) -> None:
    files.write(SKILLED, evals("Finish one.", "Finish two."))
    run(files.spec(), flow_store)
    files.write(SKILLED, evals("Finish one.", "Finish number two."))
    _, witness = run(files.spec(), flow_store)
    assert {label for label, _, _ in witness.attempts} == {"e2/with_skill/r1", "e2/without_skill/r1"}
    assert table(flow_store, "cells").height == 4


def test_newer_parser_ingests_again_without_any_dispatch(
    files: Files, flow_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    from skilltrial.tasks.ingest import fragments

    files.write(SKILLED, evals("Finish."))
    run(files.spec(), flow_store)
    fragment = flow_store.campaign("small").root / "cells/e1/with_skill/r1/attempt-1/tables/tool_calls.parquet"
    written = fragment.stat().st_mtime_ns
    run(files.spec(), flow_store)
    assert fragment.stat().st_mtime_ns == written
    monkeypatch.setattr(fragments, "FRAGMENTS_VERSION", fragments.FRAGMENTS_VERSION + 1)
    _, witness = run(files.spec(), flow_store)
    assert witness.attempts == []
    assert fragment.stat().st_mtime_ns > written


def test_infrastructure_failure_is_tried_again_within_the_run(files: Files, flow_store: Store, tmp_path: Path) -> None:
    crash = {"fail": {"kind": "crash", "exit_code": 7, "times": 1, "counter": str(tmp_path / "counter")}}
    files.settings["jobs"] = 1
    files.write(script(crash, WRITE, {"say": "Finished."}), evals("Finish."))
    state, witness = run(files.spec(), flow_store)
    assert state.is_completed()
    assert sorted(outcome for _, _, outcome in witness.attempts) == ["cli_crash", "completed", "completed"]
    assert sorted(table(flow_store, "cells")["attempt"].to_list()) == [1, 2]
    assert table(flow_store, "cells")["score"].to_list() == [1.0, 1.0]


def test_unsettled_cells_fail_the_flow_and_the_next_run_tries_only_them(
    files: Files, flow_store: Store, tmp_path: Path
) -> None:
    crash = {"fail": {"kind": "crash", "exit_code": 7, "times": 1, "counter": str(tmp_path / "counter")}}
    files.settings |= {"jobs": 1, "attempts": 1}
    files.write(script(crash, WRITE, {"say": "Finished."}), evals("Finish one.", "Finish two."))
    state, witness = run(files.spec(), flow_store)
    assert state.is_failed()
    assert state.message == "3 of 4 cells are settled"
    failed = next(label for label, _, outcome in witness.attempts if outcome == "cli_crash")
    cells = table(flow_store, "cells")
    assert cells.filter(~cells["settled"]).select("outcome", "counting", "score").rows() == [
        ("cli_crash", "excluded", None)
    ]
    state, witness = run(files.spec(), flow_store)
    assert state.is_completed()
    assert witness.attempts == [(failed, 2, "completed")]


def test_refused_credentials_stop_the_campaign_at_once(files: Files, flow_store: Store) -> None:
    files.settings["jobs"] = 1
    files.write(script({"fail": {"kind": "auth", "retries": 0}}), evals("One.", "Two.", "Three."))
    state, witness = run(files.spec(), flow_store)
    assert state.is_failed()
    assert [outcome for _, _, outcome in witness.attempts] == ["auth"]
    assert table(flow_store, "cells")["outcome"].to_list() == ["auth"]


def test_preflight_refuses_before_anything_is_dispatched(files: Files, flow_store: Store) -> None:
    files.settings["binary"] = "no-such-program"
    files.write(SKILLED, evals("Finish."))
    state, witness = run(files.spec(), flow_store)
    assert state.is_failed()
    error = state.result(raise_on_failure=False)
    assert isinstance(error, PreflightRefused)
    assert "no-such-program" in str(error)
    assert witness.attempts == []


def test_second_run_of_a_campaign_that_is_running_is_refused(files: Files, flow_store: Store) -> None:
    files.write(SKILLED, evals("Finish."))
    with flow_store.campaign("small").locked():
        state, _ = run(files.spec(), flow_store)
    error = state.result(raise_on_failure=False)
    assert isinstance(error, StoreConflict)
    assert "is being run by another process" in str(error)


def test_prefect_shows_task_runs_named_by_cell_and_artifacts(
    files: Files, flow_store: Store, prefect_server: str
) -> None:
    import httpx

    files.settings["name"] = "shown"
    files.write(SKILLED, evals("Finish."))
    state, _ = run(files.spec(), flow_store)
    names: set[str] = set()
    with httpx.Client(base_url=prefect_server, trust_env=False) as client:
        by_flow_run = {"task_runs": {"flow_run_id": {"any_": [str(state.state_details.flow_run_id)]}}}
        for _ in range(100):  # the server writes task runs down a moment after they end
            rows = client.post("/task_runs/filter", json=by_flow_run).json()
            names = {row["name"] for row in rows}
            if len(names) >= 11:
                break
            time.sleep(0.1)
        artifacts = client.post("/artifacts/filter", json={}).json()
    arms, stages = ("with_skill", "without_skill"), ("dispatch", "ingest", "grade")
    assert names >= {f"{stage} e1/{arm}/r1" for stage in stages for arm in arms} | {f"stage e1/{arm}" for arm in arms}
    assert {row["key"] for row in artifacts} >= {"shown-verdict", "shown-effects"}
