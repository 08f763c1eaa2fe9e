"""Tables of how cells and their rounds went."""

from __future__ import annotations

from typing import Final

from skilltrial.data.tables.columns import CELL_KEY, IDENTITY, Table, flag, moment, names, number, text, whole

CELLS: Final = Table(
    "cells",
    "One row for each cell of the plan that was dispatched at least once: its newest attempt.",
    CELL_KEY,
    (
        *IDENTITY,
        whole("block", "cells of one block are arms of the same eval and repetition, dispatched side by side"),
        text("cell_digest", "what the cell depends on; another digest is another cell"),
        text("outcome", "how the attempt ended: see the outcomes"),
        text("reason", "the closed reason behind the outcome; empty: none needed"),
        flag("settled", "the cell need not be tried again"),
        text("counting", "scored, or excluded as infrastructure"),
        number("score", "share of the gradable assertions that passed, 0 to 1; null: ungraded", nullable=True),
        whole("assertions_passed", "assertions that passed; null: ungraded", nullable=True),
        whole("assertions_graded", "assertions with a verdict; null: ungraded", nullable=True),
        whole(
            "assertions_missing",
            "assertions without a verdict, which count neither way; null: none was to be had",
            nullable=True,
        ),
        whole("rounds", "CLI processes of the attempt"),
        whole("duration_ms", "wall clock of all rounds", unit="ms"),
        number("cost_usd", "list price of the attempt; null: not told", nullable=True, unit="USD"),
        whole(
            "input_tokens", "whole tree, uncached; null: not told, or only a lower bound", nullable=True, unit="tokens"
        ),
        whole("output_tokens", "whole tree; null: not told, or only a lower bound", nullable=True, unit="tokens"),
        whole("cache_read_tokens", "whole tree; null: not told, or only a lower bound", nullable=True, unit="tokens"),
        whole(
            "cache_creation_tokens", "whole tree; null: not told, or only a lower bound", nullable=True, unit="tokens"
        ),
        whole("tool_calls", "tool calls in the stream; null: the events were not read", nullable=True),
        whole(
            "denials", "refused calls; null: the harness cannot report them, or the events were not read", nullable=True
        ),
        flag("denials_known", "the harness reports denials and the events were read, so that no row means no denial"),
        whole("files_touched", "files that differ from the baseline; null: not measured", nullable=True),
        whole("lines_added", "null: not measured", nullable=True, unit="lines"),
        whole("lines_removed", "null: not measured", nullable=True, unit="lines"),
        flag(
            "skill_listed",
            "every skill of the treatment is on the session's roster; null: none staged, or no roster reported",
            nullable=True,
        ),
        flag(
            "skill_used",
            "a skill of the treatment was invoked or its SKILL.md read; null: none staged, or not told",
            nullable=True,
        ),
        text("harness", "label of the harness"),
        text("cli_version", "as the session reports it; null: not told", nullable=True),
        text("model", "as the session reports it; null: not told", nullable=True),
        text("permission_mode", "as the session reports it; null: not told", nullable=True),
        text("session_id", "null: not told", nullable=True),
        text("prompt_digest", "SHA-256 of the prompt; equal in all arms of an eval"),
        text("final_text", "the agent's last words, cut to 16,384 characters; null: none", nullable=True),
        names("notes", "what is worth knowing about the attempt, as closed words"),
        text("worker", "host that ran it"),
        moment("started_at", "start of the attempt"),
        text("folder", "the attempt's folder, relative to the store's home"),
    ),
)

ROUNDS: Final = Table(
    "rounds",
    "One row for each CLI process of an attempt.",
    (*CELL_KEY, "round"),
    (
        *IDENTITY,
        whole("round", "from 1"),
        text("ended_by", "what ended the process: exit, deadline, silence, cancelled, lingering, not_started"),
        whole("exit_code", "negative: ended by that signal; null: never started", nullable=True),
        whole("duration_ms", "wall clock of the process", unit="ms"),
        moment("started_at", "start of the process"),
        whole("stderr_bytes", "all that was written to stderr", unit="bytes"),
        whole("leftover_processes", "processes that outlived the CLI and were ended"),
        text("session_id", "null: not told", nullable=True),
        names("session_ids", "every session id in the stream, in order of appearance"),
        whole("results", "result records in the stream"),
        text("result_subtype", "of the last result; null: there is none", nullable=True),
        flag("result_is_error", "of the last result; null: there is none", nullable=True),
        text("terminal_reason", "of the last result, in the CLI's words; null: not told", nullable=True),
        whole("api_error_status", "HTTP status of the API error that ended the round; null: none", nullable=True),
        whole("api_retries", "retries of API calls that the stream reports"),
        whole(
            "turns",
            "of the last result, the CLI's own count, not comparable over versions; null: not told",
            nullable=True,
        ),
        whole(
            "api_duration_ms",
            "time spent in API calls, as the last result tells it; null: not told",
            nullable=True,
            unit="ms",
        ),
        number("cost_usd", "list price of this round; null: not told", nullable=True, unit="USD"),
        number(
            "session_cost_usd",
            "the CLI's running total over the session, as reported; null: not told",
            nullable=True,
            unit="USD",
        ),
        text("permission_mode", "as the session reports it; null: not told", nullable=True),
        text("model", "as the session reports it; null: not told", nullable=True),
        text("cli_version", "as the session reports it; null: not told", nullable=True),
        names("surface_kinds", "kinds of things that the session reported a roster of, even an empty one"),
        names("unfinished_tasks", "background tasks still running when the round ended"),
        text("final_text", "cut to 16,384 characters; null: none", nullable=True),
        names("notes", "what is worth knowing about the round, as closed words"),
    ),
)
