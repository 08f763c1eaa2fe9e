"""Laying one tree over another: skills and fixtures over a codebase, without ever leaving the repository."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from skilltrial.data.digests import walk_files
from skilltrial.data.errors import Terminal
from skilltrial.tasks.planning.trees import copy_file


class CannotStage(Terminal):
    """Something of a skill or a fixture cannot be put where it belongs."""


def lay_over(
    source: Path,
    target: Path,
    *,
    root: Path,
    extras: Path | None = None,
    skip: Callable[[str], bool] = lambda _: False,
    clear_the_way: bool = False,
) -> list[str]:
    """Copy a tree over what lies in `target`, a folder below the repository `root`; returns the files' paths.

    Paths are relative to `root`. What git cannot carry goes to `extras` instead: repositories within the tree
    (`.git` and all below it) and empty folders; without `extras` it is left out.
    A path must not lead through a file, nor through a link out of the repository: `CannotStage` says which one
    does, or, to `clear_the_way`, a folder takes the obstacle's place.
    """
    laid = []
    for path in walk_files(source, skip=skip):
        inside = target.relative_to(root) / path.relative_to(source)
        if inside.parts[0] == ".git":
            raise CannotStage(f"{inside.as_posix()}: the environment's own git data cannot be replaced")
        if ".git" in inside.parts or (path.is_dir() and not path.is_symlink()):
            if extras is not None:
                copy_entry(path, extras / inside)
            continue
        if obstacle := _obstacle(root, inside):
            if not clear_the_way:
                raise CannotStage(f"{inside.as_posix()}: {obstacle.name!r} is no folder within the codebase")
            obstacle.unlink()
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
        copy_file(path, destination)
    elif path.is_symlink():
        destination.symlink_to(path.readlink())
    else:
        destination.mkdir(parents=True, exist_ok=True)


def _obstacle(root: Path, inside: Path) -> Path | None:
    """The first parent of a path that is a file, or a link that leads out of the root or nowhere."""
    for parent in reversed((root / inside).parents):
        if parent == root or not parent.is_relative_to(root) or not os.path.lexists(parent):
            continue
        if not parent.is_dir() or not parent.resolve().is_relative_to(root.resolve()):
            return parent
    return None
