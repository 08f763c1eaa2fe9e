"""Taking secrets out of what an agent left on disk by itself, where no output of it passes through us."""

from __future__ import annotations

import contextlib
import mmap
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from skilltrial.tasks.dispatch.redact import StreamRedactor, spellings


def scrub_folder(folder: Path, values: Iterable[str], *, public: Iterable[str] = (), within: Path | None = None) -> int:
    """Take the secrets out of every file, name and link below a folder; returns how many held some.

    Below the folder `within`, those of the values that are `public` are left alone. Links are not followed. A file
    that cannot be read or rewritten is deleted instead. What a program packed (git's objects, archives) is not
    unpacked.
    """
    everywhere = list(values)
    inside = [value for value in everywhere if value not in set(public)]
    all_secrets, fewer_secrets = spellings(everywhere), spellings(inside)
    if not all_secrets:
        return 0
    found = 0
    with _opened(folder):
        for path in _below(folder):
            exempt = within is not None and path.is_relative_to(within)
            wanted, secrets = (inside, fewer_secrets) if exempt else (everywhere, all_secrets)
            if secrets and _scrub_content(path, secrets, wanted) | _scrub_name(path, secrets, wanted):
                found += 1
    return found


def held_below(folder: Path, values: Iterable[str]) -> list[str]:
    """Those of the values that some file below the folder holds, in any spelling."""
    left = {value: spellings([value]) for value in values}
    held = []
    for path in _below(folder):
        if not left:
            break
        if path.is_file() and not path.is_symlink():
            here = [value for value, secrets in left.items() if secrets and _holds(path, secrets)]
            held += here
            left = {value: secrets for value, secrets in left.items() if value not in here}
    return held


def _below(folder: Path) -> Iterator[Path]:
    """Everything below a folder, what lies in a folder before itself."""
    for parent, folders, files in os.walk(folder, topdown=False):
        for name in (*files, *folders):
            yield Path(parent, name)


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[None]:
    """Let nothing be closed to its owner for a while: an agent may have left folders that cannot be entered."""
    closed: list[tuple[Path, int]] = []
    for parent, names, _ in os.walk(folder):
        for path in (Path(parent, name) for name in names):
            mode = stat.S_IMODE(path.lstat().st_mode)
            if mode & stat.S_IRWXU != stat.S_IRWXU and not path.is_symlink():
                path.chmod(mode | stat.S_IRWXU)
                closed.append((path, mode))
    try:
        yield
    finally:
        for path, mode in reversed(closed):
            with contextlib.suppress(OSError):
                path.chmod(mode)


def _scrub_content(path: Path, secrets: list[bytes], values: list[str]) -> bool:
    if path.is_symlink():
        return _scrub_link(path, secrets, values)
    if not path.is_file():
        return False
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
        if not mode & stat.S_IRUSR:
            path.chmod(mode | stat.S_IRUSR)
        held = _holds(path, secrets)
        if held:
            _rewrite(path, values)
        path.chmod(mode)
    except (OSError, ValueError):
        with contextlib.suppress(OSError):
            path.unlink()
        return True
    return held


def _scrub_link(path: Path, secrets: list[bytes], values: list[str]) -> bool:
    target = os.fsencode(path.readlink())
    if not any(secret in target for secret in secrets):
        return False
    path.unlink()
    path.symlink_to(os.fsdecode(_redacted(target, values)))
    return True


def _scrub_name(path: Path, secrets: list[bytes], values: list[str]) -> bool:
    name = os.fsencode(path.name)
    if not any(secret in name for secret in secrets):
        return False
    clean = os.fsdecode(_redacted(name, values))
    target, number = path.with_name(clean), 1
    while os.path.lexists(target):
        number += 1
        target = path.with_name(f"{clean}-{number}")
    path.rename(target)
    return True


def _redacted(content: bytes, values: list[str]) -> bytes:
    redactor = StreamRedactor(values)
    return redactor.feed(content) + redactor.finish()


def _holds(path: Path, secrets: list[bytes]) -> bool:
    """Whether a file holds one of the secrets; in bounded memory, since logs can be large."""
    if not path.stat().st_size:
        return False
    with path.open("rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return any(content.find(secret) >= 0 for secret in secrets)


def _rewrite(path: Path, values: list[str]) -> None:
    scratch, redactor = path.with_name(f".{path.name[:200]}.scrubbed"), StreamRedactor(values)
    scratch.unlink(missing_ok=True)  # an agent may have put a link there
    try:
        with path.open("rb") as source, scratch.open("xb") as target:
            while chunk := source.read(1 << 20):
                target.write(redactor.feed(chunk))
            target.write(redactor.finish())
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)
