"""Laying one tree over another: skills and fixtures over a codebase, without ever leaving the repository."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from skilltrial.data.digests import walk_files
from skilltrial.data.errors import Terminal


class CannotStage(Terminal):
    """Something of a skill or a fixture cannot be put where it belongs."""


def skip_git(name: str) -> bool:
    """Whether a path (relative, `/` between its parts) is git's own data."""
    return PurePosixPath(name).name == ".git"


def copy_tree(source: Path, target: Path, *, skip: Callable[[str], bool] = lambda _: False) -> None:
    """Copy a file or folder into an existing folder `target`; links are followed, dangling ones kept.

    A file becomes 0644 or 0755, as its owner may run it: nothing else of a mode is content.
    """
    for path in walk_files(source, skip=skip):
        copy_entry(path, target / path.relative_to(source))


def lay_over(source: Path, target: Path, *, root: Path, extras: Path | None = None) -> list[str]:
    """Copy a tree over what lies in `target`, a folder below the repository `root`; returns the files' paths.

    Paths are relative to `root`. What git cannot carry goes to `extras` instead: repositories within the tree
    (`.git` and all below it) and empty folders; without `extras` it is left out.
    Raises `CannotStage` when a path would lead out of the repository or through a file.
    """
    laid = []
    for path in walk_files(source):
        inside = target.relative_to(root) / path.relative_to(source)
        if inside.parts[0] == ".git":
            raise CannotStage(f"{inside.as_posix()}: the environment's own git data cannot be replaced")
        if ".git" in inside.parts or (path.is_dir() and not path.is_symlink()):
            if extras is not None:
                copy_entry(path, extras / inside)
            continue
        _require_inside(root, inside)
        copy_entry(path, root / inside)
        laid.append(inside.as_posix())
    return laid


def copy_entry(path: Path, destination: Path) -> None:
    """Copy one file, dangling link or empty folder, in place of whatever file or link is there."""
    destination.parent.mkdir(parents=True, exist_ok=True)
    if destination.is_symlink() or destination.is_file():
        destination.unlink()
    elif destination.is_dir() and not path.is_dir():
        shutil.rmtree(destination)
    if path.is_file():
        shutil.copyfile(path, destination)
        destination.chmod(0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644)
    elif path.is_symlink():
        destination.symlink_to(path.readlink())
    else:
        destination.mkdir(parents=True, exist_ok=True)


def _require_inside(root: Path, inside: Path) -> None:
    parent = root
    for part in inside.parts[:-1]:
        parent = parent / part
        if parent.is_symlink() and not parent.resolve().is_relative_to(root.resolve()):
            raise CannotStage(f"{inside.as_posix()}: {part!r} is a link of the codebase that leads out of it")
        if os.path.lexists(parent) and not parent.is_dir():
            raise CannotStage(f"{inside.as_posix()}: {part!r} is a file of the codebase, not a folder")
