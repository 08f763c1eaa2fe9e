"""Limits on the size of a change."""

from __future__ import annotations

import pytest

from skilltrial.data.evals import DiffScope
from skilltrial.data.grading import DiffRecord, FileChange, PatchFile
from skilltrial.tasks.grading.scope import check

DIFF = DiffRecord(
    baseline="b",
    tree="t",
    files=(
        FileChange(path="a", status="modified", lines_added=3, lines_removed=2, hunks=2),
        FileChange(path="b", status="added", lines_added=None, lines_removed=None, hunks=0),
    ),
    patch=PatchFile(path="p", bytes=0, truncated=False),
)


@pytest.mark.parametrize(
    ("files", "lines", "passed"),
    [(2, 5, True), (1, 5, False), (2, 4, False), (None, 5, True), (2, None, True), (0, None, False)],
)
def test_every_declared_limit_must_hold(files: int | None, lines: int | None, passed: bool) -> None:
    assertion = DiffScope(id="d", type="diff_scope", max_files_touched=files, max_lines_changed=lines)

    assert check(assertion, DIFF).passed is passed


def test_the_evidence_gives_both_counts_and_what_was_not_counted() -> None:
    verdict = check(DiffScope(id="d", type="diff_scope", max_files_touched=1), DIFF)

    assert verdict.evidence == (
        "files touched: 2, over the limit of 1; lines changed: 5 (3 added, 2 removed), no limit; "
        "binary files, whose lines do not count: 1; hunks: 2"
    )
