"""Freezing: what was planned is copied, checked, and never read from its live folder again."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path

import pytest

from skilltrial.data.digests import digest, file_digest, tree_digest
from skilltrial.data.errors import StoreConflict
from skilltrial.data.plan import CampaignPlan
from skilltrial.data.spec import CampaignSpec
from skilltrial.data.store import CampaignFolder, Store, read_model
from skilltrial.tasks.planning.freeze import SourceChanged, freeze
from skilltrial.tasks.planning.plan import make_plan
from tests.planning.building import CHECK, commit, evals, repository, skill, trial, write


def snapshot(root: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below a folder: when it was written, and what it holds."""
    return {
        path.relative_to(root).as_posix(): (path.stat().st_mtime_ns, path.read_bytes())
        for path in root.rglob("*")
        if path.is_file()
    }


def full_trial(tmp_path: Path, store: Store) -> tuple[CampaignPlan, CampaignFolder]:
    write(tmp_path / "tables/evals/data/in.csv", "a")
    write(tmp_path / "tables/evals/hidden.py", "h").chmod(0o755)
    write(tmp_path / "tables/scripts/sort.sh", "sort").chmod(0o755)
    check = {**CHECK, "setup_files": ["hidden.py"]}
    plan = make_plan(trial(tmp_path, {"id": "one", "prompt": "p", "files": ["data"], "assertions": [check]}))
    return plan, store.campaign(plan.campaign)


def test_skills_fixtures_held_out_files_and_inputs_are_kept_under_their_digests(tmp_path: Path, store: Store) -> None:
    plan, folder = full_trial(tmp_path, store)
    freeze(plan, folder)
    [skill_digest] = [staged.digest for staged in plan.condition("with_skill").skills]
    staged = folder.source(skill_digest)
    assert {path.relative_to(staged).as_posix() for path in staged.rglob("*")} == {
        "SKILL.md",
        "scripts",
        "scripts/sort.sh",
    }
    assert (staged / "scripts/sort.sh").stat().st_mode & 0o777 == 0o755
    assert (folder.source(plan.evals[0].files_digest) / "data/in.csv").read_text() == "a"
    assert (folder.source(plan.evals[0].heldout_digest) / "hidden.py").read_text() == "h"
    assert file_digest(folder.source(plan.harness.inputs["script"])) == plan.harness.inputs["script"]
    for source in (folder.root / "sources").iterdir():
        assert source.name == (tree_digest(source) if source.is_dir() else file_digest(source))
    assert read_model(folder.plan_path, CampaignPlan) == plan


def test_freezing_again_touches_nothing_even_when_the_live_folders_are_gone(tmp_path: Path, store: Store) -> None:
    plan, folder = full_trial(tmp_path, store)
    freeze(plan, folder)
    before = snapshot(folder.root)
    shutil.rmtree(tmp_path / "tables")
    freeze(plan, folder)
    assert snapshot(folder.root) == before


def test_a_folder_that_is_not_what_was_planned_is_not_kept(tmp_path: Path, store: Store) -> None:
    plan, folder = full_trial(tmp_path, store)
    write(tmp_path / "tables/scripts/sort.sh", "changed")
    with pytest.raises(SourceChanged, match="tables changed while it was copied") as caught:
        freeze(plan, folder)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert list((folder.root / "sources").iterdir()) == []
    assert not folder.plan_path.exists()


def test_a_fixture_that_vanished_is_told_and_leaves_nothing_half_copied(tmp_path: Path, store: Store) -> None:
    plan, folder = full_trial(tmp_path, store)
    shutil.rmtree(tmp_path / "tables/evals/data")
    with pytest.raises(SourceChanged, match="a file of eval 'one'"):
        freeze(plan, folder)
    assert [path.name for path in (folder.root / "sources").iterdir()] == [
        skill.digest for skill in plan.condition("with_skill").skills
    ]


def test_an_old_skill_is_kept_as_the_commit_had_it_even_if_the_ref_moves(tmp_path: Path, store: Store) -> None:
    root = repository(tmp_path / "repository")
    folder = skill(root / "tables", body="Old.")
    evals(folder)
    commit(root)
    write(folder / "SKILL.md", "---\nname: tables\ndescription: d\n---\nNew.\n")
    commit(root)
    spec = CampaignSpec(
        skill=folder,
        mode="revision",
        baseline_ref="HEAD~1",
        harness="scripted",
        harness_inputs={"script": write(tmp_path / "script.json", "{}")},
    )
    plan = make_plan(spec)
    commit(root)  # HEAD~1 is another commit now
    freeze(plan, store.campaign(plan.campaign))
    [old] = plan.condition("old_skill").skills
    assert "Old." in (store.campaign(plan.campaign).source(old.digest) / "SKILL.md").read_text()


def test_a_changed_plan_replaces_the_kept_one_which_stays_readable(tmp_path: Path, store: Store) -> None:
    first, folder = full_trial(tmp_path, store)
    freeze(first, folder)
    write(tmp_path / "tables/SKILL.md", "---\nname: tables\ndescription: d\n---\nnew\n")
    second = make_plan(first.spec)
    freeze(second, folder)
    assert read_model(folder.plan_path, CampaignPlan) == second
    assert [path.name for path in (folder.root / "plans").iterdir()] == [f"{digest(first)[:12]}.json"]
    assert read_model(folder.root / "plans" / f"{digest(first)[:12]}.json", CampaignPlan) == first


@pytest.mark.parametrize("what", ["skill", "mode"])
def test_a_name_that_another_trial_has_is_refused(tmp_path: Path, store: Store, what: str) -> None:
    plan, folder = full_trial(tmp_path, store)
    freeze(plan, folder)
    before = snapshot(folder.root)
    if what == "skill":
        other = make_plan(trial(tmp_path / "elsewhere"))
    else:
        other = make_plan(plan.spec.model_copy(update={"mode": "aa", "name": plan.campaign}))
    assert other.campaign == plan.campaign
    with pytest.raises(StoreConflict, match=f"is a trial of {what} .*--name"):
        freeze(other, folder)
    assert snapshot(folder.root) == before


def test_a_plan_of_another_version_is_not_overwritten(tmp_path: Path, store: Store) -> None:
    plan, folder = full_trial(tmp_path, store)
    write(folder.plan_path, '{"schema_version": 99}')
    with pytest.raises(StoreConflict, match="cannot read"):
        freeze(plan, folder)
    assert folder.plan_path.read_text() == '{"schema_version": 99}'
