"""One cached checkout for each distinct codebase, from which every template starts.

A codebase with history becomes a bare repository that holds nothing but the history of its revision and the tags
in it: what came later in the source, a fix perhaps, can be found by no agent. A folder without history is copied.
Submodules are not fetched.
"""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from skilltrial.data.digests import tree_digest
from skilltrial.data.errors import GitFailed, Terminal
from skilltrial.data.git import git, git_text
from skilltrial.data.plan import PlannedCodebase
from skilltrial.data.store import scratch_path
from skilltrial.tasks.planning.sources import not_in_codebase
from skilltrial.tasks.planning.trees import copy_tree

BRANCH: Final = "work"
"""The one branch of a cached repository; a template renames it to the codebase's own."""

_TREE_PREFIX: Final = "tree-"
_FETCH_TIMEOUT_S: Final = 3600.0


class CodebaseChanged(Terminal):
    """What a codebase's source holds now is not what was planned."""


def checkout(planned: PlannedCodebase, target: Path) -> None:
    """Make the cached checkout of a codebase at `target`, unless it is there. Safe to call from several threads.

    Raises `GitFailed` when the source cannot be read, `CodebaseChanged` when it no longer holds what was planned.
    """
    with _locked(target):
        if target.exists():
            return
        scratch = scratch_path(target)
        try:
            if planned.revision is None:
                _copy_folder(planned, scratch)
            else:
                _fetch_history(planned.provenance.path, planned.revision, scratch)
            scratch.rename(target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _copy_folder(planned: PlannedCodebase, scratch: Path) -> None:
    scratch.mkdir()
    source = Path(planned.provenance.path)
    if not source.is_dir():
        raise CodebaseChanged(f"codebase {source}: there is no such folder any more; plan the campaign again")
    copy_tree(source, scratch, skip=not_in_codebase)
    found = _TREE_PREFIX + tree_digest(scratch, skip=not_in_codebase)
    if found != planned.key:
        raise CodebaseChanged(f"codebase {source} has changed since it was planned; plan the campaign again")


def _fetch_history(source: str, revision: str, scratch: Path) -> None:
    scratch.mkdir()
    git("init", "--quiet", "--bare", "--initial-branch", BRANCH, ".", cwd=scratch)
    trust = scratch / "trust"
    # the other end of a local fetch reads no option given here, but it does read this file
    trust.write_text("[safe]\n\tdirectory = *\n")
    env = {"GIT_CONFIG_GLOBAL": str(trust)}
    try:
        _fetch(source, [revision], scratch, env)
    except GitFailed:
        _fetch_all(source, revision, scratch, env)
    git("update-ref", f"refs/heads/{BRANCH}", revision, cwd=scratch)
    _fetch_tags(source, scratch, env)
    trust.unlink()
    (scratch / "FETCH_HEAD").unlink(missing_ok=True)


def _fetch(source: str, wanted: list[str], folder: Path, env: dict[str, str]) -> None:
    arguments = ("fetch", "--quiet", "--no-tags", "--update-shallow", "--no-recurse-submodules", "--", source)
    git(*arguments, *wanted, cwd=folder, env=env, timeout_s=_FETCH_TIMEOUT_S)


def _fetch_all(source: str, revision: str, folder: Path, env: dict[str, str]) -> None:
    """For servers that hand out only what a ref names: everything is fetched, then all but the history dropped."""
    _fetch(source, ["+refs/heads/*:refs/fetched/heads/*", "+refs/tags/*:refs/fetched/tags/*"], folder, env)
    try:
        git("update-ref", f"refs/heads/{BRANCH}", revision, cwd=folder)
    except GitFailed as error:
        raise CodebaseChanged(f"codebase {source} no longer holds commit {revision}") from error
    fetched = git("for-each-ref", "--format=delete %(refname)", "refs/fetched/", cwd=folder)
    git("update-ref", "--stdin", cwd=folder, stdin=fetched)
    (folder / "FETCH_HEAD").unlink(missing_ok=True)
    git("repack", "-a", "-d", "--quiet", cwd=folder, timeout_s=_FETCH_TIMEOUT_S)
    git("prune", "--expire=now", cwd=folder)


def _fetch_tags(source: str, folder: Path, env: dict[str, str]) -> None:
    """Take over the tags whose commits are part of the history, as version tools expect them."""
    listed = git_text("ls-remote", "--tags", "--", source, cwd=folder, env=env, timeout_s=_FETCH_TIMEOUT_S)
    commits: dict[str, str] = {}
    for line in listed.splitlines():
        commit, ref = line.split("\t", 1)
        commits[ref.removesuffix("^{}")] = commit  # the peeled line of an annotated tag comes after its own
    asked = "".join(f"{commit}\n" for commit in commits.values()).encode()
    answers = git_text("cat-file", "--batch-check", cwd=folder, stdin=asked).splitlines()
    known = [ref for ref, answer in zip(commits, answers, strict=True) if not answer.endswith(" missing")]
    if known:
        _fetch(source, [f"+{ref}:{ref}" for ref in known], folder, env)


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_name(f".{target.name}.lock").open("a+b") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
