"""An account of a stream as text for a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from skilltrial.data.outcomes import Counting, Outcome, policy
from skilltrial.tasks.ingest.account import Account

_CELL_CHARACTERS: Final = 60
_TEXTS: Final = frozenset({"input", "result", "reason", "text", "path", "evidence"})
_FINAL_TEXT: Final = 600
_LISTED: Final = 8


_SHOWN: Final = {
    "tool_calls": ("order", "tool", "input", "result", "is_error", "denied", "parent_tool_use_id"),
    "denials": ("order", "tool", "source", "reason", "evidence"),
    "session_surface": ("kind", "name", "source", "version", "status"),
    "messages": ("order", "role", "kind", "text", "model"),
}
"""Columns of a table that a person is shown; JSON has them all."""


def account_text(account: Account) -> RenderableType:
    """What happened, in some ten lines: a heading, then one line for each thing that is known."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in _lines(account, account.document()):
        grid.add_row(name, value)
    return Group(Text(account.file, style="bold"), grid)


def table_text(file: str, name: str, rows: list[dict[str, Any]], left_off: int) -> RenderableType:
    """Rows of a table, in the columns that tell most; those that are null throughout are left out."""
    heading = Text(f"{file}: {name}", style="bold")
    if not rows:
        return Group(heading, Text("no rows", style="dim"))
    wanted = _SHOWN.get(name, tuple(rows[0]))
    columns = [column for column in wanted if any(row[column] is not None for row in rows)]
    texts = [column for column in columns if column in _TEXTS]
    table = Table(box=None, header_style="dim", pad_edge=False, expand=bool(texts))
    for column in columns:
        # texts share what the others leave of the line
        table.add_column(column, overflow="ellipsis", no_wrap=True, ratio=1 if column in texts else None)
    for row in rows:
        table.add_row(*(Text(_cell(row[column])) for column in columns))
    more = [Text(f"{left_off} more rows; --limit shows more", style="dim")] if left_off else []
    return Group(heading, table, *more)


def _lines(account: Account, document: dict[str, Any]) -> Iterator[tuple[str, Text]]:
    version = f" {document['cli_version']}" if document["cli_version"] else ""
    model = f", {document['model']}" if document["model"] else ""
    yield "written by", Text(f"{document['harness']}{version}{model}")
    yield "outcome", _outcome(account.ending.outcome, document)
    if document["detail"]:
        yield "detail", Text(document["detail"])
    yield "calls", Text(_calls(document))
    yield "denials", Text(_denials(document))
    yield "tokens", Text(_usage(document))
    yield "cost", Text("not told" if document["cost_usd"] is None else f"${document['cost_usd']:.4f}")
    if document["skills"] is not None:
        yield "skills", Text(_names(document["skills"]))
    if document["skill_calls"]:
        yield "invoked", Text(_names(document["skill_calls"]))
    if document["notes"]:
        yield "notes", Text(", ".join(document["notes"]))
    yield "coverage", Text(_coverage(document))
    if document["sidecars"]:
        yield "beside it", Text(", ".join(document["sidecars"]))
    yield "final text", Text(_final(document["final_text"]))


def _outcome(outcome: Outcome, document: dict[str, Any]) -> Text:
    good = outcome is Outcome.COMPLETED
    colour = "green" if good else "red" if policy(outcome).counting is Counting.EXCLUDED else "yellow"
    reason = f" ({document['reason']})" if document["reason"] else ""
    return Text.assemble((outcome.value, colour), reason, f": {policy(outcome).meaning}")


def _calls(document: dict[str, Any]) -> str:
    calls, answered = document["tool_calls"], document["tool_calls_answered"]
    text = f"{calls}, all answered" if calls and calls == answered else f"{calls}, {answered} answered"
    failed, below = len(document["failed_tool_calls"]), sum(document["subagents"].values())
    text += f", {failed} failed" if failed else ""
    return text + (f", {below} by sub-agents" if below else "")


def _denials(document: dict[str, Any]) -> str:
    found = document["denials"]
    if found is None:
        return "not told by such streams"
    kinds = Counter(f"{denial['tool']} by {denial['source']}" for denial in found)
    listed = "; ".join(kind if number == 1 else f"{number} × {kind}" for kind, number in kinds.most_common(_LISTED))
    more = f"; {len(kinds) - _LISTED} more kinds" if len(kinds) > _LISTED else ""
    return f"{document['denial_count']}: {listed}{more}" if found else "none"


def _usage(document: dict[str, Any]) -> str:
    shown: list[str] = []
    for scope in ("main", "all"):
        usage = document["usage"][scope]
        if shown and usage == document["usage"]["main"]:
            shown.append("all: the same")
        elif usage is not None:
            counts = (usage["input_tokens"], usage["cache_read_input_tokens"], usage["cache_creation_input_tokens"])
            told = [f"{'?' if count is None else f'{count:,}'}" for count in (*counts, usage["output_tokens"])]
            shown.append(f"{scope}: {told[0]} in, {told[1]} cache read, {told[2]} cache written, {told[3]} out")
    at_least = " (at least)" if shown and document["usage_exact"] is False else ""
    return "; ".join(shown) + at_least if shown else "not told"


def _coverage(document: dict[str, Any]) -> str:
    coverage = document["coverage"]
    kinds = ("unknown_type", "malformed", "blank", "truncated")
    odd = [f"{coverage[kind]} {kind.replace('_', ' ')}" for kind in kinds if coverage[kind]]
    unknown = document["stream"]["unknown_types"]
    types = f" ({_names(unknown)})" if unknown else ""
    return ", ".join([f"{coverage['lines']} lines, {coverage['parsed']} read", *odd]) + types


def _final(text: str | None) -> str:
    if text is None:
        return "none"
    return (text if len(text) <= _FINAL_TEXT else text[: _FINAL_TEXT - 1] + "…") or '""'


def _names(names: list[str]) -> str:
    if not names:
        return "none"
    more = f", {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def _cell(value: object) -> str:
    text = "" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= _CELL_CHARACTERS else text[: _CELL_CHARACTERS - 1] + "…"
