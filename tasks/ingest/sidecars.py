"""What lies beside an event stream on disk and tells how its process ended."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import orjson
from pydantic import ValidationError

from skilltrial.data.attempt import EndedBy, ProcessRecord
from skilltrial.tasks.dispatch.facts import ProcessFacts
from skilltrial.tasks.ingest.records import StreamSummary
from skilltrial.tasks.ingest.values import flag, number, string, whole

STDERR_BYTES: Final = 1 << 16
"""Bytes read from the end of a file of stderr: that is where a CLI says why it gave up."""


@dataclass(frozen=True, slots=True)
class Sidecars:
    """What was found. Nulls: not told."""

    files: tuple[Path, ...] = ()
    facts: ProcessFacts = field(default_factory=ProcessFacts)
    killed: bool = False  # we ended the process, and nothing says why
    harness: str | None = None  # as whoever recorded the stream calls it
    resumed_from: str | None = None  # the session that the process went on with
    problems: tuple[str, ...] = ()  # of files that are there and cannot be used

    def facts_for(self, summary: StreamSummary) -> ProcessFacts:
        """The facts for the judgement of that stream.

        Of the reasons to end a process, silence is the one that is left when none is told. A stream that
        breaks off inside a line was not silent, and then only its own end speaks.
        """
        if not self.killed or summary.coverage.truncated:
            return self.facts
        return replace(self.facts, ended_by=EndedBy.SILENCE)


def sidecars(stream: Path) -> Sidecars:
    """Look beside a stream: `process.json`, `<stem>.meta.json` or `meta.json`, `<stem>.stderr` or `stderr.log`.

    `process.json` is what skilltrial itself keeps of a round. A meta file is a JSON object with any of
    `exit_code`, `killed_by_us`, `timeout`, `silent_seconds`, `seconds_between_result_and_kill`, `stderr`,
    `resumed_from` and `harness`. Never raises.
    """
    found, problems = _meta(stream)
    record = stream.with_name("process.json")
    if record.is_file():
        try:
            process = ProcessRecord.model_validate_json(record.read_bytes())
        except (OSError, ValidationError) as error:
            problems.append(f"{record} cannot be used: {error}")
        else:
            facts = replace(found.facts, ended_by=process.ended_by, exit_code=process.exit_code, error=process.error)
            found = replace(found, files=(*found.files, record), facts=facts, killed=False)
    if not found.facts.stderr:
        found = _with_stderr(stream, found, problems)
    return replace(found, problems=tuple(problems))


def _meta(stream: Path) -> tuple[Sidecars, list[str]]:
    for path in (stream.with_suffix(".meta.json"), stream.with_name("meta.json")):
        if path.is_file() and path != stream:
            try:
                told = orjson.loads(path.read_bytes())
            except (OSError, orjson.JSONDecodeError) as error:
                return Sidecars(), [f"{path} cannot be used: {error}"]
            if not isinstance(told, dict):
                return Sidecars(), [f"{path} cannot be used: it holds no JSON object"]
            return _told(path, told), []
    return Sidecars(), []


def _told(path: Path, told: dict[str, Any]) -> Sidecars:
    exit_code = whole(told.get("exit_code"))
    ended_by = None
    if flag(told.get("timeout")):
        ended_by = EndedBy.DEADLINE
    elif number(told.get("silent_seconds")):
        ended_by = EndedBy.SILENCE
    elif number(told.get("seconds_between_result_and_kill")):
        ended_by = EndedBy.LINGERING
    killed = flag(told.get("killed_by_us")) is True
    if ended_by is None and not killed and exit_code is not None:
        ended_by = EndedBy.EXIT
    facts = ProcessFacts(ended_by, exit_code, string(told.get("stderr")) or "")
    return Sidecars(
        (path,),
        facts,
        killed and ended_by is None,
        string(told.get("harness")) or string(told.get("cli")),
        string(told.get("resumed_from")),
    )


def _with_stderr(stream: Path, found: Sidecars, problems: list[str]) -> Sidecars:
    for path in (stream.with_suffix(".stderr"), stream.with_name("stderr.log")):
        if path.is_file():
            try:
                with path.open("rb") as handle:
                    handle.seek(max(path.stat().st_size - STDERR_BYTES, 0))
                    text = handle.read().decode("utf-8", "replace")
            except OSError as error:
                problems.append(f"{path} cannot be used: {error.strerror or error}")
                return found
            return replace(found, files=(*found.files, path), facts=replace(found.facts, stderr=text))
    return found
