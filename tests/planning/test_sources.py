"""Skills from folders and git refs, codebases from folders and URLs, with real repositories."""

from __future__ import annotations

from pathlib import Path

import pytest

from skilltrial.data.digests import tree_digest
from skilltrial.data.errors import InvalidInput
from skilltrial.data.evals import Codebase
from skilltrial.data.git import git, git_text
from skilltrial.data.spec import SkillRef
from skilltrial.tasks.planning.skill import not_staged
from skilltrial.tasks.planning.sources import folder_provenance, opened_skill, planned_codebase
from tests.planning.building import commit, repository, skill, write


def digest_at(path: Path, ref: str | None = None) -> str:
    with opened_skill(SkillRef(path=path, ref=ref)) as (found, _):
        return found.digest


def test_a_skill_at_a_commit_equals_the_folder_then_in_bytes_modes_and_names(tmp_path: Path) -> None:
    root = repository(tmp_path / "repository")
    folder = skill(root / "skills" / "tables")
    write(folder / "scripts/sort.sh", "sort").chmod(0o755)
    write(folder / 'reference/日本 "x"\n.md', "é")
    (folder / "blob.bin").write_bytes(bytes(range(256)))
    first = commit(root)
    then = digest_at(folder)
    write(folder / "SKILL.md", "---\nname: tables\ndescription: new\n---\n")
    commit(root)
    assert digest_at(folder) != then
    assert digest_at(folder, first) == digest_at(folder, "HEAD~1") == then
    with opened_skill(SkillRef(path=folder, ref="HEAD~1")) as (found, provenance):
        assert (found.slug, found.description) == ("tables", "Sorts tables.")
        assert (found.folder / "scripts/sort.sh").stat().st_mode & 0o111
        exported = found.folder
    assert not exported.exists()
    assert (provenance.kind, provenance.ref, provenance.revision) == ("git", "HEAD~1", first)


def test_links_of_an_older_commit_lead_where_they_led_then(tmp_path: Path) -> None:
    root = repository(tmp_path / "repository")
    real = skill(root / ".agents" / "skills" / "tables")
    write(root / "shared/rules.md", "rules").chmod(0o755)
    (real / "rules.md").symlink_to("../../../shared/rules.md")
    (root / ".claude").mkdir()
    (root / ".claude/skills").symlink_to("../.agents/skills")
    first = commit(root)
    then = tree_digest(real, skip=not_staged)
    write(root / "shared/rules.md", "other rules")
    commit(root)
    assert digest_at(root / ".claude/skills/tables", first) == then
    assert digest_at(real, first) == then


def test_a_skill_that_is_gone_from_the_work_tree_can_be_read_at_a_ref(tmp_path: Path) -> None:
    root = repository(tmp_path / "repository")
    skill(root / "old" / "tables")
    commit(root)
    git("rm", "-r", "--quiet", "old", cwd=root)
    commit(root)
    assert len(digest_at(root / "old" / "tables", "HEAD~1")) == 64


def test_a_skill_at_the_root_of_a_repository_can_be_read_at_a_ref(tmp_path: Path) -> None:
    root = skill(repository(tmp_path / "tables"))
    commit(root)
    assert digest_at(root, "HEAD") == digest_at(root)


@pytest.mark.parametrize(("ref", "says"), [("v9", "has no commit"), ("--all", "has no commit"), ("HEAD", "not there")])
def test_a_ref_without_the_skill_is_refused(tmp_path: Path, ref: str, says: str) -> None:
    root = repository(tmp_path / "repository")
    folder = skill(root / "tables")
    with pytest.raises(InvalidInput, match=says):
        digest_at(folder, ref)


def test_a_ref_outside_of_any_repository_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="does not lie in a git repository"):
        digest_at(skill(tmp_path / "tables"), "HEAD")


def test_provenance_tells_revision_dirt_and_origin_without_credentials(tmp_path: Path) -> None:
    root = repository(tmp_path / "repository")
    git("remote", "add", "origin", "https://user:canary@host/x.git", cwd=root)
    folder = skill(root / "tables")
    assert folder_provenance(folder).dirty is True
    revision = commit(root)
    found = folder_provenance(folder)
    assert (found.kind, found.path, found.revision) == ("folder", str(folder.resolve()), revision)
    assert (found.dirty, found.origin) == (False, "https://host/x.git")
    write(folder / "evals/evals.json", "{}")
    write(root / "elsewhere.txt", "x")
    assert folder_provenance(folder).dirty is False
    write(folder / "SKILL.md", "changed")
    assert folder_provenance(folder).dirty is True


def test_a_skill_that_its_repository_ignores_is_dirty(tmp_path: Path) -> None:
    root = repository(tmp_path / "repository", {".gitignore": "tables/\n"})
    assert folder_provenance(skill(root / "tables")).dirty is True


def test_a_skill_outside_of_any_repository_has_no_revision(tmp_path: Path) -> None:
    found = folder_provenance(skill(tmp_path / "tables"))
    assert (found.revision, found.dirty, found.origin) == (None, None, None)


def test_a_folder_codebase_with_history_is_its_commit(tmp_path: Path) -> None:
    root = repository(tmp_path / "code", {"a.txt": "a"})
    git("checkout", "--quiet", "-b", "feature/x", cwd=root)
    revision = commit(root)
    planned = planned_codebase(Codebase(path="code"), tmp_path)
    assert (planned.key, planned.revision, planned.branch) == (revision, revision, "feature/x")
    assert (planned.provenance.path, planned.provenance.dirty) == (str(root.resolve()), False)
    write(root / "new.txt", "x")
    git("checkout", "--quiet", "--detach", cwd=root)
    again = planned_codebase(Codebase(path=str(root)), Path("/"))
    assert (again.key, again.branch, again.provenance.dirty) == (revision, "work", True)


def test_a_bare_repository_is_a_codebase_too(tmp_path: Path) -> None:
    root = repository(tmp_path / "code", {"a.txt": "a"})
    git("clone", "--quiet", "--bare", str(root), "bare.git", cwd=tmp_path)
    planned = planned_codebase(Codebase(path="bare.git"), tmp_path)
    assert planned.key == git_text("rev-parse", "HEAD", cwd=root)
    assert planned.revision == planned_codebase(Codebase(url="bare.git", ref="work"), tmp_path).revision
    assert planned.provenance.dirty is False


def test_a_folder_without_own_history_is_its_content(tmp_path: Path) -> None:
    outside = tmp_path / "plain"
    write(outside / "a.txt", "a")
    root = repository(tmp_path / "repository", {"example/a.txt": "a"})
    plain = planned_codebase(Codebase(path="plain"), tmp_path)
    assert plain.key == f"tree-{tree_digest(outside)}"
    assert (plain.revision, plain.branch) == (None, "work")
    assert planned_codebase(Codebase(path="example"), root).key == plain.key
    git("init", "--quiet", cwd=outside)
    assert planned_codebase(Codebase(path="plain"), tmp_path).key == plain.key
    write(outside / "__pycache__/a.cpython-311.pyc", "left by whoever tried it out")
    assert planned_codebase(Codebase(path="plain"), tmp_path).key == plain.key
    write(outside / "a.txt", "b")
    assert planned_codebase(Codebase(path="plain"), tmp_path).key != plain.key


def test_a_url_codebase_is_a_branch_a_tag_or_a_whole_commit_id(tmp_path: Path) -> None:
    root = repository(tmp_path / "code", {"a.txt": "a"})
    first = commit(root)
    git("tag", "--annotate", "--message", "one", "v1", cwd=root)
    git("tag", "light", cwd=root)
    git("checkout", "--quiet", "-b", "next", cwd=root)
    second = commit(root)
    git("checkout", "--quiet", "work", cwd=root)
    url = root.as_uri()
    found = {
        ref: planned_codebase(Codebase(url=url, ref=ref), tmp_path) for ref in ("next", "work", "v1", "light", second)
    }
    assert {ref: planned.revision for ref, planned in found.items()} == {
        "next": second,
        "work": first,
        "v1": first,
        "light": first,
        second: second,
    }
    assert {ref: planned.branch for ref, planned in found.items()} == {
        "next": "next",
        "work": "work",
        "v1": "work",
        "light": "work",
        second: "work",
    }
    assert found["v1"].key == found["light"].key == found["work"].key
    assert found["v1"].provenance.path == url


def test_a_local_path_as_url_becomes_absolute(tmp_path: Path) -> None:
    repository(tmp_path / "code", {"a.txt": "a"})
    (tmp_path / "evals").mkdir()
    planned = planned_codebase(Codebase(url="../code", ref="work"), tmp_path / "evals")
    assert planned.provenance.path == str((tmp_path / "code").resolve())


@pytest.mark.parametrize("ref", ["gone", "abc1234", "refs/heads/work"])
def test_a_ref_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path, ref: str) -> None:
    root = repository(tmp_path / "code")
    with pytest.raises(ValueError, match=r"needs all 40 digits\); it has work$"):
        planned_codebase(Codebase(url=root.as_uri(), ref=ref), tmp_path)


def test_a_url_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="could not be read: "):
        planned_codebase(Codebase(url=(tmp_path / "gone").as_uri(), ref="work"), tmp_path)
    with pytest.raises(ValueError, match="could not be read"):
        planned_codebase(Codebase(url="--upload-pack=touch canary", ref="work"), tmp_path)
    assert list(tmp_path.iterdir()) == []
