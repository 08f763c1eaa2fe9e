"""Templates: what an environment starts from, byte for byte, in both arms."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from skilltrial.data.git import git_text
from skilltrial.data.plan import CampaignPlan
from skilltrial.data.store import CampaignFolder
from skilltrial.data.template import TemplateRecord
from skilltrial.tasks.staging.layers import CannotStage
from skilltrial.tasks.staging.template import BASELINE_REF, build, template_record
from tests.staging.building import (
    CONTROL,
    EVAL,
    SKILL_FILES,
    TREATMENT,
    commit_all,
    folder_codebase,
    frozen_skill,
    git_codebase,
    make_plan,
    make_repository,
    tree_of,
    write_files,
)

SKILL = ".claude/skills/csv-tidy"


def build_arm(plan: CampaignPlan, folder: CampaignFolder, arm: str) -> tuple[Path, TemplateRecord]:
    record = build(plan, plan.template(EVAL, arm), folder)
    return folder.template(EVAL, arm) / "repository", record


def committed(repository: Path) -> list[str]:
    listed = git_text("ls-tree", "-r", "--name-only", "-z", BASELINE_REF, cwd=repository)
    return sorted(listed.split("\0")[:-1])


def test_both_arms_are_equal_apart_from_the_skill(folder: CampaignFolder, tmp_path: Path) -> None:
    skill = frozen_skill(folder, tmp_path / "skill", SKILL_FILES)
    fixtures = write_files(tmp_path / "fixtures", {"data/in.csv": "a,b\n", "run.sh": "x"})
    plan = make_plan(folder, skills=[skill], fixtures=fixtures)

    with_skill, _ = build_arm(plan, folder, TREATMENT)
    without, _ = build_arm(plan, folder, CONTROL)

    shared = {"data/in.csv": ("file", b"a,b\n"), "run.sh": ("executable", b"x")}
    assert tree_of(without) == shared
    assert tree_of(with_skill) == shared | {
        f"{SKILL}/SKILL.md": ("file", SKILL_FILES["SKILL.md"].encode()),
        f"{SKILL}/scripts/run.sh": ("executable", SKILL_FILES["scripts/run.sh"].encode()),
    }
    assert committed(without) == sorted(shared)
    assert (with_skill / ".git/config").read_text() == (without / ".git/config").read_text()
    assert (with_skill / ".git/HEAD").read_text() == (without / ".git/HEAD").read_text() == "ref: refs/heads/work\n"


def test_the_same_inputs_become_the_same_commit(folder: CampaignFolder, tmp_path: Path) -> None:
    other = CampaignFolder(tmp_path / "elsewhere" / "another-name")
    other.root.mkdir(parents=True)
    fixtures = write_files(tmp_path / "fixtures", {"in.csv": "a,b\n"})
    found = []
    for campaign in (folder, other):
        skill = frozen_skill(campaign, tmp_path / "skill", SKILL_FILES)
        found.append(build_arm(make_plan(campaign, skills=[skill], fixtures=fixtures), campaign, TREATMENT)[1])

    assert found[0] == found[1]
    assert (
        found[0].baseline == "040b99ce8e422a189a947e8a87c37993f6947b33"
    )  # pinned: another id would make every cell of every campaign a new one


def test_a_codebase_keeps_its_history_branch_and_tags_and_gets_one_unremarkable_commit(
    folder: CampaignFolder, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    make_repository(source, {"a": "1"}, branch="develop")
    git_text("tag", "v1", cwd=source)
    revision = commit_all(source, "Second")
    plan = make_plan(folder, codebase=git_codebase(source, revision, "develop"))

    repository, record = build_arm(plan, folder, CONTROL)

    assert git_text("log", "--format=%s", cwd=repository).splitlines() == ["Start", "Second", "First"]
    assert git_text("for-each-ref", "--format=%(refname)", cwd=repository).splitlines() == [
        "refs/heads/develop",
        BASELINE_REF,
        "refs/tags/v1",
    ]
    assert record.branch == "develop"
    assert record.baseline == git_text("rev-parse", "HEAD", cwd=repository)
    assert git_text("rev-parse", "HEAD^", cwd=repository) == revision
    dates = git_text("log", "--format=%cI", "-2", cwd=repository).splitlines()
    assert dates[0] == dates[1]
    assert git_text("remote", cwd=repository) == ""
    assert git_text("status", "--porcelain", cwd=repository) == ""


def test_a_folder_codebase_leaves_out_what_it_ignores_but_not_what_is_staged(
    folder: CampaignFolder, tmp_path: Path
) -> None:
    files = {".gitignore": ".claude\n*.csv\nbuild/\n", "build/x": "no", "old.csv": "no", "a": "1"}
    source = write_files(tmp_path / "source", {**files, ".claude/settings.local.json": "{}"})
    skill = frozen_skill(folder, tmp_path / "skill", SKILL_FILES)
    fixtures = write_files(tmp_path / "fixtures", {"in[1]*.csv": "x"})
    plan = make_plan(folder, codebase=folder_codebase(source), skills=[skill], fixtures=fixtures)

    repository, _ = build_arm(plan, folder, TREATMENT)

    assert committed(repository) == [
        f"{SKILL}/SKILL.md",
        f"{SKILL}/scripts/run.sh",
        ".gitignore",
        "a",
        "in[1]*.csv",
    ]


def test_hostile_configuration_of_the_operator_changes_nothing(
    folder: CampaignFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixtures = write_files(tmp_path / "fixtures", {"unix.txt": "a\nb\n", "dos.txt": "a\r\nb\r\n", "x.log": "l"})
    plan = make_plan(folder, fixtures=fixtures)
    _, expected = build_arm(plan, folder, CONTROL)
    home = tmp_path / "home-of-operator"
    hook = "#!/bin/sh\ntouch ran\nexit 1\n"
    write_files(home, {"hooks/pre-commit": hook, "template/hooks/post-checkout": hook, "ignored": "*.log\n"})
    for path in ("hooks/pre-commit", "template/hooks/post-checkout"):
        (home / path).chmod(0o755)
    (home / ".gitconfig").write_text(
        f"[core]\nhooksPath={home}/hooks\nautocrlf=true\nexcludesFile={home}/ignored\n"
        f"[commit]\ngpgSign=true\n[gpg]\nprogram=/bin/false\n[init]\ntemplateDir={home}/template\n"
        "defaultBranch=odd\n[user]\nname=Operator\n[clone]\ndefaultRemoteName=up\n"
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "commit.gpgSign")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "true")
    second = CampaignFolder(tmp_path / "second")
    second.root.mkdir()

    repository, record = build_arm(make_plan(second, fixtures=fixtures), second, CONTROL)

    assert record == expected
    assert committed(repository) == ["dos.txt", "unix.txt", "x.log"]
    assert not (repository / ".git" / "hooks").exists()
    assert not list(tmp_path.rglob("ran"))


def test_a_codebase_that_brings_the_skill_along_is_told_of_in_both_arms(folder: CampaignFolder, tmp_path: Path) -> None:
    source = tmp_path / "source"
    files = {f"{SKILL}/SKILL.md": "old", f"{SKILL}/stale": "x", "packages/p/.claude/skills/other/SKILL.md": "o"}
    revision = make_repository(source, files)
    skill = frozen_skill(folder, tmp_path / "skill", SKILL_FILES)
    plan = make_plan(folder, codebase=git_codebase(source, revision), skills=[skill])

    treated, with_skill = build_arm(plan, folder, TREATMENT)
    control, without = build_arm(plan, folder, CONTROL)

    assert with_skill.codebase_skills == without.codebase_skills == ("csv-tidy", "other")
    assert sorted(name for name in tree_of(treated) if name.startswith(SKILL)) == [
        f"{SKILL}/SKILL.md",
        f"{SKILL}/scripts/run.sh",
    ]
    assert (control / SKILL / "SKILL.md").read_text() == "old"


def test_fixtures_replace_files_of_the_codebase(folder: CampaignFolder, tmp_path: Path) -> None:
    source = tmp_path / "source"
    revision = make_repository(source, {"a": "old", "target": "kept"})
    (source / "link").symlink_to("target")
    revision = commit_all(source, "Link")
    fixtures = write_files(tmp_path / "fixtures", {"a": "new", "link": "file now"})
    plan = make_plan(folder, codebase=git_codebase(source, revision), fixtures=fixtures)

    repository, _ = build_arm(plan, folder, CONTROL)

    assert tree_of(repository) == {
        "a": ("file", b"new"),
        "link": ("file", b"file now"),
        "target": ("file", b"kept"),
    }


@pytest.mark.parametrize("link", ["..", "/", "nowhere/else"])
def test_a_link_of_the_codebase_never_leads_staging_out_of_the_repository(
    folder: CampaignFolder, tmp_path: Path, link: str
) -> None:
    source = tmp_path / "source"
    make_repository(source, {"a": "1"})
    (source / "data").symlink_to(link)
    revision = commit_all(source, "Link")
    fixtures = write_files(tmp_path / "fixtures", {"data/in.csv": "x"})
    plan = make_plan(folder, codebase=git_codebase(source, revision), fixtures=fixtures)

    with pytest.raises(CannotStage, match=r"^tidy/without_skill: data/in\.csv: 'data' is no folder"):
        build_arm(plan, folder, CONTROL)

    assert list(folder.template(EVAL, CONTROL).parent.iterdir()) == []


def test_repositories_and_empty_folders_among_the_fixtures_are_kept_beside_the_commit(
    folder: CampaignFolder, tmp_path: Path
) -> None:
    fixtures = tmp_path / "fixtures"
    make_repository(fixtures / "sub", {"f": "1"})
    (fixtures / "empty").mkdir()
    plan = make_plan(folder, fixtures=fixtures)

    repository, record = build_arm(plan, folder, CONTROL)

    assert record.extras
    assert committed(repository) == ["sub/f"]
    extras = folder.template(EVAL, CONTROL) / "extras"
    assert (extras / "sub/.git/HEAD").read_text() == "ref: refs/heads/main\n"
    assert (extras / "empty").is_dir()


def test_a_template_is_built_once_and_again_only_when_its_digest_changes(
    folder: CampaignFolder, tmp_path: Path
) -> None:
    first = make_plan(folder, fixtures=write_files(tmp_path / "one", {"a": "1"}))
    repository, record = build_arm(first, folder, CONTROL)
    inode = repository.stat().st_ino

    assert build_arm(first, folder, CONTROL)[1] == record
    assert repository.stat().st_ino == inode

    _, other = build_arm(make_plan(folder, fixtures=write_files(tmp_path / "two", {"a": "2"})), folder, CONTROL)
    assert tree_of(repository) == {"a": ("file", b"2")}
    assert other.baseline != record.baseline
    assert template_record(folder.template(EVAL, CONTROL)) == other
    assert sorted(path.name for path in folder.template(EVAL, CONTROL).parent.iterdir()) == [CONTROL]


def test_submodules_are_told_of_and_not_fetched(folder: CampaignFolder, tmp_path: Path) -> None:
    inner, source = tmp_path / "inner", tmp_path / "source"
    make_repository(inner, {"f": "1"})
    make_repository(source, {"a": "1"})
    git_text("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "lib", cwd=source)
    plan = make_plan(folder, codebase=git_codebase(source, commit_all(source, "Sub")))

    repository, record = build_arm(plan, folder, CONTROL)

    assert record.notes == ("submodules_not_fetched",)
    assert list((repository / "lib").iterdir()) == []


def test_nothing_in_a_template_says_trial_but_its_own_ref(folder: CampaignFolder, tmp_path: Path) -> None:
    plan = make_plan(folder, fixtures=write_files(tmp_path / "fixtures", {"a": "1"}))
    repository, _ = build_arm(plan, folder, CONTROL)

    shown = subprocess.run(
        ["git", "log", "--all", "--format=fuller"], cwd=repository, capture_output=True, text=True, check=True
    ).stdout

    assert shown.splitlines()[1:] == [
        "Author:     Developer <developer@localhost>",
        "AuthorDate: Sat Jan 1 00:00:00 2000 +0000",
        "Commit:     Developer <developer@localhost>",
        "CommitDate: Sat Jan 1 00:00:00 2000 +0000",
        "",
        "    Start",
    ]
