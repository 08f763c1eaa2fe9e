"""`transcript_check`: a regular expression that must match a tool call or a message of the agent.

A tool call is matched as `<tool> <arguments as compact JSON>`. Refused calls were never carried out: they neither
match nor count as a write. A write is a call of a writing tool that did not fail, or a shell command whose text
alone tells that it writes below the environment; programs that may write something (`make`) are not taken for
writes. Calls of sub-agents match like any other; what is said, and so the completion claim, is what the main agent
says. Where the harness cannot report denials, a refused call looks like a failed one.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson
import polars as pl

from skilltrial.data.evals import TranscriptCheck
from skilltrial.data.grading import Verdict
from skilltrial.data.store import AttemptFolder
from skilltrial.tasks.grading.patterns import matches
from skilltrial.tasks.guard.writes import write_targets

TABLES: Final = ("tool_calls", "messages", "parse_coverage")
"""The fragments that a verdict is read from."""

_SHOWN: Final = 200
_WRITING: Final = frozenset({"write", "patch"})

Position = tuple[int, int, int]
"""(round, tool calls of the round before it, 0 for a message and 1 for a call): the order of a conversation."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """One tool call or message as a candidate. `cut`: only the beginning of its text is known."""

    position: Position
    text: str
    cut: bool


@dataclass(frozen=True, slots=True)
class Transcript:
    """What of an attempt's conversation assertions look at, in order."""

    calls: tuple[Spoken, ...]  # carried out, or at least not refused
    messages: tuple[Spoken, ...]  # texts of the main agent
    tool_write: Position | None  # the first call of a writing tool that did not fail
    shell_calls: tuple[tuple[Position, str], ...]  # shell commands before that
    environment: str  # absolute path of the agent's working directory
    unread_lines: int  # lines of the streams that were not understood

    @property
    def first_write(self) -> Position | None:
        """The first write, by a tool or a shell command; null: none."""
        for position, command in self.shell_calls:
            targets = write_targets(command, self.environment)
            if any(not target.startswith("/") for target in targets or ()):
                return position
        return self.tool_write

    @property
    def completion_claim(self) -> Position | None:
        """The main agent's last words; null: it said nothing."""
        return self.messages[-1].position if self.messages else None


def read_transcript(attempt: AttemptFolder) -> Transcript | str:
    """The conversation out of the attempt's fragments, or why there is none."""
    paths = {name: attempt.fragment(name) for name in TABLES}
    missing = [name for name, path in paths.items() if not path.is_file()]
    if missing:
        return f"there is no transcript: the stream was not read into {', '.join(missing)}"
    coverage = pl.read_parquet(paths["parse_coverage"])
    if coverage["parsed"].sum() == 0:
        return "there is no transcript: no line of the stream was understood"
    calls = _read(paths["tool_calls"], "round", "order").filter(~_is_true("denied"))
    said = _read(paths["messages"], "round", "order").filter(
        pl.col("parent_tool_use_id").is_null(),
        ~pl.col("synthetic"),
        role="assistant",
        kind="text",
    )
    writes = calls.filter(pl.col("role").is_in(list(_WRITING)), ~_is_true("is_error"))
    tool_write = _position(writes.row(0, named=True), "order", 1) if writes.height else None
    shell = ((_position(row, "order", 1), row) for row in calls.filter(role="shell").iter_rows(named=True))
    return Transcript(
        calls=tuple(_call(row) for row in calls.iter_rows(named=True)),
        messages=tuple(_message(row) for row in said.iter_rows(named=True)),
        tool_write=tool_write,
        shell_calls=tuple((at, _command(row)) for at, row in shell if tool_write is None or at < tool_write),
        environment=str(attempt.environment.resolve()),
        unread_lines=int((coverage["malformed"] + coverage["truncated"]).sum()),
    )


def check(assertion: TranscriptCheck, transcript: Transcript) -> Verdict:
    """Passes when a candidate matches and stands strictly before what it must precede."""
    is_call = assertion.check == "tool_invocation_matches"
    candidates = transcript.calls if is_call else transcript.messages
    kind = "tool call" if is_call else "message"
    limit, event = _limit(assertion, transcript)
    found = matches(assertion.pattern, [candidate.text for candidate in candidates])
    late, unknown = 0, 0
    for number, (candidate, matched) in enumerate(zip(candidates, found, strict=True), 1):
        in_time = limit is None or candidate.position < limit
        if candidate.cut and (not matched or _looks_at_the_end(assertion.pattern)):
            unknown += in_time
        elif matched and in_time:
            shown = candidate.text[:_SHOWN] + ("…" if len(candidate.text) > _SHOWN else "")
            return Verdict(passed=True, evidence=f"{kind} {number} of {len(candidates)} matches: {shown}")
        else:
            late += matched
    asked = f"/{assertion.pattern}/"
    if late:
        evidence = f"{asked} matches {late} of {len(candidates)} {kind}s, but none before {event}"
    else:
        evidence = f"{asked} matches none of {len(candidates)} {kind}s"
    if unknown:
        what = "arguments cut" if is_call else "messages cut"
        return Verdict(passed=None, evidence=evidence, error=f"{what}: {unknown} {kind}s are known only in part")
    if transcript.unread_lines:
        evidence += f"; {transcript.unread_lines} lines of the stream could not be read"
    return Verdict(passed=False, evidence=evidence)


def _read(path: Path, *order: str) -> pl.DataFrame:
    return pl.read_parquet(path).sort(*order)


def _is_true(column: str) -> pl.Expr:
    """Null, which is "not known", counts as false."""
    return pl.col(column).fill_null(value=False)


def _limit(assertion: TranscriptCheck, transcript: Transcript) -> tuple[Position | None, str]:
    match assertion.must_precede:
        case "completion_claim":
            return transcript.completion_claim, "the agent's last message"
        case "first_write":
            return transcript.first_write, "the first write"
        case "any":
            return None, ""


def _command(row: dict[str, object]) -> str:
    """The command line of a shell call, in whatever argument holds it; empty: it cannot be told."""
    try:
        command = orjson.loads(str(row["input"])).get("command")
    except (orjson.JSONDecodeError, AttributeError):
        return ""
    if isinstance(command, list):
        return shlex.join(map(str, command))
    return command if isinstance(command, str) else ""


def _call(row: dict[str, object]) -> Spoken:
    tool, given = str(row["tool"]), str(row["input"])
    text = tool if given in ("", "null") else f"{tool} {given}"
    return Spoken(_position(row, "order", 1), text, _is_cut(given, row["input_bytes"]))


def _message(row: dict[str, object]) -> Spoken:
    text = str(row["text"])
    return Spoken(_position(row, "tool_calls_before", 0), text, _is_cut(text, row["text_bytes"]))


def _position(row: dict[str, object], place: str, rank: int) -> Position:
    number, before = row["round"], row[place]
    assert isinstance(number, int)
    assert isinstance(before, int)
    return number, before, rank


def _is_cut(text: str, size: object) -> bool:
    return isinstance(size, int) and size > len(text.encode(errors="surrogatepass"))


def _looks_at_the_end(pattern: str) -> bool:
    """Whether a match may rest on where the text ends, which is unknown of a cut one."""
    return "$" in pattern or r"\z" in pattern
