"""Tables of what the attempt left behind and how it was graded."""

from __future__ import annotations

from typing import Final

from skilltrial.data.tables.columns import CELL_KEY, IDENTITY, Table, flag, names, text, whole

ASSERTIONS: Final = Table(
    "assertions",
    "One row for each assertion of a graded cell.",
    (*CELL_KEY, "assertion_id"),
    (
        *IDENTITY,
        text("assertion_id", "unique within its eval"),
        text("kind", "transcript_check, command_check, diff_scope or llm_judge"),
        flag("passed", "null: no verdict could be had, which counts neither as pass nor as fail", nullable=True),
        text("evidence", "what the verdict rests on, cut to 4,096 characters"),
        text("error", "why there is no verdict; null: there is one", nullable=True),
        whole("duration_ms", "time the check took", unit="ms"),
        names("artifacts", "files with the evidence, relative to the attempt's folder"),
        text("grading_digest", "what the verdict depends on besides the attempt"),
    ),
)

DIFF_FILES: Final = Table(
    "diff_files",
    "One row for each file that differs from the baseline when the agent stops.",
    (*CELL_KEY, "path"),
    (
        *IDENTITY,
        text("path", "relative to the environment"),
        text("status", "added, modified or deleted"),
        flag("binary", "git counts no lines in it"),
        whole("lines_added", "null: binary", nullable=True, unit="lines"),
        whole("lines_removed", "null: binary", nullable=True, unit="lines"),
        whole("hunks", "separate places of change, with no context lines; 0: binary"),
    ),
)
