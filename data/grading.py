"""`grading/diff.json` and `grading/grade.json`: what an attempt changed, and the verdicts of its assertions."""

from __future__ import annotations

from typing import Literal

from skilltrial.data.models import Kept

DIFF_SCHEMA = 1
GRADE_SCHEMA = 1

GRADER_VERSION = 1
"""Raised whenever a verdict could come out differently for the same attempt and assertion: all is graded anew."""


class FileChange(Kept):
    """One file that differs from the baseline. Bytes of a name that are not UTF-8 are shown as `\\xNN`."""

    path: str
    status: Literal["added", "modified", "deleted"]
    lines_added: int | None  # null: binary
    lines_removed: int | None
    hunks: int  # places of change with no context lines; 0: binary

    @property
    def binary(self) -> bool:
        """Git counts no lines in it."""
        return self.lines_added is None


class PatchFile(Kept):
    """The patch kept for people."""

    path: str  # relative to the attempt's folder
    bytes: int  # size of the file, its marker line included
    truncated: bool


class DiffRecord(Kept):
    """All that differs from the baseline when the agent stops. Binary files count no lines."""

    schema_version: int = DIFF_SCHEMA
    baseline: str  # commit id
    tree: str  # tree id of what the agent left
    files: tuple[FileChange, ...]
    patch: PatchFile
    notes: tuple[str, ...] = ()

    @property
    def lines_added(self) -> int:
        """Lines added in all files."""
        return sum(file.lines_added or 0 for file in self.files)

    @property
    def lines_removed(self) -> int:
        """Lines removed in all files."""
        return sum(file.lines_removed or 0 for file in self.files)

    @property
    def hunks(self) -> int:
        """Places of change in all files."""
        return sum(file.hunks for file in self.files)


class Verdict(Kept):
    """What one check found. `passed` null means that no verdict could be had, and `error` says why."""

    passed: bool | None
    evidence: str
    error: str | None = None
    artifacts: tuple[str, ...] = ()  # files with the evidence, relative to the attempt's folder


class GradedAssertion(Kept):
    """One assertion's verdict with all that it depends on: the same digest has the same verdict."""

    assertion_id: str
    kind: str
    digest: str
    verdict: Verdict
    duration_ms: int


class GradeRecord(Kept):
    """The verdicts of one attempt, in the order of the eval's assertions."""

    schema_version: int = GRADE_SCHEMA
    grading_digest: str  # of the planned eval
    assertions: tuple[GradedAssertion, ...]
