"""Paths that people write into evals: always relative, never out of their folder, never git's own."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final

_DRIVE: Final = re.compile(r"[A-Za-z]:")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


def fault_of(text: str, *, git_allowed: bool = False) -> str | None:
    """Why a written path is not safe to copy below an environment; null: it is.

    Absolute paths are recognised by POSIX and by Windows rules, since evals travel between machines.
    A `.git` further down is content like any other; at the root it is the environment's own repository.
    """
    parts = parts_of(text)
    first = re.split(r"[/\\]", "/".join(parts[:1]))[0]
    checks = (
        (_CONTROL.search(text) is not None, "holds a control character"),
        (text.startswith(("/", "\\")) or _DRIVE.match(text) is not None, "is absolute; it must be relative"),
        (".." in re.split(r"[/\\]", text), "leads out of its folder: no part may be '..'"),
        (not parts, "names no file"),
        (not git_allowed and first.casefold() == ".git", "is git's own folder, which the environment needs for itself"),
    )
    return next((message for wrong, message in checks if wrong), None)


def parts_of(text: str) -> tuple[str, ...]:
    """The parts of a relative path without `.`: `("a", "b")` of `./a//b/`."""
    return PurePosixPath(text).parts


def clean(text: str) -> str:
    """A safe path in its one spelling: `a/b` of `./a//b/`."""
    return "/".join(parts_of(text))


def overlap(first: str, second: str) -> bool:
    """Whether two safe paths are the same, or one lies below the other."""
    a, b = parts_of(first), parts_of(second)
    shorter = min(len(a), len(b))
    return a[:shorter] == b[:shorter]


def component_fault(text: str) -> str | None:
    """Why a text cannot be one file's name; null: it can."""
    if text in (".", "..") or re.search(r"[/\\]", text) or _CONTROL.search(text):
        return "must be usable as one file name: no '/', '\\', control character, and not '.' or '..'"
    if len(text.encode(errors="replace")) > 200:
        return "is longer than the 200 bytes that fit into one file name"
    return None
