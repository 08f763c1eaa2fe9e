"""Environments: fresh, private clones that name neither template nor trial."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from skilltrial.data.errors import StoreConflict
from skilltrial.data.git import git_text
from skilltrial.data.store import CampaignFolder, Store
from skilltrial.tasks.staging.provision import provision
from skilltrial.tasks.staging.template import build
from tests.staging.building import (
    EVAL,
    SKILL_FILES,
    TREATMENT,
    frozen_skill,
    git_codebase,
    make_plan,
    make_repository,
    plain_git,
    tree_of,
    write_files,
)


@pytest.fixture
def template(folder: CampaignFolder, tmp_path: Path) -> Path:
    """A template with a codebase that ignores, a skill, and fixtures with a repository of their own."""
    source, fixtures = tmp_path / "source", tmp_path / "fixtures"
    revision = make_repository(source, {".gitignore": ".claude\n*.csv\n", "a": "1", "run.sh": "x"})
    git_text("branch", "other", cwd=source)
    make_repository(fixtures / "sub", {"f": "1"})
    write_files(fixtures, {"in.csv": "x"})
    (fixtures / "empty").mkdir()
    skill = frozen_skill(folder, tmp_path / "skill", SKILL_FILES)
    plan = make_plan(folder, codebase=git_codebase(source, revision), skills=[skill], fixtures=fixtures)
    build(plan, plan.template(EVAL, TREATMENT), folder)
    return folder.template(EVAL, TREATMENT)


def test_an_environment_is_the_template_down_to_ignored_files_and_inner_repositories(
    template: Path, store: Store
) -> None:
    workspace = store.workspace("w1")

    baseline = provision(template, workspace)

    expected = tree_of(template / "repository")
    found = tree_of(workspace.project)
    assert {name: entry for name, entry in found.items() if "/.git/" not in name} == expected
    assert set(expected) == {
        *(".claude/skills/csv-tidy/SKILL.md", ".claude/skills/csv-tidy/scripts/run.sh"),
        *(".gitignore", "a", "in.csv", "run.sh", "sub/f"),
    }
    assert plain_git("rev-parse", "HEAD", cwd=workspace.project).strip() == baseline
    assert plain_git("status", "--porcelain", "--untracked-files=all", cwd=workspace.project) == ""
    assert plain_git("log", "--format=%s", cwd=workspace.project / "sub") == "First\n"
    assert list((workspace.project / "empty").iterdir()) == []


def test_the_agent_can_commit_and_sees_one_branch_and_no_remote(template: Path, store: Store) -> None:
    workspace = store.workspace("w1")
    provision(template, workspace)
    project = workspace.project
    (project / "new").write_text("x")

    plain_git("add", "--all", cwd=project)
    plain_git("commit", "-m", "Mine", cwd=project)

    assert plain_git("log", "--format=%an: %s", cwd=project).splitlines() == [
        "Developer: Mine",
        "Developer: Start",
        "Developer: First",
    ]
    assert plain_git("for-each-ref", "--format=%(refname)", cwd=project) == "refs/heads/main\n"
    assert plain_git("remote", cwd=project) == ""


def test_no_file_of_a_workspace_names_the_store_the_condition_or_the_trial(
    template: Path, store: Store, folder: CampaignFolder
) -> None:
    workspace = store.workspace("w1")
    provision(template, workspace)

    words = [str(folder.root).encode(), TREATMENT.encode(), b"skilltrial", b"baseline", b"template"]
    for path in workspace.root.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        assert [word for word in words if word in content or word in path.name.encode()] == [], path


def test_only_the_owner_may_look_into_a_workspace(template: Path, store: Store) -> None:
    workspace = store.workspace("w1")
    mask = os.umask(0)
    try:
        provision(template, workspace)
    finally:
        os.umask(mask)

    for path in (workspace.root, workspace.project, workspace.home, workspace.config, workspace.tmp):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700, path


def test_overwriting_every_object_of_an_environment_leaves_the_template_whole(template: Path, store: Store) -> None:
    first, second = store.workspace("w1"), store.workspace("w2")
    provision(template, first)
    for path in (first.project / ".git" / "objects").rglob("*"):
        if path.is_file():
            path.chmod(0o644)
            path.write_bytes(b"broken")

    baseline = provision(template, second)

    git_text("fsck", "--strict", cwd=template / "repository")
    assert plain_git("rev-parse", "HEAD", cwd=second.project).strip() == baseline


def test_a_workspace_is_used_once(template: Path, store: Store) -> None:
    provision(template, store.workspace("w1"))

    with pytest.raises(StoreConflict, match="exists already"):
        provision(template, store.workspace("w1"))


def test_an_unfinished_template_is_refused(tmp_path: Path, store: Store) -> None:
    with pytest.raises(StoreConflict, match="no finished template"):
        provision(tmp_path / "nothing", store.workspace("w1"))
