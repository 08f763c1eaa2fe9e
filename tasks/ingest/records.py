"""What a stream parser hands on: rows for the tables, and one bounded summary of the whole stream.

Every parser, whatever CLI its stream comes from, feeds the same rows and fills the same summary.
"Not told" is null throughout, never zero or an empty list.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

TEXT_LIMIT: Final = 16_384
"""Characters of a text that a table keeps; the stream on disk keeps all of it."""


class RowSink(Protocol):
    """Takes rows of the session tables, without the columns that identify cell and round."""

    def add(self, table: str, row: Mapping[str, Any]) -> None:
        """Take one row of the named table. Rows of one table arrive in their final order."""


class StreamParser(Protocol):
    """Reads the records of one stream, in order."""

    name: str
    version: int

    def feed(self, record: dict[str, Any]) -> bool:
        """Take one record; false: it is of a type that this parser does not know."""

    def finish(self) -> StreamSummary:
        """Hand on what is still open and sum up. Called once, after the last record."""


@dataclass(slots=True)
class Usage:
    """Tokens and money of one scope. Null: not told."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cost_usd: float | None = None
    exact: bool = True  # false: a lower bound
    source: str = "result"


@dataclass(slots=True)
class LastResult:
    """The last result record of a stream, in the CLI's own words."""

    subtype: str | None = None
    is_error: bool | None = None
    terminal_reason: str | None = None
    api_error_status: int | None = None
    errors: tuple[str, ...] = ()
    text: str | None = None
    turns: int | None = None
    duration_ms: int | None = None
    api_duration_ms: int | None = None
    session_cost_usd: float | None = None


@dataclass(slots=True)
class Coverage:
    """Every line of a stream, accounted for: lines = parsed + unknown_type + malformed + blank + truncated."""

    bytes: int = 0
    lines: int = 0
    parsed: int = 0
    unknown_type: int = 0
    malformed: int = 0
    blank: int = 0
    truncated: int = 0
    longest_line_bytes: int = 0
    nul_bytes: int = 0
    replaced_bytes: bool = False
    unknown_types: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Surface:
    """The roster of one kind that a session reported: names, with what else is told of each."""

    kind: str  # skill, plugin, tool, mcp_server, agent or command
    entries: list[dict[str, str | None]] = field(default_factory=list)  # name, source, version, status, path


@dataclass(slots=True)
class StreamSummary:
    """One stream, summed up in bounded space."""

    harness: str  # label of the harness that writes such streams; "scripted" for the bundled agent
    parser: str
    parser_version: int
    cli_version: str | None = None
    model: str | None = None
    permission_mode: str | None = None
    session_ids: list[str] = field(default_factory=list)  # in order of appearance; of inits where there are any
    init_session_ids: list[str] = field(default_factory=list)
    results: int = 0
    last_result: LastResult | None = None
    reopened: bool = False  # another turn began after the last result, and has none of its own
    cost_usd: float | None = None  # as the results report it, over all sessions of the stream; null: not told whole
    final_text: str | None = None
    last_record: str | None = None  # such as "user/tool_result", "assistant/text", "result/success"
    usage_main: Usage | None = None
    usage_all: dict[str | None, Usage] = field(default_factory=dict)  # by model; totals as the stream reports them
    usage_round: dict[str | None, Usage] | None = None  # by model, this process alone; null: not told apart
    model_messages: int = 0  # answers of a model, each once, of whatever agent
    synthetic_messages: int = 0  # messages that the CLI wrote in a model's place
    tool_calls: int = 0
    tool_calls_answered: int = 0
    denials: int | None = None  # null: such streams do not report denials
    skills: list[str] | None = None
    plugins: list[dict[str, str | None]] | None = None  # name, source, version, path
    surfaces: dict[str, Surface] = field(default_factory=dict)  # by kind; a kind that is absent was not reported
    skill_calls: list[str] = field(default_factory=list)  # names given to the skill tool, in order, at most 1,000
    unknown_skills: list[str] = field(default_factory=list)  # those of them that the CLI does not know, at most 100
    api_retries: int = 0
    api_errors: list[str] = field(default_factory=list)  # kinds of API errors, in order, at most 100
    error_texts: list[str] = field(default_factory=list)  # the CLI's own words of what failed, shortened, at most 20
    rate_limit_rejected: bool = False
    unfinished_tasks: list[str] = field(default_factory=list)
    guard_breaches: list[str] = field(default_factory=list)  # calls that ran although a hook denied them
    silent_hooks: int = 0  # hooks that gave no usable answer
    finished: bool = False  # the stream says that the turn ended, well or not
    failed: str | None = None  # closed word, when the stream itself says that the turn failed
    notes: list[str] = field(default_factory=list)  # closed words, no repeats
    coverage: Coverage = field(default_factory=Coverage)

    def note(self, word: str) -> None:
        """Add a note once."""
        if word not in self.notes:
            self.notes.append(word)
