"""A private copy of an attempt's final environment, for a check that may change it as it likes."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

SPECIAL = "special_files_left_out"
UNREADABLE = "unreadable_files_left_out"


def copy_environment(source: Path, target: Path) -> list[str]:
    """Copy a folder, `.git` and all, to the new folder `target`; returns notes on what could not be copied.

    Links stay links. Sockets, pipes and devices are left out, and so is what may not be read. Any other failure,
    such as a full disk, is raised as `OSError`: a check on half a copy would prove nothing.
    """
    notes: set[str] = set()
    folders = [(source, target)]
    made: list[tuple[Path, Path]] = []
    while folders:
        origin, destination = folders.pop()
        destination.mkdir(parents=True)
        made.append((origin, destination))
        try:
            entries = list(os.scandir(origin))
        except PermissionError:
            notes.add(UNREADABLE)
            continue
        for entry in entries:
            path = Path(entry.path)
            if entry.is_dir(follow_symlinks=False):
                folders.append((path, destination / entry.name))
            elif note := _copy_file(entry, path, destination / entry.name):
                notes.add(note)
    for origin, destination in reversed(made):  # last, since a folder may be closed to writing
        shutil.copystat(origin, destination)
        destination.chmod(stat.S_IMODE(destination.stat().st_mode) | stat.S_IRWXU)
    return sorted(notes)


def remove_tree(folder: Path) -> None:
    """Remove a folder, even if some of its folders are closed to their owner."""
    for path, names, _ in os.walk(folder):
        for name in names:
            inner = Path(path, name)
            if not inner.is_symlink():
                inner.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _copy_file(entry: os.DirEntry[str], source: Path, target: Path) -> str | None:
    if entry.is_symlink():
        target.symlink_to(source.readlink())
    elif entry.is_file(follow_symlinks=False):
        try:
            shutil.copy2(source, target)
        except PermissionError:
            return UNREADABLE
    else:
        return SPECIAL
    return None
