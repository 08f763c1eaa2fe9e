"""`skilltrial inspect`: what happened in an event stream on disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Parameter
from cyclopts.validators import Number

from skilltrial.flows.cli.output import complain, emit_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skilltrial.tasks.ingest.account import Account, Accountant

TABLES: Final = ("tool_calls", "denials", "usage", "session_surface", "messages", "parse_coverage")
"""The tables that one stream fills."""

SHOWN_ROWS: Final = 20
"""Rows of a table that a person is shown without `--limit`."""

_HARNESSES: Final = {"codex": "codex-items", "opencode": "opencode-events", "cline": "cline-json"}
"""Parsers of harnesses whose streams can be read although no descriptor can dispatch them."""


def inspect(
    *files: Annotated[str, Parameter(allow_leading_hyphen=True)],
    json: Annotated[bool, Parameter(negative="")] = False,
    table: str | None = None,
    harness: str | None = None,
    limit: Annotated[int | None, Parameter(validator=Number(gte=0))] = None,
) -> int:
    """Tell what happened in event streams: how each ended, its calls, denials, tokens, and how much was understood.

    Files beside a stream that tell how its process ended are used: process.json, meta.json, stderr.log.

    Parameters
    ----------
    files
        Event streams of Claude Code, Codex, OpenCode or Cline; folders with *.jsonl below them; - for stdin.
    json
        Print one JSON object a file (one a row with --table), one a line where there are several.
    table
        Print rows instead: tool_calls, denials, usage, session_surface, messages or parse_coverage.
    harness
        Who wrote the streams, if they do not tell by themselves.
    limit
        Print at most so many rows of the table (default: 20 for a person, all as JSON).
    """
    from skilltrial.data.errors import UnknownName
    from skilltrial.tasks.ingest.account import Accountant

    if table is not None and table not in TABLES:
        raise UnknownName("table of a stream", table, TABLES)
    if not files:
        complain("give at least one event stream, a folder, or - for stdin")
        return 2
    parser, role = _reading(harness)
    shown = limit if limit is not None or json else SHOWN_ROWS
    accountant = Accountant(parser, role, table, shown)
    accounts: list[Account] = []
    code = 0
    for name, account in _accounts(accountant, files):
        if isinstance(account, str):
            complain(f"{name}: {account}")
            code = 1
            continue
        for problem in account.beside.problems:
            complain(problem)
        if account.summary.parser == "unknown" and account.summary.coverage.bytes:
            complain(f"{name}: no event of a known kind is in it; --harness names who wrote it")
        if json and (len(files) > 1 or accounts or Path(files[0]).is_dir() or table is not None):
            _print_lines(account, table)
        elif json:
            emit_json(account.document())
        else:
            _print_text(account, table, separate=bool(accounts))
        accounts.append(account)
    return code


def _reading(harness: str | None) -> tuple[str | None, Any]:
    """The parser and the vocabulary of tools of a harness; null: the stream tells."""
    from skilltrial.data.errors import UnknownName
    from skilltrial.descriptors.loading import descriptor, labels

    if harness is None:
        return None, None
    if harness in _HARNESSES:
        return _HARNESSES[harness], None
    if harness not in labels():
        raise UnknownName("harness", harness, sorted({*labels(), *_HARNESSES}))
    found = descriptor(harness)
    return found.transcript.parser, found.tools.role


def _accounts(accountant: Accountant, files: tuple[str, ...]) -> Iterator[tuple[str, Account | str]]:
    """Each stream with its account, or with what keeps it from having one."""
    for name in files:
        path = Path(name)
        if name == "-":
            yield name, _of_stdin(accountant)
        elif path.is_dir():
            inside = sorted(path.rglob("*.jsonl"))
            if not inside:
                yield name, "no *.jsonl file is in this folder"
            for found in inside:
                yield str(found), _of_file(accountant, found, str(found))
        else:
            yield name, _of_file(accountant, path, name)


def _of_file(accountant: Accountant, path: Path, name: str) -> Account | str:
    try:
        account = accountant.read(path, file=name)
    except FileNotFoundError:
        return "there is no such file"
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    if account.summary.coverage.bytes == 0 and not account.beside.files:
        return "is empty, and nothing beside it tells of its process"
    return account


def _of_stdin(accountant: Accountant) -> Account | str:
    """A stream is read by its file, so stdin becomes one first."""
    import shutil
    import sys
    import tempfile

    with tempfile.TemporaryDirectory(prefix="skilltrial-") as folder:
        path = Path(folder) / "stdin.jsonl"
        with path.open("wb") as copy:
            shutil.copyfileobj(sys.stdin.buffer, copy)
        return _of_file(accountant, path, "-")


def _rows(account: Account, table: str) -> list[dict[str, Any]]:
    if table == "parse_coverage":
        from skilltrial.tasks.ingest.fragments import coverage_row

        return [coverage_row(account.summary, account.summary.coverage)]
    return account.sink.rows


def _print_lines(account: Account, table: str | None) -> None:
    import sys

    import orjson

    rows = [account.document()] if table is None else [{"file": account.file, **row} for row in _rows(account, table)]
    sys.stdout.buffer.writelines(orjson.dumps(row) + b"\n" for row in rows)
    sys.stdout.buffer.flush()


def _print_text(account: Account, table: str | None, *, separate: bool) -> None:
    from rich.console import Console

    from skilltrial.flows.cli.inspect_text import account_text, table_text

    console = Console(highlight=False, soft_wrap=True)
    if separate:
        console.print()
    if table is None:
        console.print(account_text(account))
    else:
        console.print(table_text(account.file, table, _rows(account, table), account.sink.left_off))
