"""`diff_scope`: limits on how much the agent may have changed."""

from __future__ import annotations

from skilltrial.data.evals import DiffScope
from skilltrial.data.grading import DiffRecord, Verdict


def check(assertion: DiffScope, diff: DiffRecord) -> Verdict:
    """Passes when every declared limit holds. Lines changed are lines added plus lines removed."""
    files, lines = len(diff.files), diff.lines_added + diff.lines_removed
    judged = (
        (f"files touched: {files}", files, assertion.max_files_touched),
        (
            f"lines changed: {lines} ({diff.lines_added} added, {diff.lines_removed} removed)",
            lines,
            assertion.max_lines_changed,
        ),
    )
    parts = [f"{text}, {_limit(count, limit)}" for text, count, limit in judged]
    if binary := sum(file.binary for file in diff.files):
        parts.append(f"binary files, whose lines do not count: {binary}")
    passed = all(limit is None or count <= limit for _, count, limit in judged)
    return Verdict(passed=passed, evidence="; ".join([*parts, f"hunks: {diff.hunks}"]))


def _limit(count: int, limit: int | None) -> str:
    if limit is None:
        return "no limit"
    return f"within the limit of {limit}" if count <= limit else f"over the limit of {limit}"
