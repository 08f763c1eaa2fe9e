"""Cached checkouts: the history of one revision and nothing else, from real repositories and folders."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from skilltrial.data.errors import GitFailed
from skilltrial.data.git import git_text
from skilltrial.tasks.staging.codebase import CodebaseChanged, _fetch_all, checkout
from tests.staging.building import commit_all, folder_codebase, git_codebase, make_repository, tree_of, write_files


def log(repository: Path) -> list[str]:
    return git_text("log", "--format=%s", "--all", cwd=repository).splitlines()


def test_holds_the_history_up_to_the_revision_and_nothing_that_came_later(tmp_path: Path) -> None:
    source = tmp_path / "source"
    make_repository(source, {"a": "1"})
    git_text("tag", "v1", cwd=source)
    git_text("tag", "-a", "v1-annotated", "-m", "One", cwd=source)
    write_files(source, {"a": "2"})
    revision = commit_all(source, "Second")
    write_files(source, {"a": "3", "fix": "secret"})
    later = commit_all(source, "The fix")
    git_text("tag", "v3", cwd=source)

    checkout(git_codebase(source, revision), tmp_path / "cache" / revision)

    cached = tmp_path / "cache" / revision
    assert log(cached) == ["Second", "First"]
    assert git_text("tag", cwd=cached).splitlines() == ["v1", "v1-annotated"]
    assert git_text("cat-file", "-t", "v1-annotated", cwd=cached) == "tag"
    assert git_text("remote", cwd=cached) == ""
    with pytest.raises(GitFailed):
        git_text("cat-file", "-e", later, cwd=cached)


def test_fetching_all_refs_for_an_old_server_still_leaves_no_later_history(tmp_path: Path) -> None:
    source, cached = tmp_path / "source", tmp_path / "cached"
    revision = make_repository(source, {"a": "1"})
    write_files(source, {"fix": "secret"})
    later = commit_all(source, "The fix")
    cached.mkdir()
    git_text("init", "--quiet", "--bare", "--initial-branch", "work", ".", cwd=cached)

    _fetch_all(str(source), revision, cached, {})

    assert log(cached) == ["First"]
    assert git_text("for-each-ref", "--format=%(refname)", cwd=cached) == "refs/heads/work"
    with pytest.raises(GitFailed):
        git_text("cat-file", "-e", later, cwd=cached)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to somebody else")
def test_a_repository_that_belongs_to_somebody_else_can_be_read(tmp_path: Path) -> None:
    source = tmp_path / "source"
    revision = make_repository(source, {"a": "1"})
    for path in (source, *source.rglob("*")):
        os.chown(path, 12345, 12345)

    checkout(git_codebase(source, revision), tmp_path / "cached")

    assert log(tmp_path / "cached") == ["First"]


def test_a_shallow_source_can_be_used(tmp_path: Path) -> None:
    origin, source = tmp_path / "origin", tmp_path / "source"
    make_repository(origin, {"a": "1"})
    revision = commit_all(origin, "Second")
    git_text("clone", "--quiet", "--depth=1", f"file://{origin}", str(source), cwd=tmp_path)

    checkout(git_codebase(source, revision), tmp_path / "cached")

    assert log(tmp_path / "cached") == ["Second"]


def test_a_commit_that_is_gone_is_an_error_that_leaves_nothing_behind(tmp_path: Path) -> None:
    source = tmp_path / "source"
    make_repository(source, {"a": "1"})
    gone = "0123456789" * 4

    with pytest.raises(CodebaseChanged, match=f"no longer holds commit {gone}"):
        checkout(git_codebase(source, gone), tmp_path / "cache" / gone)

    assert [path.name for path in (tmp_path / "cache").iterdir()] == [f".{gone}.lock"]


def test_a_folder_is_copied_with_links_followed_and_without_git_data(tmp_path: Path) -> None:
    source = write_files(tmp_path / "source", {"a": "1", "run.sh": "x", "sub/.git/config": "no"})
    (source / "link").symlink_to("a")
    (source / "dangling").symlink_to("nowhere")
    planned = folder_codebase(source)

    checkout(planned, tmp_path / planned.key)

    assert tree_of(tmp_path / planned.key) == {
        "a": ("file", b"1"),
        "dangling": ("link", b"nowhere"),
        "link": ("file", b"1"),
        "run.sh": ("executable", b"x"),
    }


def test_a_folder_that_changed_after_planning_is_refused(tmp_path: Path) -> None:
    source = write_files(tmp_path / "source", {"a": "1"})
    planned = folder_codebase(source)
    write_files(source, {"a": "2"})

    with pytest.raises(CodebaseChanged, match="has changed since it was planned"):
        checkout(planned, tmp_path / "cache" / planned.key)

    assert not (tmp_path / "cache" / planned.key).exists()


def test_threads_that_want_the_same_checkout_make_it_once(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "cache" / "key"
    planned = git_codebase(source, make_repository(source, {"a": "1"}))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: checkout(planned, target), range(4)))

    assert log(target) == ["First"]
    assert sorted(path.name for path in target.parent.iterdir()) == [".key.lock", "key"]


def test_an_existing_checkout_is_not_fetched_again(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "key"
    planned = git_codebase(source, make_repository(source, {"a": "1"}))
    checkout(planned, target)
    source.rename(tmp_path / "moved")

    checkout(planned, target)

    assert log(target) == ["First"]
