"""A folder of a repository as an older commit has it, written out beside the repository it comes from."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from pathlib import Path

from skilltrial.data.git import git
from skilltrial.tasks.planning.repository import Repository


def export(repository: Repository, revision: str, relative: str, target: Path) -> Path | None:
    """Write `relative` (with `/`, "" for everything) at a commit below `target`; returns where it lies there.

    Modes, links and names are kept byte for byte. What a link points to inside the repository is written
    out too, so that following it finds what the commit had. Null: the commit has nothing at that path.
    """
    index = target / "index"
    tree = target / "tree"
    tree.mkdir(parents=True)
    environment = {"GIT_INDEX_FILE": str(index)}
    git("read-tree", revision, cwd=repository.root, env=environment)
    listed = git("ls-files", "-z", "--full-name", "--cached", cwd=repository.root, env=environment)
    names = [os.fsdecode(name) for name in listed.split(b"\0") if name]
    wanted, done = {relative}, set[str]()
    while wanted:
        done |= wanted
        chosen = [name for name in names if any(_concerns(name, path) for path in wanted)]
        content = b"\0".join(os.fsencode(name) for name in chosen)
        arguments = ("checkout-index", "--force", "-z", "--stdin", f"--prefix={tree}/")
        git(*arguments, cwd=repository.root, env=environment, stdin=content)
        wanted = set(_link_targets(tree, chosen)) - done
    found = tree / relative
    return found if found.exists() else None


def _concerns(name: str, path: str) -> bool:
    """Whether a listed file lies at or below a path, or is a link on the way to it."""
    return path == "" or name == path or name.startswith(f"{path}/") or path.startswith(f"{name}/")


def _link_targets(tree: Path, names: list[str]) -> Iterator[str]:
    """Paths of the repository that the written links lead to."""
    for name in names:
        link = tree / name
        if not link.is_symlink():
            continue
        target = posixpath.normpath(posixpath.join(posixpath.dirname(name), link.readlink()))
        if not target.startswith(("../", "/")) and target != "..":
            yield "" if target == "." else target
