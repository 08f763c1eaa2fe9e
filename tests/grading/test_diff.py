"""What an agent changed, whatever it did to its repository."""

from __future__ import annotations

import os
import shutil
import socket
import string
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skilltrial.data.git import git_text
from skilltrial.tasks.grading.diff import PATCH_LIMIT, CannotMeasure
from tests.grading.conftest import Ground
from tests.staging.building import make_repository, plain_git, tree_of, write_files


def test_an_untouched_environment_has_no_changes(ground: Ground) -> None:
    diff = ground.diff()

    assert diff.files == ()
    assert (diff.lines_added, diff.lines_removed, diff.hunks) == (0, 0, 0)
    assert diff.tree == ground.template.tree
    assert (ground.attempt.outputs / "diff.patch").read_bytes() == b""


def test_additions_changes_deletions_and_modes_are_told_apart(ground: Ground) -> None:
    lines = (ground.project / "app.py").read_text().splitlines(keepends=True)
    lines[1], lines[15] = "changed\n", "changed\nmore\n"
    write_files(ground.project, {"app.py": "".join(lines), "new/file.txt": "one\ntwo\n", "bin": b"a\0b"})
    (ground.project / "docs/read me.md").unlink()
    (ground.project / "run.sh").chmod(0o644)
    (ground.project / "link").symlink_to("app.py")

    assert ground.changes() == {
        "app.py": ("modified", 3, 2, 2),
        "bin": ("added", None, None, 0),
        "docs/read me.md": ("deleted", 0, 1, 1),
        "link": ("added", 1, 0, 1),
        "new/file.txt": ("added", 2, 0, 1),
        "run.sh": ("modified", 0, 0, 0),
    }
    diff = ground.diff()
    assert (diff.lines_added, diff.lines_removed, diff.hunks) == (6, 3, 5)
    assert [file.path for file in diff.files if file.binary] == ["bin"]


def test_a_renamed_file_is_one_deleted_and_one_added(ground: Ground) -> None:
    (ground.project / "app.py").rename(ground.project / "main.py")

    assert ground.changes() == {"app.py": ("deleted", 0, 20, 1), "main.py": ("added", 20, 0, 1)}


def test_a_file_that_became_a_link_counts_its_hunks_once_for_each_part(ground: Ground) -> None:
    (ground.project / "app.py").unlink()
    (ground.project / "app.py").symlink_to("run.sh")
    write_files(ground.project, {"b.txt": "x\n"})

    assert ground.changes() == {"app.py": ("modified", 1, 20, 2), "b.txt": ("added", 1, 0, 1)}


def test_content_that_looks_like_a_patch_is_not_counted_as_one(ground: Ground) -> None:
    write_files(ground.project, {"x": "@@ -1 +1 @@\ndiff --git a/x b/x\n", "y": "1\n"})

    assert ground.changes() == {"x": ("added", 2, 0, 1), "y": ("added", 1, 0, 1)}


def test_what_the_agent_commits_counts_like_what_it_leaves_lying(ground: Ground) -> None:
    write_files(ground.project, {"committed": "1\n", "loose": "1\n"})
    plain_git("add", "committed", cwd=ground.project)
    plain_git("commit", "-m", "Mine", cwd=ground.project)
    plain_git("checkout", "--quiet", "--orphan", "other", cwd=ground.project)

    assert ground.changes() == {"committed": ("added", 1, 0, 1), "loose": ("added", 1, 0, 1)}


@pytest.mark.parametrize("damage", ["delete", "empty", "file", "hostile"])
def test_the_agents_git_data_is_neither_needed_nor_trusted(ground: Ground, damage: str, tmp_path: Path) -> None:
    write_files(ground.project, {"new": "1\n"})
    git_folder = ground.project / ".git"
    if damage == "hostile":
        ran = tmp_path / "ran"
        with (git_folder / "config").open("a") as config:
            config.write(f'[core]\nfsmonitor = touch {ran}\n[filter "x"]\nclean = touch {ran}\n[alias]\nadd = !false\n')
        (git_folder / "info").mkdir(exist_ok=True)
        (git_folder / "info/exclude").write_text("*\n")
        write_files(ground.project, {".gitattributes": "* filter=x\n"})
    else:
        shutil.rmtree(git_folder)
        if damage == "empty":
            git_folder.mkdir()
        if damage == "file":
            git_folder.write_text("gitdir: /nowhere\n")

    changes = ground.changes()

    assert changes["new"] == ("added", 1, 0, 1)
    assert list(tmp_path.glob("ran")) == []


def test_repositories_that_the_agent_made_count_file_by_file(ground: Ground) -> None:
    make_repository(ground.project / "committed", {"f": "1\n", "deep/g": "1\n", "x.log": "ignored\n"})
    make_repository(ground.project / "committed/inner", {"h": "1\n"})
    git_text("init", "--quiet", "fresh", cwd=ground.project)
    write_files(ground.project / "fresh", {"f": "1\n"})
    git_text("init", "--quiet", "empty", cwd=ground.project)
    git_text("init", "--quiet", "ignored/hidden", cwd=ground.project)
    write_files(ground.project / "ignored/hidden", {"f": "1\n"})

    assert sorted(ground.changes()) == ["committed/deep/g", "committed/f", "committed/inner/h", "fresh/f"]
    assert ground.diff().notes == ("nested_repositories",)


def test_a_removed_skill_counts_and_ignored_files_do_not(ground: Ground) -> None:
    shutil.rmtree(ground.project / ".claude")
    write_files(ground.project, {"ignored/x": "1\n", "y.log": "1\n"})

    assert ground.changes() == {
        ".claude/skills/csv-tidy/SKILL.md": ("deleted", 0, 4, 1),
        ".claude/skills/csv-tidy/scripts/run.sh": ("deleted", 0, 2, 1),
    }


def test_the_agents_ignore_file_is_honoured_and_is_a_change_itself(ground: Ground) -> None:
    write_files(ground.project, {".gitignore": "ignored/\n*.log\n*.txt\n", "new.txt": "1\n", "app.py": "changed\n"})

    assert ground.changes() == {".gitignore": ("modified", 1, 0, 1), "app.py": ("modified", 1, 20, 1)}


def test_attributes_that_the_agent_writes_hide_nothing_but_the_baselines_own_count(ground: Ground) -> None:
    write_files(ground.project, {".gitattributes": "* -diff\n", "app.py": "changed\n", "a.lock": "2\n"})

    assert ground.changes() == {
        ".gitattributes": ("modified", 1, 1, 1),
        "a.lock": ("modified", None, None, 0),
        "app.py": ("modified", 1, 20, 1),
    }


def test_sockets_and_pipes_are_passed_over(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ground.project)
    os.mkfifo("pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        write_files(ground.project, {"new": "1\n"})
        (ground.project / "app.py").unlink()
        os.mkfifo("app.py")

        changes = ground.changes()

    assert changes["new"] == ("added", 1, 0, 1)
    assert set(changes) <= {"new", "app.py"}


def test_neither_the_environment_nor_the_template_is_written_to(ground: Ground) -> None:
    write_files(ground.project, {"new": "1\n", "app.py": "changed\n"})

    def snapshot(root: Path) -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}

    before = snapshot(ground.project), snapshot(ground.repository)
    first = ground.diff()

    assert (snapshot(ground.project), snapshot(ground.repository)) == before
    assert ground.diff() == first


def test_a_long_patch_is_cut_at_a_line_and_says_so(ground: Ground) -> None:
    write_files(ground.project, {"big": "0123456789abcde\n" * 100_000})

    diff = ground.diff()

    patch = (ground.attempt.outputs / "diff.patch").read_bytes()
    body, marker = patch[: patch.rindex(b"[patch cut")], patch[patch.rindex(b"[patch cut") :]
    assert diff.lines_added == 100_000
    assert diff.patch.truncated
    assert diff.patch.bytes == len(patch)
    assert diff.patch.path == "outputs/diff.patch"
    assert PATCH_LIMIT - 20 < len(body) <= PATCH_LIMIT
    assert body.endswith(b"+0123456789abcde\n")
    assert marker == f"[patch cut here: {len(body)} of {len(HEADER) + 1_700_000} bytes kept]\n".encode()
    assert body.startswith(HEADER)


def test_an_environment_that_is_gone_is_an_error(ground: Ground) -> None:
    shutil.rmtree(ground.project)

    with pytest.raises(CannotMeasure, match="cannot be measured any more"):
        ground.diff()


@pytest.mark.parametrize("name", ["é ü.txt", "new\nline", 'quo"te', "tab\there", "-dash", ":(glob)x", "back\\slash"])
def test_any_file_name_is_told_as_it_is(ground: Ground, name: str) -> None:
    write_files(ground.project, {name: "1\n"})

    assert ground.changes() == {name: ("added", 1, 0, 1)}


def test_a_name_that_is_not_utf8_is_told_with_its_bytes(ground: Ground) -> None:
    Path(os.fsdecode(os.fsencode(ground.project) + b"/\xff\xfe")).write_bytes(b"1\n")

    assert ground.changes() == {r"\xff\xfe": ("added", 1, 0, 1)}


HEADER = (
    b"diff --git a/big b/big\nnew file mode 100644\nindex 0000000..6702daa\n"
    b"--- /dev/null\n+++ b/big\n@@ -0,0 +1,100000 @@\n"
)
NAMES = st.text(alphabet=string.ascii_letters + " \n\t\"'\\*?[]é€", min_size=1, max_size=12).filter(
    lambda name: name.lower() not in (".", "..", ".git")
)


@given(files=st.dictionaries(NAMES.map(lambda name: f"new/{name}"), st.integers(0, 5), min_size=1, max_size=8))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_new_file_counts_all_its_lines(ground: Ground, files: dict[str, int]) -> None:
    shutil.rmtree(ground.project / "new", ignore_errors=True)
    write_files(ground.project, {name: "line\n" * count for name, count in files.items()})

    expected = {name: ("added", count, 0, min(count, 1)) for name, count in files.items()}
    assert ground.changes() == expected
    assert {name for name in tree_of(ground.project) if name.startswith("new/")} == set(files)
