"""What differs from the baseline when the agent stops.

Measured with the *template's* repository, the environment being no more than a folder of files: an agent may
commit, move branches, break or delete its `.git` without any influence. Nothing is written to either of the two;
index and new objects go to a scratch folder. What the environment's own ignore files hide is not counted;
attributes (`-diff`, `binary`) are those of the baseline, so that an agent cannot declare its changes unreadable.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from skilltrial.data.errors import GitFailed, Terminal
from skilltrial.data.git import EXACT_PATHS, git
from skilltrial.data.grading import DiffRecord, FileChange, PatchFile
from skilltrial.data.store import write_bytes
from skilltrial.data.template import TemplateRecord

PATCH_LIMIT: Final = 1 << 20
"""Bytes of a patch that are kept."""

UNREADABLE: Final = "unreadable_files"
NESTED: Final = "nested_repositories"

_OPTIONS: Final = (
    *EXACT_PATHS,
    *("-c", "core.bigFileThreshold=64m"),  # larger files are binary: they are neither held in memory nor compressed
    *("-c", "core.looseCompression=0", "-c", "core.quotePath=false", "-c", "core.safecrlf=false"),
)
_DIFF: Final = ("diff", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=none")
_TIMEOUT_S: Final = 1800.0
_PLACEHOLDER: Final = ".4f1c2f0e"
_STATUS: Final[dict[bytes, Literal["added", "deleted"]]] = {b"A": "added", b"D": "deleted"}
_SECTION: Final = re.compile(rb"^(diff --git |@@)", re.MULTILINE)


class CannotMeasure(Terminal):
    """There is nothing left to compare with the baseline."""


@dataclass(frozen=True, slots=True)
class _Bench:
    """Where a measurement works: the template's repository to read, a scratch folder to write."""

    repository: Path
    env: dict[str, str]

    def git(self, *arguments: str, work_tree: Path, stdin: bytes | None = None) -> bytes:
        places = (f"--git-dir={self.repository / '.git'}", f"--work-tree={work_tree}")
        return git(*_OPTIONS, *places, *arguments, cwd=work_tree, env=self.env, stdin=stdin, timeout_s=_TIMEOUT_S)


def measure(repository: Path, template: TemplateRecord, environment: Path, patch: Path, *, root: Path) -> DiffRecord:
    """Compare an environment with its baseline, and write the patch to `patch`, a file below the folder `root`.

    Raises `CannotMeasure` when the environment is gone, `GitFailed` when the template cannot be read.
    """
    environment = environment.resolve()
    if not environment.is_dir():
        raise CannotMeasure(
            f"the environment {environment} is gone: what the agent changed cannot be measured any more"
        )
    with tempfile.TemporaryDirectory(prefix="diff-") as scratch:
        bench = _bench(repository, Path(scratch))
        tree, notes = _tree(bench, template.baseline, environment)
        if tree == template.tree:
            files, text = [], b""
        else:
            files = _changes(bench, template.tree, tree)
            text = bench.git(*_DIFF, "--unified=3", template.tree, tree, work_tree=repository)
    kept, truncated = _cut(text)
    write_bytes(patch, kept)
    return DiffRecord(
        baseline=template.baseline,
        tree=tree,
        files=tuple(files),
        patch=PatchFile(path=patch.relative_to(root).as_posix(), bytes=len(kept), truncated=truncated),
        notes=tuple(notes),
    )


def _bench(repository: Path, scratch: Path) -> _Bench:
    objects = scratch / "objects"
    (objects / "info").mkdir(parents=True)
    (objects / "info" / "alternates").write_text(f"{repository / '.git' / 'objects'}\n")
    return _Bench(repository, {"GIT_INDEX_FILE": str(scratch / "index"), "GIT_OBJECT_DIRECTORY": str(objects)})


def _tree(bench: _Bench, baseline: str, environment: Path) -> tuple[str, list[str]]:
    """Tree id of all files of the environment that are not ignored, and notes."""
    notes = []
    bench.git("read-tree", baseline, work_tree=environment)
    nested = list(_nested_repositories(environment))
    if nested:
        notes.append(NESTED)
        _open_nested(bench, environment, nested, "1" * len(baseline))
    try:
        bench.git("add", "--all", "--ignore-errors", "--", ".", work_tree=environment)
    except GitFailed as error:
        if error.status != 1:  # 1: all was added but what cannot be read
            raise
        notes.append(UNREADABLE)
    return bench.git("write-tree", work_tree=environment).decode().strip(), notes


def _nested_repositories(environment: Path) -> Iterator[str]:
    """Folders that git would take for repositories of their own, relative to the environment."""
    for folder, names, files in os.walk(environment):
        here = os.path.relpath(folder, environment)
        if here != "." and (".git" in names or ".git" in files):
            yield here
        if ".git" in names:
            names.remove(".git")


def _open_nested(bench: _Bench, environment: Path, nested: list[str], blob: str) -> None:
    """Have git look into nested repositories instead of recording them as one link each.

    It looks into a folder of which it knows a file already, so each gets one that exists nowhere; `add --all`
    drops that again. `blob` is an object id that nobody looks up.
    """
    entries = (f"100644 {blob}\t{folder}/{_PLACEHOLDER}\0" for folder in nested)
    stdin = "".join(entries).encode(errors="surrogateescape")
    bench.git("update-index", "-z", "--add", "--replace", "--index-info", work_tree=environment, stdin=stdin)


def _changes(bench: _Bench, before: str, after: str) -> list[FileChange]:
    # run in the template's work tree: attributes are read there
    listed = bench.git(*_DIFF, "--raw", "--numstat", "-z", before, after, work_tree=bench.repository)
    patch = bench.git(*_DIFF, "--unified=0", before, after, work_tree=bench.repository)
    fields = listed.split(b"\0")[:-1]
    raw = [(fields[i][-1:], fields[i + 1]) for i in range(0, len(fields), 2) if fields[i].startswith(b":")]
    counts = {path: (added, removed) for added, removed, path in (f.split(b"\t", 2) for f in fields[2 * len(raw) :])}
    hunks = _hunks(patch, [status for status, _ in raw])
    return [
        FileChange(
            path=path.decode(errors="backslashreplace"),
            status=_STATUS.get(status, "modified"),
            lines_added=_lines(counts[path][0]),
            lines_removed=_lines(counts[path][1]),
            hunks=count,
        )
        for (status, path), count in zip(raw, hunks, strict=True)
    ]


def _lines(count: bytes) -> int | None:
    return None if count == b"-" else int(count)


def _hunks(patch: bytes, statuses: list[bytes]) -> list[int]:
    """Hunks of each file, in order. Lines of content start with a sign, so that no content looks like a header."""
    sections: list[int] = []
    for match in _SECTION.finditer(patch):
        if match[0] == b"@@":
            sections[-1] += 1
        else:
            sections.append(0)
    counts = iter(sections)
    # a change of type (T), such as from file to link, is shown as a deletion and a creation
    return [sum(next(counts) for _ in range(2 if status == b"T" else 1)) for status in statuses]


def _cut(patch: bytes) -> tuple[bytes, bool]:
    if len(patch) <= PATCH_LIMIT:
        return patch, False
    end = patch.rfind(b"\n", 0, PATCH_LIMIT) + 1 or PATCH_LIMIT
    marker = f"[patch cut here: {end} of {len(patch)} bytes kept]\n".encode()
    return patch[:end] + (b"" if patch[:end].endswith(b"\n") else b"\n") + marker, True
