"""`attempt.json`: what one try at a cell did, written whether it succeeded or not."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from skilltrial.data.models import Kept
from skilltrial.data.outcomes import Outcome, policy
from skilltrial.data.plan import cell_label

ATTEMPT_SCHEMA = 1


class EndedBy(StrEnum):
    """What ended a process."""

    EXIT = "exit"  # it exited by itself, with a code or by a signal that is not ours
    DEADLINE = "deadline"
    SILENCE = "silence"
    CANCELLED = "cancelled"
    LINGERING = "lingering"  # it had written its result but did not exit
    NOT_STARTED = "not_started"


class ProcessRecord(Kept):
    """How one process ended. Durations are monotonic."""

    ended_by: EndedBy
    exit_code: int | None  # negative: ended by that signal; null: never started
    started_at: datetime  # UTC
    duration_ms: int
    stdout_bytes: int
    stderr_bytes: int  # all that was written; the file keeps a bounded part
    leftovers: int  # processes that outlived the CLI and were ended
    error: str | None = None  # why it could not be started


class RoundRecord(Kept):
    """One CLI process of an attempt. Rounds count from 1."""

    round: int
    argv: tuple[str, ...]  # without secrets
    process: ProcessRecord
    events_digest: str | None  # SHA-256 of the event file; null: there is none
    session_id: str | None  # as the CLI reported it


class AttemptRecord(Kept):
    """One try at a cell. `cell_digest` says which version of the cell it belongs to."""

    schema_version: int = ATTEMPT_SCHEMA
    campaign: str
    eval_id: str
    condition: str
    repetition: int
    attempt: int  # counts from 1
    cell_digest: str
    outcome: Outcome
    reason: str  # one of the closed reasons of tasks/dispatch/outcome.py, or ""
    detail: str = ""  # the CLI's own words, shortened
    notes: tuple[str, ...] = ()
    started_at: datetime  # UTC
    duration_ms: int  # monotonic; all rounds, without provisioning
    workspace: str  # folder of the environment, relative to the store's workspaces
    baseline: str  # commit id that the environment started from
    prompt_digest: str  # SHA-256 of the prompt's bytes
    harness: str
    cli_version: str | None
    model: str | None
    permission_mode: str | None
    session_id: str | None
    cost_usd: float | None = None  # list price of all rounds, as the CLI tells it; null: not told
    worker: str  # host name
    rounds: tuple[RoundRecord, ...]

    @property
    def settled(self) -> bool:
        """Whether the cell need not be tried again after this attempt."""
        return policy(self.outcome).settled

    @property
    def cell(self) -> str:
        """The label of the cell."""
        return cell_label(self.eval_id, self.condition, self.repetition)

    @property
    def identity(self) -> dict[str, str | int]:
        """The columns that every table starts with (`data.tables.columns.IDENTITY`), for rows of this attempt."""
        return {
            "eval_id": self.eval_id,
            "condition": self.condition,
            "repetition": self.repetition,
            "attempt": self.attempt,
        }
