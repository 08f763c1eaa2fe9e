"""Tables read out of an agent's event stream: what it was given, said, called, was refused and used."""

from __future__ import annotations

from typing import Final

from skilltrial.data.tables.columns import CELL_KEY, IDENTITY, Table, flag, moment, names, number, text, whole

_ROUND: Final = whole("round", "the CLI process within the attempt, from 1")

TOOL_CALLS: Final = Table(
    "tool_calls",
    "One row for each tool call the agent made, answered or not.",
    (*CELL_KEY, "round", "order"),
    (
        *IDENTITY,
        _ROUND,
        whole("order", "position among the round's tool calls, in the order of the stream, from 0"),
        text("tool_use_id", "the call's id; null: the stream gave none", nullable=True),
        text(
            "parent_tool_use_id",
            "the call of the sub-agent that made this one; null: main agent",
            nullable=True,
        ),
        text("message_id", "the model message that holds the call; null: not told", nullable=True),
        text("tool", "name of the tool as the model called it"),
        text(
            "role",
            "what the tool does by the harness's vocabulary: read, write, patch, shell, skill, subagent, other",
        ),
        text("input", "the arguments as JSON, cut to 16,384 characters"),
        whole("input_bytes", "size of the whole arguments as JSON", unit="bytes"),
        text("result", "text of the answer, cut to 16,384 characters; null: unanswered", nullable=True),
        whole("result_bytes", "size of the whole answer; null: unanswered", nullable=True, unit="bytes"),
        whole("result_images", "images in the answer; null: unanswered", nullable=True),
        flag("answered", "a result for this call is in the stream"),
        flag("is_error", "the answer is an error; null: unanswered or not told", nullable=True),
        flag(
            "denied",
            "the call was refused, by whomever; null: not known, since the harness reports no denials",
            nullable=True,
        ),
        text("decision", "accept or reject, as the CLI reports it; null: not told", nullable=True),
        text(
            "decision_source",
            "who decided, in the CLI's words (config, hook, …); null: not told",
            nullable=True,
        ),
        text("decision_reason", "why, in the CLI's words (mode, rule, …); null: not told", nullable=True),
        text("skill", "name given to the skill tool; null: not a skill call", nullable=True),
        moment("started_at", "time stamp of the event that holds the call; null: not told", nullable=True),
        moment("ended_at", "time stamp of the event that holds the answer; null: not told", nullable=True),
    ),
)

DENIALS: Final = Table(
    "denials",
    "One row for each refused tool call. No row means none was reported; cells whose harness cannot report "
    "denials have `denials_known = false` in `cells`.",
    (*CELL_KEY, "round", "order"),
    (
        *IDENTITY,
        _ROUND,
        whole("order", "position among the round's denials, from 0"),
        text("tool_use_id", "the refused call; null: not told", nullable=True),
        text("tool", "name of the tool"),
        text("source", "who refused: guard, approver, plan_mode, permission, sandbox, hook or unknown"),
        text("reason", "the text the agent was given, cut to 4,096 characters; null: not told", nullable=True),
        text("reason_type", "the CLI's own kind of reason (mode, rule, …); null: not told", nullable=True),
        names("evidence", "where it was reported: result, tool_result_meta, event, text"),
        names("input_keys", "names of the refused call's arguments, sorted"),
        text("agent_id", "the sub-agent whose call it was; null: main agent or not told", nullable=True),
    ),
)

USAGE: Final = Table(
    "usage",
    "Tokens and money. Scope `main` is one row: the main agent's own tokens. Scope `all` has one row for each "
    "model, sub-agents and side calls included; add its rows for the whole tree, never `main` and `all`.",
    (*CELL_KEY, "round", "scope", "model"),
    (
        *IDENTITY,
        _ROUND,
        text("scope", "main: the main agent; all: the whole tree of agents, split by model"),
        text("model", "the model; null: scope main, or a harness that does not split", nullable=True),
        whole(
            "input_tokens",
            "prompt tokens as the harness counts them: uncached ones; codex and cline add cached ones; null: not told",
            nullable=True,
            unit="tokens",
        ),
        whole("output_tokens", "generated tokens; null: not told", nullable=True, unit="tokens"),
        whole(
            "cache_read_tokens",
            "prompt tokens read from the cache; null: not told",
            nullable=True,
            unit="tokens",
        ),
        whole(
            "cache_creation_tokens",
            "prompt tokens written to the cache; null: not told",
            nullable=True,
            unit="tokens",
        ),
        number("cost_usd", "list price of this round alone; null: not told", nullable=True, unit="USD"),
        flag("exact", "false: a lower bound, since the totals of some turn are not in the stream"),
        text(
            "source",
            "which record it comes from: result, model_usage, message_delta, message_start, running_total (of a whole "
            "codex thread, earlier rounds included), other",
        ),
    ),
)

SESSION_SURFACE: Final = Table(
    "session_surface",
    "What a session reports having loaded when it starts. A kind with no row at all was either empty or not "
    "reported: `rounds.surface_kinds` tells which.",
    (*CELL_KEY, "round", "kind", "name", "source"),
    (
        *IDENTITY,
        _ROUND,
        text("session_id", "the session that reports; null: not told", nullable=True),
        text("kind", "skill, plugin, tool, mcp_server, agent or command"),
        text("name", "its name as the agent sees it"),
        text("source", "where it comes from, in the CLI's words; null: not told", nullable=True),
        text("version", "its version; null: not told", nullable=True),
        text("status", "of an MCP server: connected, pending, …; null: not told", nullable=True),
        text("path", "where it lies; null: not told", nullable=True),
    ),
)

MESSAGES: Final = Table(
    "messages",
    "Text that was said: by the agent, to it, and its thinking where the stream shows it.",
    (*CELL_KEY, "round", "order"),
    (
        *IDENTITY,
        _ROUND,
        whole("order", "position among the round's messages, from 0"),
        text("role", "assistant or user"),
        text("kind", "text or thinking"),
        text("message_id", "the model message it belongs to; null: not told", nullable=True),
        text("parent_tool_use_id", "the sub-agent's call; null: main agent", nullable=True),
        text("model", "the model that said it; null: not told", nullable=True),
        flag("synthetic", "written by the CLI, not by a model or a person"),
        text("text", "cut to 16,384 characters"),
        whole("text_bytes", "size of the whole text", unit="bytes"),
        whole("tool_calls_before", "tool calls of the round that stand before it in the stream"),
        moment("at", "time stamp of the event; null: not told", nullable=True),
    ),
)

PARSE_COVERAGE: Final = Table(
    "parse_coverage",
    "How much of an event stream was understood: lines = parsed + unknown_type + malformed + blank + truncated.",
    (*CELL_KEY, "round"),
    (
        *IDENTITY,
        _ROUND,
        text("parser", "name of the stream parser"),
        whole("parser_version", "its version: a newer one reads the same events again"),
        whole("bytes", "size of the stream", unit="bytes"),
        whole("lines", "lines, or elements where the stream is one JSON array"),
        whole("parsed", "records of a type that the parser knows"),
        whole("unknown_type", "JSON objects of another type"),
        whole("malformed", "lines that are not a JSON object"),
        whole("blank", "lines without content"),
        whole("truncated", "1 when the last line is cut, else 0"),
        whole("longest_line_bytes", "size of the longest line", unit="bytes"),
        whole("nul_bytes", "NUL bytes skipped", unit="bytes"),
        flag("replaced_bytes", "some bytes were not UTF-8 and were replaced"),
        names("unknown_types", "the types not known, sorted, at most 50"),
    ),
)
