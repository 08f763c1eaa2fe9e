"""Each reason for doubt, on the evidence that calls for it, and silence without."""

from __future__ import annotations

from typing import Any

from skilltrial.data.benchmark import Benchmark, Severity, ValidityWarning
from skilltrial.data.outcomes import Outcome
from skilltrial.data.store import Store
from skilltrial.tasks.analysis.benchmark import build
from skilltrial.tasks.analysis.compaction import compact
from tests.analysis.trials import CONTROL, SKILL, START, TREATMENT, Trial, make_plan, skill

USE = {"round": 1, "order": 0, "tool": "Skill", "role": "skill", "skill": SKILL, "answered": True}


def benchmark_of(trial: Trial) -> Benchmark:
    compact(trial.plan, trial.store)
    return build(trial.plan, trial.store, now=START)


def warnings_of(trial: Trial) -> dict[str, ValidityWarning]:
    return {warning.code: warning for warning in benchmark_of(trial).validity_warnings}


def run_sound(trial: Trial, changes: dict[str, dict[str, Any]] | None = None, **records: dict[str, Any]) -> None:
    """Every cell as it should be, except for tables (`changes`) and record fields by cell label."""
    for cell in trial.plan.cells:
        folder = trial.attempt(cell, **records.get(cell.label.replace("/", "_"), {}))
        tables: dict[str, Any] = {"tool_calls": [USE] if cell.condition == TREATMENT else []}
        trial.ingest(folder, cell, **(tables | (changes or {}).get(cell.label, {})))
        trial.grade(folder, cell, [True, True])


def test_a_sound_campaign_has_no_warning(trial: Trial) -> None:
    run_sound(trial)
    assert warnings_of(trial) == {}


def test_a_treatment_cell_without_the_skill_on_its_roster_makes_the_contrast_invalid(trial: Trial) -> None:
    run_sound(trial, {"alpha/with_skill/r2": {"session_surface": []}})
    benchmark = benchmark_of(trial)
    (warning,) = benchmark.validity_warnings
    assert (warning.severity, warning.code, warning.count) == (Severity.INVALID, "skill_not_listed", 1)
    assert warning.cells == ("alpha/with_skill/r2",)
    assert benchmark.contrasts[0].verdict == "invalid"
    assert benchmark.contrasts[0].reason == (
        "the arms cannot be compared: 1 cell of with_skill ran in a session that does not list every staged skill"
    )
    assert benchmark.contrasts[0].effect == 0.0  # the numbers are still told


def test_a_control_cell_that_lists_the_skill_makes_the_contrast_invalid(trial: Trial) -> None:
    copy = {"round": 1, "kind": "skill", "name": f"some-plugin:{SKILL}"}
    run_sound(trial, {"beta/without_skill/r1": {"session_surface": [copy]}})
    warning = warnings_of(trial)["skill_leaked"]
    assert warning.severity is Severity.INVALID
    assert warning.cells == ("beta/without_skill/r1",)
    assert warning.message.endswith("a skill only the other arm should have: some-plugin:csv-tidy")


def test_two_versions_of_one_skill_do_not_leak_into_each_other(store: Store) -> None:
    arms = {"new_skill": [skill(content="new")], "old_skill": [skill(content="old")]}
    plan = make_plan(conditions=arms, contrasts=[("new_skill", "old_skill")])
    trial = Trial(plan, store, skills={"new_skill": [SKILL], "old_skill": [SKILL]})
    trial.run_all(lambda _: [True, True])
    assert set(warnings_of(trial)) == {"skill_never_used"}


def test_an_invalid_arm_does_not_spoil_contrasts_without_it(store: Store) -> None:
    arms = {TREATMENT: [skill()], CONTROL: [], "third": []}
    plan = make_plan(conditions=arms, contrasts=[(TREATMENT, CONTROL), ("third", CONTROL)])
    trial = Trial(plan, store, skills={})
    trial.run_all(lambda _: [True, True])
    first, second = benchmark_of(trial).contrasts
    assert (first.verdict, second.verdict) == ("invalid", "underpowered")


def test_excluded_cells_cannot_make_a_contrast_invalid(trial: Trial) -> None:
    run_sound(trial, {"alpha/with_skill/r2": {"session_surface": []}}, alpha_with_skill_r2={"outcome": "network"})
    assert {"skill_not_listed", "roster_unknown"} & set(warnings_of(trial)) == set()


def test_a_session_without_a_roster_cannot_be_checked(trial: Trial) -> None:
    run_sound(trial, {"alpha/without_skill/r1": {"rounds": [{"round": 1}]}})
    warning = warnings_of(trial)["roster_unknown"]
    assert (warning.severity, warning.cells) == (Severity.SUSPECT, ("alpha/without_skill/r1",))


def test_different_prompts_in_the_arms_make_the_contrast_invalid(trial: Trial) -> None:
    run_sound(trial, beta_with_skill_r1={"prompt_digest": "another"})
    warning = warnings_of(trial)["prompts_differ"]
    assert (warning.severity, warning.conditions, warning.count) == (Severity.INVALID, (TREATMENT, CONTROL), 4)
    assert warning.message.endswith("did not all get the same prompt: beta")


def test_a_skill_that_no_treatment_cell_used_is_suspect(trial: Trial) -> None:
    trial.run_all(lambda _: [True, True])
    assert warnings_of(trial)["skill_never_used"].message == (
        "no cell of with_skill used the staged skill (4 cells could tell)"
    )


def test_use_in_an_eval_that_should_not_trigger_is_noted(trial: Trial) -> None:
    quiet = trial.plan.evals[0].model_copy(
        update={"eval": trial.plan.evals[0].eval.model_copy(update={"skill_should_trigger": False})}
    )
    trial.plan = trial.plan.model_copy(update={"evals": (quiet, trial.plan.evals[1])})
    run_sound(trial)
    assert warnings_of(trial)["skill_used_needlessly"].cells == ("alpha/with_skill/r1", "alpha/with_skill/r2")


def test_unsettled_and_undispatched_cells_are_told_apart(trial: Trial) -> None:
    trial.run(trial.cell("alpha", TREATMENT), [True, True])
    trial.attempt(trial.cell("alpha", CONTROL), Outcome.RATE_LIMITED)
    found = warnings_of(trial)
    assert found["not_dispatched"].message == "6 of 8 cells were never dispatched"
    assert found["unsettled"].cells == ("alpha/without_skill/r1",)
    assert found["excluded"].message == (
        "1 cell of without_skill left out for reasons of infrastructure: 1 rate_limited"
    )
    assert found["unequal_graded"].message == (
        "the arms have different numbers of graded cells: with_skill 1, without_skill 0"
    )


def test_cells_that_were_cut_short_are_counted(trial: Trial) -> None:
    run_sound(trial, alpha_with_skill_r1={"outcome": "timed_out"}, beta_without_skill_r1={"outcome": "max_turns"})
    found = warnings_of(trial)
    assert found["timed_out"].message == "1 cell ended as timed_out, graded as left then: 1 of with_skill"
    assert found["max_turns"].cells == ("beta/without_skill/r1",)


def test_uneven_denials_are_suspect_and_even_ones_a_note(trial: Trial) -> None:
    denial = {"round": 1, "order": 0, "tool": "Bash"}
    run_sound(trial, {"alpha/with_skill/r1": {"denials": [denial]}})
    uneven = warnings_of(trial)["denials_uneven"]
    assert (uneven.severity, uneven.message) == (
        Severity.SUSPECT,
        "tool calls were refused differently often in with_skill and without_skill: Bash 1:0",
    )


def test_even_denials_are_a_note(trial: Trial) -> None:
    denial = {"round": 1, "order": 0, "tool": "Bash"}
    run_sound(trial, {f"alpha/{arm}/r1": {"denials": [denial], "tool_calls": [USE]} for arm in (TREATMENT, CONTROL)})
    assert warnings_of(trial)["denials"].severity is Severity.NOTE


def test_mixed_versions_models_and_modes_are_suspect(trial: Trial) -> None:
    run_sound(trial, alpha_with_skill_r1={"cli_version": "1.0.1", "model": "m2", "permission_mode": "plan"})
    found = warnings_of(trial)
    assert found["mixed_cli_version"].message == "the cells ran with different CLI versions: 1.0.0 (7), 1.0.1 (1)"
    assert {"mixed_model", "mixed_permission_mode"} <= set(found)


def test_lines_that_were_not_understood_are_counted(trial: Trial) -> None:
    coverage = {"round": 1, "malformed": 2, "unknown_type": 3, "unknown_types": ["b", "a"]}
    run_sound(trial, {"alpha/with_skill/r1": {"parse_coverage": [coverage]}})
    found = warnings_of(trial)
    assert found["events_malformed"].message == "event lines that are no JSON objects: 2 in 1 cell"
    assert found["events_unknown_type"].message == (
        "event lines of a type this version does not know (a, b): 3 in 1 cell"
    )


def test_notes_and_unfinished_tasks_are_passed_on(trial: Trial) -> None:
    rounds = [{"round": 1, "surface_kinds": ["skill"], "unfinished_tasks": ["t1"], "notes": ["foreign_session"]}]
    run_sound(trial, {"alpha/with_skill/r1": {"rounds": rounds}})
    found = warnings_of(trial)
    assert found["unfinished_tasks"].cells == ("alpha/with_skill/r1",)
    assert found["noted"].message == "1 cell noted: foreign_session"


def test_missing_verdicts_and_unread_events_are_suspect(trial: Trial) -> None:
    run_sound(trial)
    cell = trial.cell("alpha", TREATMENT)
    trial.grade(trial.store.campaign("trial").cell(cell).attempt(1), cell, [True, None])
    unread = trial.attempt(trial.cell("beta", CONTROL))
    trial.grade(unread, trial.cell("beta", CONTROL), [True, True])
    found = warnings_of(trial)
    assert found["missing_verdicts"].message == "assertions without a verdict, which count neither way: 1 in 1 cell"
    assert found["not_ingested"].cells == ("beta/without_skill/r1",)


def test_ungraded_evals_and_warnings_of_the_plan_are_listed_last(store: Store) -> None:
    plan = make_plan(evals=["alpha"], ungraded=["free"]).model_copy(update={"warnings": ("the folder is dirty",)})
    trial = Trial(plan, store)
    trial.run_all(lambda _: [True, True])
    listed = benchmark_of(trial).validity_warnings
    assert [(w.severity.value, w.code) for w in listed] == [
        ("suspect", "skill_never_used"),
        ("note", "ungraded_evals"),
        ("note", "plan"),
    ]
