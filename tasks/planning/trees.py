"""Files from several places as one tree: its digest before anything is copied, and the copy."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from skilltrial.data.digests import digest, tree_entries, walk_files
from skilltrial.data.errors import Terminal

_LEFT_BY_TOOLS: Final = frozenset({"__pycache__", ".DS_Store", "Thumbs.db"})


def left_by_tools(relative: str) -> bool:
    """Whether an interpreter or a file manager left it in a folder: nobody wrote it, and it changes by itself.

    A folder that is tried out, or installed from a wheel, fills with such files; they must change no digest.
    """
    return relative.rsplit("/", 1)[-1] in _LEFT_BY_TOOLS


def joined_digest(files: Mapping[str, Path]) -> str:
    """The tree digest of `copy_joined(files, …)`'s result: destinations are what counts, not where files are."""
    entries: dict[str, tuple[str, str]] = {}
    for destination, source in files.items():
        found = list(tree_entries(source, skip=left_by_tools))
        for name, kind, content in found or [("", "folder", "")]:
            entries[f"{destination}/{name}" if name else destination] = (kind, content)
    filled = {parent for name in entries for parent in _parents(name)}
    ordered = sorted((name for name in entries if name not in filled), key=lambda name: name.split("/"))
    return digest([[name, *entries[name]] for name in ordered])


def copy_joined(files: Mapping[str, Path], target: Path) -> None:
    """Copy each source, a file or a folder, to its destination below `target`."""
    target.mkdir(parents=True, exist_ok=True)
    for destination, source in files.items():
        copy_tree(source, target / destination, skip=left_by_tools)


def copy_tree(source: Path, target: Path, *, skip: Callable[[str], bool] = lambda _: False) -> None:
    """Copy exactly what `tree_digest(source, skip=skip)` sees: bytes, executable bits, links followed.

    A link that leads nowhere, or round in a circle, stays the link that it is. Raises `Terminal` for
    sockets, pipes and devices.
    """
    if not source.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        copy_file(source, target)
        return
    target.mkdir(parents=True, exist_ok=True)
    for path in walk_files(source, skip=skip):
        destination = target / path.relative_to(source)
        destination.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file():
            copy_file(path, destination)
        elif path.is_symlink():
            destination.symlink_to(path.readlink())
        elif path.is_dir():
            destination.mkdir(exist_ok=True)
        else:
            raise Terminal(f"{path} is neither a file, a folder nor a link, so it cannot be copied; remove it")


def copy_file(source: Path, target: Path) -> None:
    """Copy a file's bytes and whether its owner may execute it: all of it that git, and a digest, can tell."""
    shutil.copyfile(source, target)
    target.chmod(0o755 if source.stat().st_mode & stat.S_IXUSR else 0o644)


def _parents(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:length]) for length in range(1, len(parts))]
