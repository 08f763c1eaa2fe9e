"""Plans: everything resolved, all problems at once, digests that follow content and nothing else."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skilltrial.data.digests import tree_digest
from skilltrial.data.errors import InvalidInput, NotBuiltYet, UnknownName
from skilltrial.data.plan import CampaignPlan
from skilltrial.data.spec import CampaignSpec
from skilltrial.tasks.planning.plan import make_plan
from tests.planning.building import CHECK, commit, evals, repository, skill, trial, write


def digests(plan: CampaignPlan) -> dict[str, str]:
    return {cell.label: cell.digest for cell in plan.cells}


def changed(before: CampaignPlan, after: CampaignPlan) -> set[str]:
    """Labels of the cells that would be dispatched again."""
    old, new = digests(before), digests(after)
    return {label for label in new if old.get(label) != new[label]}


def with_fields(spec: CampaignSpec, **fields: Any) -> CampaignSpec:
    return CampaignSpec.model_validate({**spec.model_dump(exclude_unset=True), **fields})


def test_a_plan_holds_everything_resolved(tmp_path: Path) -> None:
    write(tmp_path / "tables/evals/in.csv", "a")
    write(tmp_path / "tables/evals/hidden.py", "h")
    check = {**CHECK, "setup_files": ["hidden.py"]}
    plan = make_plan(
        trial(
            tmp_path,
            {"id": "one", "prompt": "p", "files": ["in.csv"], "assertions": [check]},
            {"id": "two", "prompt": "q", "runs": 3},
        )
    )
    assert (plan.campaign, plan.skill_name) == ("tables-new-skill", "tables")
    assert [(planned.eval.id, planned.repetitions) for planned in plan.evals] == [("one", 2), ("two", 3)]
    assert len(plan.cells) == 2 * (2 + 3)
    assert len(plan.templates) == 4
    [staged] = plan.condition("with_skill").skills
    assert (staged.slug, staged.digest) == ("tables", digest_of_skill(tmp_path / "tables"))
    assert plan.condition("without_skill").skills == ()
    assert plan.warnings == ()
    assert CampaignPlan.model_validate_json(plan.model_dump_json()) == plan


def digest_of_skill(folder: Path) -> str:
    return tree_digest(folder, skip=lambda name: name == "evals")


def test_arms_of_an_eval_and_repetition_stand_side_by_side_in_random_order(tmp_path: Path) -> None:
    entries = [{"id": f"e{number}", "prompt": "p"} for number in range(8)]
    plan = make_plan(trial(tmp_path, *entries, repetitions=5))
    blocks = [plan.cells[start : start + 2] for start in range(0, len(plan.cells), 2)]
    assert [cell.block for cell in plan.cells] == [number for number in range(40) for _ in "ab"]
    assert all(len({(cell.eval_id, cell.repetition) for cell in block}) == 1 for block in blocks)
    assert all({cell.condition for cell in block} == {"with_skill", "without_skill"} for block in blocks)
    first = Counter(block[0].condition for block in blocks)
    assert min(first.values()) >= 10
    order = [(block[0].eval_id, block[0].repetition) for block in blocks]
    assert order != sorted(order)
    assert order != sorted(order, key=lambda block: (block[1], block[0]))


def test_the_order_follows_the_seed_and_the_digests_do_not(tmp_path: Path) -> None:
    spec = trial(tmp_path, repetitions=10)
    plan, again, other = make_plan(spec), make_plan(spec), make_plan(with_fields(spec, seed=1))
    assert plan == again
    assert [cell.label for cell in plan.cells] != [cell.label for cell in other.cells]
    assert digests(plan) == digests(other)
    assert plan.digest == other.digest


def test_an_added_eval_leaves_the_other_cells_and_their_order(tmp_path: Path) -> None:
    spec = trial(tmp_path, {"id": "a", "prompt": "p"}, {"id": "b", "prompt": "q"}, repetitions=4)
    before = make_plan(spec)
    evals(spec.skill, {"id": "c", "prompt": "r"}, {"id": "a", "prompt": "p"}, {"id": "b", "prompt": "q"})
    after = make_plan(spec)
    assert {label.split("/")[0] for label in changed(before, after)} == {"c"}
    assert [cell.label for cell in after.cells if cell.eval_id != "c"] == [cell.label for cell in before.cells]


ALL = {"one/with_skill/r1", "one/with_skill/r2", "one/without_skill/r1", "one/without_skill/r2"}
TREATED = {label for label in ALL if "/with_skill/" in label}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"jobs": 9}, set()),
        ({"attempts": 1}, set()),
        ({"name": "other"}, set()),
        ({"alpha": 0.1}, set()),
        ({"repetitions": 3}, {"one/with_skill/r3", "one/without_skill/r3"}),
        ({"model": "m"}, ALL),
        ({"permission_mode": "plan"}, ALL),
        ({"allowed_tools": ["Bash"]}, ALL),
        ({"env": {"A": "1"}}, ALL),
        ({"pass_env": ["A"]}, ALL),
        ({"timeout_s": 5}, ALL),
        ({"silence_s": 5}, ALL),
        ({"max_turns": 5}, ALL),
        ({"budget_usd": 1}, ALL),
    ],
)
def test_a_field_of_the_campaign_concerns_exactly_the_cells_it_changes(
    tmp_path: Path, fields: dict[str, Any], expected: set[str]
) -> None:
    spec = trial(tmp_path)
    assert changed(make_plan(spec), make_plan(with_fields(spec, **fields))) == expected


def test_a_changed_skill_concerns_its_arm_alone(tmp_path: Path) -> None:
    spec = trial(tmp_path)
    before = make_plan(spec)
    write(spec.skill / "notes.md", "new")
    after = make_plan(spec)
    assert changed(before, after) == TREATED
    assert before.template("one", "with_skill") != after.template("one", "with_skill")
    assert before.template("one", "without_skill") == after.template("one", "without_skill")


def test_a_changed_assertion_or_note_concerns_no_cell_but_the_grading(tmp_path: Path) -> None:
    spec = trial(tmp_path)
    before = make_plan(spec)
    check = {**CHECK, "command": "false"}
    evals(spec.skill, {"id": "one", "prompt": "Sort it.", "expected_output": "sorted", "assertions": [check]})
    after = make_plan(spec)
    assert changed(before, after) == set()
    assert before.evals[0].grading_digest != after.evals[0].grading_digest


@pytest.mark.parametrize(("field", "name"), [("files", "in.csv"), ("setup_files", "hidden.py")])
def test_a_changed_fixture_concerns_all_arms_and_a_held_out_file_only_the_grading(
    tmp_path: Path, field: str, name: str
) -> None:
    check = {**CHECK, "setup_files": ["hidden.py"]}
    entry = {"id": "one", "prompt": "p", "files": ["in.csv"], "assertions": [check]}
    for file in ("in.csv", "hidden.py"):
        write(tmp_path / "tables/evals" / file, "before")
    spec = trial(tmp_path, entry)
    before = make_plan(spec)
    write(tmp_path / "tables/evals" / name, "after")
    after = make_plan(spec)
    assert changed(before, after) == (ALL if field == "files" else set())
    assert (before.evals[0].grading_digest != after.evals[0].grading_digest) == (field == "setup_files")


def test_a_changed_harness_input_concerns_every_cell(tmp_path: Path) -> None:
    spec = trial(tmp_path)
    before = make_plan(spec)
    write(spec.harness_inputs["script"], '{"other": 1}')
    assert changed(before, make_plan(spec)) == ALL


def test_the_same_trial_elsewhere_has_the_same_digests(tmp_path: Path) -> None:
    plans = []
    for place in ("here", "there/deeper"):
        (tmp_path / place).mkdir(parents=True)
        write(tmp_path / place / "code/a.txt", "a")
        entry = {"id": "one", "prompt": "p", "codebase": {"path": "../../code"}}
        plans.append(make_plan(trial(tmp_path / place, entry)))
    assert digests(plans[0]) == digests(plans[1])
    assert plans[0].templates == plans[1].templates


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=5, deadline=None)
@given(prompt=st.text(st.characters(codec="utf-8"), min_size=1).filter(str.strip), shuffled=st.randoms())
def test_digests_follow_the_prompt_and_not_the_order_of_keys(
    tmp_path_factory: pytest.TempPathFactory, prompt: str, shuffled: Any
) -> None:
    folder = tmp_path_factory.mktemp("trial")
    entry = {"id": "one", "prompt": prompt, "runs": 1, "skill_should_trigger": True, "assertions": [CHECK]}
    spec = trial(folder, entry)
    before = make_plan(spec)
    keys = list(entry)
    shuffled.shuffle(keys)
    evals(spec.skill, {key: entry[key] for key in keys})
    assert digests(make_plan(spec)) == digests(before)
    evals(spec.skill, {**entry, "prompt": prompt + "."})
    assert changed(before, make_plan(spec)) == set(digests(before))


def test_a_codebase_that_several_evals_share_is_one(tmp_path: Path) -> None:
    code = repository(tmp_path / "code", {"a.txt": "a"})
    revision = commit(code)
    write(code / "a.txt", "dirty")
    entries = [{"id": name, "prompt": "p"} for name in ("a", "b")]
    own = {"id": "c", "prompt": "p", "codebase": {"url": code.as_uri(), "ref": "work"}}
    plan = make_plan(trial(tmp_path, *entries, own, top={"codebase": {"path": str(code)}}))
    assert [planned.codebase and planned.codebase.key for planned in plan.evals] == [revision] * 3
    assert [warning for warning in plan.warnings if "uncommitted" in warning] == [
        f"codebase {code.resolve()} has uncommitted changes, which no environment gets: only its commit is used"
    ]


def test_only_the_chosen_evals_are_planned(tmp_path: Path) -> None:
    judged = {"id": "b", "prompt": "q", "assertions": [{"id": "j", "type": "llm_judge", "rubric": "r"}]}
    spec = trial(tmp_path, {"id": "a", "prompt": "p"}, judged, only=("a",))
    assert [planned.eval.id for planned in make_plan(spec).evals] == ["a"]
    with pytest.raises(UnknownName, match="no eval 'x'; known: a, b"):
        make_plan(with_fields(spec, only=["x"]))


def test_what_is_not_built_yet_is_told_for_all_evals_at_once(tmp_path: Path) -> None:
    judge = {"id": "j", "type": "llm_judge", "rubric": "r"}
    turn = {"prompt": "more", "deliver_when": "always"}
    spec = trial(
        tmp_path,
        {"id": "a", "prompt": "p", "turns": [turn]},
        {"id": "b", "prompt": "p", "responder": {"type": "llm"}, "assertions": [judge]},
        {"id": "c", "prompt": "p", "plan_mode": True},
        {"id": "d", "prompt": "p"},
    )
    with pytest.raises(NotBuiltYet) as caught:
        make_plan(spec)
    assert str(caught.value) == (
        "this campaign needs conversations (evals a, b); plan mode (evals c); judges (evals b), not yet built"
    )


def test_problems_of_spec_skill_evals_and_inputs_are_told_together(tmp_path: Path) -> None:
    spec = trial(tmp_path, {"id": "a", "prompt": " ", "files": [".claude/skills/tables/x"]})
    write(spec.skill / "evals/.claude/skills/tables/x", "x")
    (spec.skill / "SKILL.md").rename(spec.skill / "skill.md")
    wrong = with_fields(
        spec,
        contrasts=[{"treatment": "with_skill", "control": "nothing"}],
        harness_inputs={"scirpt": tmp_path / "script.json"},
    )
    with pytest.raises(InvalidInput) as caught:
        make_plan(wrong)
    assert [(Path(problem.file).name, problem.where) for problem in caught.value.problems] == [
        ("campaign", "contrasts[0].control"),
        ("campaign", "harness_inputs.scirpt"),
        ("campaign", "harness_inputs.script"),
        ("skill.md", ""),
        ("evals.json", "evals[0].prompt"),
    ]


def test_a_fixture_must_not_lie_where_the_skill_is_staged(tmp_path: Path) -> None:
    write(tmp_path / "tables/evals/.claude/skills/tables/x", "x")
    spec = trial(tmp_path, {"id": "a", "prompt": "p", "files": [".claude/skills/tables/x"]})
    with pytest.raises(InvalidInput, match=r"overlaps '.claude/skills/tables', where a skill is staged"):
        make_plan(spec)


def test_evals_among_the_staged_files_are_refused(tmp_path: Path) -> None:
    spec = trial(tmp_path)
    path = (spec.skill / "evals/evals.json").rename(spec.skill / "cases.json")
    with pytest.raises(InvalidInput, match="would be staged with the skill"):
        make_plan(with_fields(spec, evals=path))


def test_codebases_that_cannot_be_resolved_are_told_together(tmp_path: Path) -> None:
    code = repository(tmp_path / "code")
    entries = [
        {"id": ref, "prompt": "p", "codebase": {"url": code.as_uri(), "ref": ref}} for ref in ("gone", "work", "v2")
    ]
    with pytest.raises(InvalidInput) as caught:
        make_plan(trial(tmp_path, *entries))
    assert [(problem.where, problem.value) for problem in caught.value.problems] == [
        ("evals[0].codebase", "gone"),
        ("evals[2].codebase", "v2"),
    ]


def test_an_unknown_harness_is_told_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="no harness 'clod'; known: claude-code"):
        make_plan(with_fields(trial(tmp_path), harness="clod"))


def test_what_a_person_should_know_is_warned_about(tmp_path: Path) -> None:
    spec = with_fields(trial(tmp_path), env={"API_KEY": "x"}, baseline_ref="v1")
    text = json.loads((spec.skill / "evals/evals.json").read_text())
    write(spec.skill / "evals/evals.json", json.dumps({**text, "skill_name": "other"}))
    skill(spec.skill, description="")
    warnings = " / ".join(make_plan(spec).warnings)
    for words in ("written for skill 'other', but tests 'tables'", "API_KEY looks like a secret", "baseline_ref has no",
                  "has no description"):  # fmt: skip
        assert words in warnings


def test_relative_paths_start_at_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = trial(tmp_path)
    monkeypatch.chdir(tmp_path)
    relative = with_fields(spec, skill="tables", harness_inputs={"script": "script.json"})
    assert make_plan(relative) == make_plan(spec)
