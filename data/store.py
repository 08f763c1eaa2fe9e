"""The store: where everything lies, and the few ways of writing there that survive a kill.

    <home>/campaigns/<campaign>/plan.json
                                sources/<digest>/         frozen copies of skills, fixtures, inputs
                                codebases/<key>/          one checkout for each distinct codebase
                                templates/<eval>/<condition>/{repository/,template.json}
                                cells/<eval>/<condition>/r<k>/attempt-<n>/
                                cache/                    Prefect's results
                                benchmark.json
    <home>/tables/<table>/campaign=<campaign>/*.parquet   hive partitions, all campaigns
    <workspaces>/<id>/{project,home,config,tmp}/          what an attempt's agent can see

An agent sees its working directory, so workspaces have neutral names and lie apart from the
campaign: neither the condition nor the skill can be read from a path.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from skilltrial.data.attempt import AttemptRecord
from skilltrial.data.errors import StoreConflict, UnknownName
from skilltrial.data.plan import CampaignPlan, Cell

M = TypeVar("M", bound=BaseModel)

_ATTEMPT: Final = "attempt-"


@dataclass(frozen=True, slots=True)
class Store:
    """All campaigns of one home folder."""

    home: Path
    workspaces: Path

    @classmethod
    def open(cls, home: Path | None = None) -> Store:
        """The store at `home`, else at `SKILLTRIAL_HOME`, else in the platform's folder for a user's data.

        Workspaces go to `SKILLTRIAL_WORKSPACES`, else beside a named home's campaigns, else to the
        platform's data folder under a name that says nothing of a trial.
        """
        given = home or _from_environment("SKILLTRIAL_HOME")
        workspaces = _from_environment("SKILLTRIAL_WORKSPACES")
        if given is None or workspaces is None:
            import platformdirs

            user_data = platformdirs.user_data_path()
            workspaces = workspaces or (given / "workspaces" if given else user_data / "workspaces")
            given = given or user_data / "skilltrial"
        return cls(given.expanduser().resolve(), workspaces.expanduser().resolve())

    @property
    def tables(self) -> Path:
        """The folder of the hive-partitioned tables of all campaigns."""
        return self.home / "tables"

    def partition(self, table: str, campaign: str) -> Path:
        """The folder that holds one campaign's part of a table."""
        return self.tables / table / f"campaign={campaign}"

    def campaign(self, name: str) -> CampaignFolder:
        """The folder of one campaign, which need not exist yet."""
        return CampaignFolder(self.home / "campaigns" / name)

    def campaigns(self) -> list[str]:
        """Names of the campaigns that have a plan, sorted."""
        return sorted(path.parent.name for path in (self.home / "campaigns").glob("*/plan.json"))

    def planned(self, name: str) -> tuple[CampaignFolder, CampaignPlan]:
        """A campaign that was run before, with its plan; `UnknownName` lists the known ones."""
        folder = self.campaign(name)
        if not folder.plan_path.is_file():
            raise UnknownName("campaign", name, self.campaigns())
        return folder, read_model(folder.plan_path, CampaignPlan)

    def workspace(self, identifier: str) -> Workspace:
        """The workspace of that identifier, which need not exist yet."""
        return Workspace(self.workspaces / identifier)


@dataclass(frozen=True, slots=True)
class Workspace:
    """The private folders of one attempt: all that its agent is told about."""

    root: Path

    @property
    def project(self) -> Path:
        """The environment: the git repository the agent works in."""
        return self.root / "project"

    @property
    def home(self) -> Path:
        """`HOME` of the agent."""
        return self.root / "home"

    @property
    def config(self) -> Path:
        """The configuration folder of the agent CLI."""
        return self.root / "config"

    @property
    def tmp(self) -> Path:
        """`TMPDIR` of the agent; a short path, since CLIs put sockets there."""
        return self.root / "tmp"


@dataclass(frozen=True, slots=True)
class CampaignFolder:
    """One campaign's paths."""

    root: Path

    @property
    def name(self) -> str:
        """The campaign's name."""
        return self.root.name

    @property
    def plan_path(self) -> Path:
        """`plan.json`."""
        return self.root / "plan.json"

    @property
    def benchmark_path(self) -> Path:
        """`benchmark.json`."""
        return self.root / "benchmark.json"

    @property
    def cache(self) -> Path:
        """Prefect's results: a memo of what the store holds, never the record."""
        return self.root / "cache"

    def source(self, digest: str) -> Path:
        """The frozen copy whose content has this digest."""
        return self.root / "sources" / digest

    def codebase(self, key: str) -> Path:
        """The checkout of one codebase."""
        return self.root / "codebases" / key

    def template(self, eval_id: str, condition: str) -> Path:
        """The folder of one template: its `repository/` and its `template.json`, written last."""
        return self.root / "templates" / eval_id / condition

    def cell(self, cell: Cell) -> CellFolder:
        """The folder of one cell."""
        return CellFolder(self.root / "cells" / cell.label)

    def settled(self, plan: CampaignPlan) -> list[tuple[Cell, AttemptRecord]]:
        """The cells of the plan that need no dispatch, in its order, each with the attempt that settled it."""
        return [(cell, record) for cell, record in self.newest(plan) if record.settled]

    def newest(self, plan: CampaignPlan) -> list[tuple[Cell, AttemptRecord]]:
        """The cells of the plan that were tried, in its order, each with its newest finished attempt."""
        found = [(cell, self.cell(cell).newest(cell.digest)) for cell in plan.cells]
        return [(cell, record) for cell, record in found if record is not None]

    @property
    def lock_path(self) -> Path:
        """The lock of the campaign, last written when its holder took it; holds the holder's process id."""
        return self.root / ".lock"

    def holder(self) -> int | None:
        """The process that runs the campaign on this machine; null: none does. Only looks, never takes the lock."""
        import psutil

        try:
            pid, taken = int(self.lock_path.read_bytes()), self.lock_path.stat().st_mtime
            started = psutil.Process(pid).create_time()
        except (FileNotFoundError, ValueError, psutil.Error):
            return None
        # a younger process has only inherited the number; clocks differ by a tick
        return pid if started <= taken + 1 else None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the campaign for this process; `StoreConflict` when another one runs it.

        The lock is the kernel's, tied to an open file: it goes with its holder, killed or not.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        with self.lock_path.open("a+b") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                handle.seek(0)
                holder = handle.read().decode(errors="replace").strip() or "unknown"
                raise StoreConflict(
                    f"campaign {self.name!r} is being run by another process (pid {holder}); wait for it to end"
                ) from error
            handle.truncate(0)
            handle.write(str(os.getpid()).encode())
            handle.flush()
            try:
                yield
            finally:
                handle.truncate(0)  # a long-lived process holds several campaigns, one after the other


@dataclass(frozen=True, slots=True)
class CellFolder:
    """One cell's attempts."""

    root: Path

    def attempt(self, number: int) -> AttemptFolder:
        """The folder of one attempt, which need not exist yet."""
        return AttemptFolder(self.root / f"{_ATTEMPT}{number}")

    def attempts(self) -> list[AttemptFolder]:
        """Every attempt that was begun, oldest first."""
        found = [AttemptFolder(path) for path in self.root.glob(f"{_ATTEMPT}*") if _number_of(path).isdigit()]
        return sorted(found, key=lambda attempt: attempt.number)

    def records(self, cell_digest: str) -> list[AttemptRecord]:
        """The finished attempts that belong to this version of the cell, oldest first."""
        found = [attempt.record() for attempt in self.attempts()]
        return [record for record in found if record is not None and record.cell_digest == cell_digest]

    def newest(self, cell_digest: str) -> AttemptRecord | None:
        """The newest finished attempt at this version of the cell; null: there is none."""
        records = self.records(cell_digest)
        return records[-1] if records else None

    def settled(self, cell_digest: str) -> AttemptRecord | None:
        """The newest attempt at this version of the cell, if it settles the cell."""
        newest = self.newest(cell_digest)
        return newest if newest is not None and newest.settled else None

    def begin(self) -> AttemptFolder:
        """A new attempt folder, numbered after all earlier ones, finished or not."""
        earlier = self.attempts()
        folder = self.attempt(earlier[-1].number + 1 if earlier else 1)
        folder.root.mkdir(parents=True)
        return folder


@dataclass(frozen=True, slots=True)
class AttemptFolder:
    """One attempt's files. `env` is a link to the project folder of its workspace."""

    root: Path

    @property
    def number(self) -> int:
        """Counts from 1."""
        return int(_number_of(self.root))

    @property
    def record_path(self) -> Path:
        """`attempt.json`: without it the attempt never finished."""
        return self.root / "attempt.json"

    @property
    def environment(self) -> Path:
        """The agent's git repository."""
        return self.root / "env"

    @property
    def prompt_path(self) -> Path:
        """The first prompt, byte for byte."""
        return self.root / "prompt.txt"

    @property
    def outputs(self) -> Path:
        """What was taken from the attempt for people: the final message, the patch."""
        return self.root / "outputs"

    @property
    def fragments(self) -> Path:
        """This attempt's part of every table, one Parquet file each."""
        return self.root / "tables"

    def fragment(self, table: str) -> Path:
        """This attempt's part of one table; absent: nothing could be told."""
        return self.fragments / f"{table}.parquet"

    @property
    def grading(self) -> Path:
        """Evidence of the assertions."""
        return self.root / "grading"

    def events(self, number: int) -> Path:
        """The raw event stream of one round, as the CLI wrote it."""
        return self.round(number) / "events.jsonl"

    def stderr(self, number: int) -> Path:
        """A bounded part of what one round wrote to stderr."""
        return self.round(number) / "stderr.log"

    def round(self, number: int) -> Path:
        """The folder of one round."""
        return self.root / f"round-{number}"

    def record(self) -> AttemptRecord | None:
        """The finished record; null while there is none or it cannot be read."""
        return kept_model(self.record_path, AttemptRecord)


def read_model(path: Path, model: type[M]) -> M:
    """One JSON artifact as its model; `ValidationError` when it is not one, `OSError` when it is not there."""
    return model.model_validate_json(path.read_bytes())


def kept_model(path: Path, model: type[M]) -> M | None:
    """One JSON artifact as its model; null: it is not there, cut off, or of a version that this one cannot read."""
    try:
        return read_model(path, model)
    except (FileNotFoundError, NotADirectoryError, ValidationError):
        return None


def write_model(path: Path, value: BaseModel) -> None:
    """Write a model as indented JSON with a final newline, atomically."""
    write_bytes(path, orjson.dumps(value.model_dump(mode="json"), option=orjson.OPT_INDENT_2) + b"\n")


def write_bytes(path: Path, content: bytes) -> None:
    """Replace a file's content at once: a reader, or a kill, sees the old bytes or the new ones."""
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = scratch_path(path)
    try:
        with scratch.open("xb") as handle:
            handle.write(content)
            handle.flush()
            os.fsync(handle.fileno())
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def scratch_path(path: Path) -> Path:
    """A name beside `path` that nobody else uses, for content that is moved there when it is whole."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}.tmp")


def replace_folder(scratch: Path, target: Path) -> None:
    """Put a finished scratch folder in place of `target`, which may exist."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        old = scratch_path(target)
        target.rename(old)
        scratch.rename(target)
        shutil.rmtree(old, ignore_errors=True)
    else:
        scratch.rename(target)


def _number_of(attempt: Path) -> str:
    return attempt.name.removeprefix(_ATTEMPT)


def _from_environment(name: str) -> Path | None:
    value = os.environ.get(name)
    return Path(value) if value else None
