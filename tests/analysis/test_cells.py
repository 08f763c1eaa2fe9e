"""Rows of the cells table, column by column."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from skilltrial.data.outcomes import Outcome
from skilltrial.data.plan import CampaignPlan
from skilltrial.data.store import Store
from skilltrial.data.tables import TABLES
from skilltrial.descriptors.loading import descriptor
from skilltrial.tasks.analysis.fragments import DamagedFragments
from tests.analysis.trials import CONTROL, SKILL, START, TREATMENT, Trial, cell_rows, make_plan, skill, write_fragment


def only_row(trial: Trial) -> dict[str, Any]:
    (found,) = cell_rows(trial.plan, trial.store).to_dicts()
    return found


def test_a_campaign_without_attempts_has_no_row_but_every_column(trial: Trial) -> None:
    frame = cell_rows(trial.plan, trial.store)
    assert frame.height == 0
    assert frame.schema == TABLES["cells"].schema


def test_a_completed_cell_tells_its_record_and_its_fragments(trial: Trial) -> None:
    cell = trial.cell("alpha", TREATMENT)
    folder = trial.attempt(cell, rounds=2, duration_ms=3000, notes=("late",))
    trial.ingest(
        folder,
        cell,
        rounds=[
            {"round": 1, "surface_kinds": ["skill"], "cost_usd": 0.5, "final_text": "one", "notes": ["x"]},
            {"round": 2, "surface_kinds": ["skill"], "cost_usd": 0.25, "final_text": "two", "notes": ["late"]},
        ],
        session_surface=[{"round": n, "kind": "skill", "name": SKILL} for n in (1, 2)],
        tool_calls=[
            {"round": 1, "order": 0, "tool": "Bash", "role": "shell"},
            {"round": 2, "order": 0, "tool": "Skill", "role": "skill", "skill": SKILL, "answered": True},
        ],
        denials=[{"round": 1, "order": 0, "tool": "Bash"}],
        usage=[
            {"round": 1, "scope": "main", "input_tokens": 1, "output_tokens": 1, "exact": True},
            {"round": 1, "scope": "all", "model": "m", "input_tokens": 10, "output_tokens": 5, "exact": True},
            {"round": 1, "scope": "all", "model": "n", "input_tokens": 20, "output_tokens": 5, "exact": True},
            {"round": 2, "scope": "all", "model": "m", "input_tokens": 30, "output_tokens": 5, "exact": True},
        ],
    )
    trial.grade(folder, cell, [True, False])
    write_files = [{"path": "a", "lines_added": 3, "lines_removed": 1}, {"path": "b.bin", "binary": True}]
    trial_rows = [{**_diff(cell, folder.number), **row} for row in write_files]
    write_fragment(folder, "diff_files", trial_rows)
    assert only_row(trial) == {
        "eval_id": "alpha",
        "condition": TREATMENT,
        "repetition": 1,
        "attempt": 1,
        "block": 0,
        "cell_digest": cell.digest,
        "outcome": "completed",
        "reason": "",
        "settled": True,
        "counting": "scored",
        "score": 0.5,
        "assertions_passed": 1,
        "assertions_graded": 2,
        "assertions_missing": 0,
        "rounds": 2,
        "duration_ms": 3000,
        "cost_usd": 0.75,
        "input_tokens": 60,
        "output_tokens": 15,
        "cache_read_tokens": None,
        "cache_creation_tokens": None,
        "tool_calls": 2,
        "denials": 1,
        "denials_known": True,
        "files_touched": 2,
        "lines_added": 3,
        "lines_removed": 1,
        "skill_listed": True,
        "skill_used": True,
        "harness": "scripted",
        "cli_version": "1.0.0",
        "model": "model-1",
        "permission_mode": "default",
        "session_id": "s",
        "prompt_digest": "prompt-alpha",
        "final_text": "two",
        "notes": ["late", "x"],
        "worker": "host",
        "started_at": START,
        "folder": f"campaigns/trial/cells/alpha/{TREATMENT}/r1/attempt-1",
    }


def _diff(cell: Any, attempt: int) -> dict[str, Any]:
    neutral = {"path": "", "status": "added", "binary": False, "lines_added": None, "lines_removed": None, "hunks": 0}
    identity = {"eval_id": cell.eval_id, "condition": cell.condition, "repetition": cell.repetition}
    return {**identity, "attempt": attempt, **neutral}


def test_nothing_is_known_of_a_cell_whose_events_were_not_read(trial: Trial) -> None:
    trial.attempt(trial.cell("alpha", TREATMENT))
    found = only_row(trial)
    unknown = ("cost_usd", "input_tokens", "tool_calls", "denials", "files_touched", "lines_added")
    assert {name: found[name] for name in unknown} == dict.fromkeys(unknown)
    assert (found["denials_known"], found["skill_listed"], found["skill_used"]) == (False, None, None)
    assert (found["score"], found["assertions_graded"], found["assertions_missing"]) == (None, None, 2)


def test_the_record_tells_the_cost_when_the_rounds_do_not(trial: Trial) -> None:
    trial.attempt(trial.cell("alpha", TREATMENT), cost_usd=0.125)
    assert only_row(trial)["cost_usd"] == 0.125


def test_an_empty_fragment_is_a_measured_zero(trial: Trial) -> None:
    trial.run(trial.cell("alpha", CONTROL), [True, True])
    found = only_row(trial)
    assert (found["tool_calls"], found["denials"], found["files_touched"], found["lines_added"]) == (0, 0, 0, 0)


def test_a_round_without_a_stream_leaves_calls_and_denials_unknown(trial: Trial) -> None:
    cell = trial.cell("alpha", TREATMENT)
    folder = trial.attempt(cell, Outcome.CLI_MISSING)
    trial.ingest(folder, cell, rounds=[{"round": 1}], session_surface=[], parse_coverage=[])
    found = only_row(trial)
    unknown = ("tool_calls", "denials", "skill_listed", "skill_used", "cost_usd", "input_tokens")
    assert {name: found[name] for name in unknown} == dict.fromkeys(unknown)
    assert found["denials_known"] is False


def test_denials_of_a_harness_that_reports_none_are_unknown(store: Store) -> None:
    plan = make_plan()
    mute = descriptor("scripted").model_dump(mode="json")
    mute["transcript"]["reports_denials"] = False
    plan = plan.model_copy(update={"harness": plan.harness.model_copy(update={"descriptor": mute})})
    trial = Trial(plan, store)
    trial.run(trial.cell("alpha", CONTROL), [True, True])
    found = only_row(trial)
    assert (found["denials"], found["denials_known"]) == (None, False)


def test_the_newest_fitting_attempt_counts_and_no_other(trial: Trial) -> None:
    cell = trial.cell("alpha", TREATMENT)
    trial.attempt(cell, Outcome.RATE_LIMITED)
    trial.run(cell, [True, True])
    other = trial.attempt(cell, cell_digest="another version of the cell")
    trial.ingest(other, cell)
    trial.store.campaign("trial").cell(cell).begin()  # killed before it had a record
    found = only_row(trial)
    assert (found["attempt"], found["outcome"], found["score"]) == (2, "completed", 1.0)


def test_an_excluded_cell_has_no_score_whatever_lies_there(trial: Trial) -> None:
    cell = trial.cell("alpha", TREATMENT)
    folder = trial.attempt(cell, Outcome.NETWORK)
    trial.grade(folder, cell, [True, True])
    found = only_row(trial)
    assert (found["counting"], found["settled"], found["score"]) == ("excluded", False, None)
    assert (found["assertions_passed"], found["assertions_graded"], found["assertions_missing"]) == (None, None, None)


def test_an_eval_without_assertions_is_ungraded_and_not_zero(store: Store) -> None:
    trial = Trial(make_plan(evals=["alpha"], ungraded=["free"]), store)
    trial.run(trial.cell("free", TREATMENT), [])
    found = only_row(trial)
    assert (found["score"], found["assertions_graded"], found["assertions_missing"]) == (None, None, None)


def test_assertions_without_a_verdict_count_neither_way(trial: Trial) -> None:
    trial.run(trial.cell("alpha", TREATMENT), [True, None])
    found = only_row(trial)
    assert (found["score"], found["assertions_passed"], found["assertions_graded"]) == (1.0, 1, 1)
    assert found["assertions_missing"] == 1


def test_a_cell_without_any_verdict_is_ungraded(trial: Trial) -> None:
    trial.run(trial.cell("alpha", TREATMENT), [None, None])
    found = only_row(trial)
    assert (found["score"], found["assertions_passed"], found["assertions_missing"]) == (None, None, 2)


def test_verdicts_on_an_earlier_wording_of_the_assertions_are_as_good_as_none(trial: Trial) -> None:
    cell = trial.cell("alpha", TREATMENT)
    folder = trial.attempt(cell)
    trial.grade(folder, cell, [True, True], grading_digest="before the edit")
    found = only_row(trial)
    assert (found["score"], found["assertions_missing"]) == (None, 2)


def tokens_of(trial: Trial, **tables: Any) -> int | None:
    cell = trial.cell("alpha", TREATMENT)
    folder = trial.attempt(cell)
    trial.ingest(folder, cell, **tables)
    found: int | None = only_row(trial)["input_tokens"]
    return found


MAIN = {"round": 1, "scope": "main", "input_tokens": 7, "exact": True}


def test_main_is_the_tree_when_there_is_no_other_row_and_no_sub_agent(trial: Trial) -> None:
    assert tokens_of(trial, usage=[MAIN]) == 7


@pytest.mark.parametrize(
    "call",
    [{"tool": "Task", "role": "subagent"}, {"tool": "Read", "role": "read", "parent_tool_use_id": "t1"}],
)
def test_main_is_not_the_tree_when_a_sub_agent_was_called(trial: Trial, call: dict[str, str]) -> None:
    assert tokens_of(trial, usage=[MAIN], tool_calls=[{"round": 1, "order": 0, **call}]) is None


def test_a_lower_bound_is_not_told_as_the_number(trial: Trial) -> None:
    assert tokens_of(trial, usage=[{**MAIN, "exact": False}]) is None


def test_one_model_that_does_not_tell_makes_the_whole_tree_unknown(trial: Trial) -> None:
    rows = [
        {"round": 1, "scope": "all", "model": m, "input_tokens": n, "exact": True} for m, n in (("m", 1), ("n", None))
    ]
    assert tokens_of(trial, usage=[*rows, MAIN]) is None


def test_a_round_without_usage_makes_the_sum_unknown(trial: Trial) -> None:
    rounds = [{"round": 1, "cost_usd": 0.5}, {"round": 2, "cost_usd": None}]
    assert tokens_of(trial, usage=[MAIN], rounds=rounds) is None
    assert only_row(trial)["cost_usd"] is None


def skill_columns(trial: Trial, **tables: Any) -> tuple[bool | None, bool | None]:
    cell = trial.cell("alpha", TREATMENT)
    folder = trial.attempt(cell)
    trial.ingest(folder, cell, **tables)
    found = only_row(trial)
    return found["skill_listed"], found["skill_used"]


def entry(name: str) -> dict[str, object]:
    return {"round": 1, "kind": "skill", "name": name}


def test_a_roster_without_the_skill_is_told(trial: Trial) -> None:
    assert skill_columns(trial, session_surface=[entry("other"), {"round": 1, "kind": "tool", "name": SKILL}]) == (
        False,
        False,
    )


def test_an_empty_roster_does_not_list_the_skill(trial: Trial) -> None:
    assert skill_columns(trial, session_surface=[]) == (False, False)


def test_a_copy_of_a_plugin_is_not_the_staged_skill(trial: Trial) -> None:
    assert skill_columns(trial, session_surface=[entry(f"plugin:{SKILL}")])[0] is False


def test_no_roster_means_not_known(trial: Trial) -> None:
    assert skill_columns(trial, rounds=[{"round": 1}], session_surface=[]) == (None, None)


def test_one_skill_of_two_is_not_every_skill(store: Store) -> None:
    arms = {TREATMENT: [skill("one"), skill("two")], CONTROL: []}
    trial = Trial(make_plan(conditions=arms), store)
    assert skill_columns(trial, session_surface=[entry("one")])[0] is False


def test_every_round_with_a_roster_must_list_the_skill(trial: Trial) -> None:
    rounds = [{"round": n, "surface_kinds": ["skill"]} for n in (1, 2)]
    assert skill_columns(trial, rounds=rounds, session_surface=[entry(SKILL)])[0] is False


def call(**values: object) -> dict[str, object]:
    return {"round": 1, "order": 0, "tool": "Skill", "role": "skill", "skill": SKILL, "answered": True, **values}


READ = {"tool": "Read", "role": "read", "skill": None}


@pytest.mark.parametrize(
    ("made", "used"),
    [
        (call(), True),
        (call(is_error=False, denied=False), True),
        (call(is_error=True), False),
        (call(answered=False), False),
        (call(denied=True), False),
        (call(skill=f"/{SKILL}"), True),
        (call(skill="other"), False),
        (call(skill=f"plugin:{SKILL}"), False),
        (call(**READ, input=f'{{"file_path":"/w/project/.claude/skills/{SKILL}/SKILL.md"}}'), True),
        (call(**READ, input=f'{{"file_path":".claude/skills/{SKILL}/SKILL.md"}}', is_error=True), False),
        (call(**READ, input=f'{{"file_path":"/w/.claude/skills/{SKILL}/SKILL.md.bak"}}'), False),
        (call(**READ, input='{"file_path":"/w/.claude/skills/other/SKILL.md"}'), False),
        (call(tool="Write", role="write", skill=None, input=f'{{"p":"/.claude/skills/{SKILL}/SKILL.md"}}'), False),
    ],
)
def test_a_skill_is_used_when_it_was_invoked_or_read_without_an_error(
    trial: Trial, made: dict[str, object], used: bool
) -> None:
    assert skill_columns(trial, tool_calls=[made])[1] is used


def test_use_is_evidence_even_without_a_roster(trial: Trial) -> None:
    assert skill_columns(trial, rounds=[{"round": 1}], session_surface=[], tool_calls=[call()]) == (None, True)


def test_a_control_without_skill_has_neither_column(trial: Trial) -> None:
    trial.run(trial.cell("alpha", CONTROL), [True, True])
    found = only_row(trial)
    assert (found["skill_listed"], found["skill_used"]) == (None, None)


def test_rows_are_sorted_by_cell_whatever_the_order_of_dispatch(trial: Trial) -> None:
    trial.run_all(lambda _: [True, True])
    frame = cell_rows(trial.plan, trial.store)
    key = frame.select("eval_id", "condition", "repetition").rows()
    assert key == sorted((c.eval_id, c.condition, c.repetition) for c in trial.plan.cells)


def test_a_torn_fragment_is_named_with_its_cell(trial: Trial) -> None:
    cell = trial.cell("alpha", TREATMENT)
    folder = trial.run(cell, [True, True])
    (folder.fragments / "usage.parquet").write_bytes(b"PAR1")
    with pytest.raises(DamagedFragments) as caught:
        cell_rows(trial.plan, trial.store)
    assert [damage.cell for damage in caught.value.damages] == [cell.label]


def test_a_plan_of_another_campaign_does_not_see_the_cells(trial: Trial) -> None:
    trial.run_all(lambda _: [True, True])
    other: CampaignPlan = make_plan(campaign="other")
    assert cell_rows(other, trial.store).height == 0
    assert cell_rows(trial.plan, trial.store).select(pl.len()).item() == 8
