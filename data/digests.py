"""Content digests: what a step depends on, as one short name.

Two rules keep a digest meaningful: it is taken over canonical JSON (sorted keys, no white space), and it
never sees a time stamp, an absolute path or an inode. Equal numbers of other types (1 and 1.0) differ in it.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import orjson
from pydantic import BaseModel

_CHUNK: Final = 1 << 20


def canonical_json(value: object) -> bytes:
    """The one byte form of a JSON-like value; pydantic models stand for their JSON dump."""
    return orjson.dumps(value, default=_plain, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS)


def digest(value: object) -> str:
    """SHA-256 (64 hex digits) of the canonical JSON of `value`."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 (64 hex digits) of a file's bytes, read in pieces."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def tree_digest(root: Path, *, skip: Callable[[str], bool] = lambda _: False) -> str:
    """SHA-256 of a file or folder: relative names, executable bits and bytes; symlinks are followed.

    `skip` gets each path relative to `root` with `/` between its parts; a skipped folder is not entered.
    A dangling symlink counts by its target text, and so does one that would lead round in a circle.
    """
    return digest([list(entry) for entry in tree_entries(root, skip=skip)])


def tree_entries(root: Path, *, skip: Callable[[str], bool] = lambda _: False) -> Iterator[tuple[str, str, str]]:
    """What a tree digest is taken over: (name relative to `root`, kind, content), in the order of `walk_files`.

    Kinds are file, executable, link and folder (an empty one). A single file has the name "".
    """
    if not root.is_dir():
        yield "", _kind(root), file_digest(root)
        return
    for path in walk_files(root, skip=skip):
        name = path.relative_to(root).as_posix()
        if path.is_file():
            yield name, _kind(path), file_digest(path)
        elif path.is_symlink():
            yield name, "link", str(path.readlink())
        else:
            yield name, "folder", ""


def walk_files(root: Path, *, skip: Callable[[str], bool] = lambda _: False) -> Iterator[Path]:
    """Every file, dangling link and empty folder below `root`, sorted by name, links followed once."""
    yield from _walk(root, root, skip, frozenset({root.resolve()}))


def _walk(folder: Path, root: Path, skip: Callable[[str], bool], above: frozenset[Path]) -> Iterator[Path]:
    for entry in sorted(os.scandir(folder), key=lambda e: e.name):
        path = Path(entry.path)
        if skip(path.relative_to(root).as_posix()):
            continue
        if not entry.is_dir():
            yield path
            continue
        real = path.resolve()
        if real in above:
            yield path
        elif any(path.iterdir()):
            yield from _walk(path, root, skip, above | {real})
        else:
            yield path


def _kind(path: Path) -> str:
    return "executable" if path.stat().st_mode & stat.S_IXUSR else "file"


def _plain(value: object) -> object:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, Path):
        return value.as_posix()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise TypeError(f"{type(value).__name__} has no canonical JSON form")
