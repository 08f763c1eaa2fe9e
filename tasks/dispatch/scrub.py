"""Taking secrets out of files that an agent CLI wrote by itself, where no output of it passes through us."""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from skilltrial.tasks.dispatch.redact import StreamRedactor, spellings


def scrub_folder(folder: Path, values: Iterable[str]) -> int:
    """Take the secrets out of every file below a folder, without following links; returns how many files had some.

    A file that cannot be read or rewritten is deleted instead.
    """
    found, secrets = 0, spellings(values)
    for path in _files_below(folder) if secrets else ():
        try:
            if _holds(path, secrets):
                found += 1
                _rewrite(path, values)
        except (OSError, ValueError):
            with contextlib.suppress(OSError):
                path.unlink()
    return found


def _files_below(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            if path.is_file() and not path.is_symlink():
                yield path


def _holds(path: Path, secrets: list[bytes]) -> bool:
    """Whether a file holds one of the secrets; in bounded memory, since logs can be large."""
    if not path.stat().st_size:
        return False
    with path.open("rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return any(content.find(secret) >= 0 for secret in secrets)


def _rewrite(path: Path, values: Iterable[str]) -> None:
    scratch, redactor = path.with_name(f".{path.name}.scrubbed"), StreamRedactor(values)
    scratch.unlink(missing_ok=True)  # an agent may have put a link there
    try:
        with path.open("rb") as source, scratch.open("xb") as target:
            while chunk := source.read(1 << 20):
                target.write(redactor.feed(chunk))
            target.write(redactor.finish())
        scratch.chmod(path.stat().st_mode & 0o777)
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)
