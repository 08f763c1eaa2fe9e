"""One attempt at a cell: a fresh environment, its rounds, the judgement, and a record in any case."""

from __future__ import annotations

import getpass
import os
import platform
import secrets
import traceback
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final

from skilltrial.data.attempt import AttemptRecord, ProcessRecord, RoundRecord
from skilltrial.data.digests import file_digest
from skilltrial.data.outcomes import Outcome
from skilltrial.data.plan import CampaignPlan, Cell
from skilltrial.data.store import AttemptFolder, CampaignFolder, Store, Workspace, write_bytes, write_model
from skilltrial.descriptors.model import HarnessDescriptor, of_plan
from skilltrial.tasks.dispatch import process, redact
from skilltrial.tasks.dispatch.command import build_argv, build_environment, uses_slot, values
from skilltrial.tasks.dispatch.facts import ProcessFacts
from skilltrial.tasks.dispatch.marks import MARK_NAME, new_mark
from skilltrial.tasks.dispatch.outcome import DETAIL_LIMIT, Ending, Note, Reason, classify
from skilltrial.tasks.dispatch.tidying import tidy
from skilltrial.tasks.ingest.records import StreamSummary
from skilltrial.tasks.ingest.sinks import NullSink
from skilltrial.tasks.ingest.stream import read_stream
from skilltrial.tasks.staging.provision import provision

ERROR_FILE: Final = "error.txt"
"""In an attempt's folder: the traceback of a fault in our own code."""

FINAL_MESSAGE: Final = "final-message.md"


@dataclass(slots=True)
class _Progress:
    """What is known of an attempt so far; the record is made of it, however far it came."""

    started_at: datetime
    workspace: Workspace
    session_id: str
    ticket: int
    baseline: str = ""
    destroyed: bool = False  # the project was no longer there at the end
    rounds: list[RoundRecord] = field(default_factory=list)
    summary: StreamSummary | None = None
    ending: Ending | None = None


def run_attempt(
    plan: CampaignPlan,
    cell: Cell,
    store: Store,
    *,
    on_start: Callable[[AttemptFolder], None] | None = None,
    operator: Mapping[str, str] = os.environ,
) -> AttemptRecord:
    """Try the cell once and return the record, which is on disk by then.

    `on_start` gets the attempt's folder before anything runs; `operator` is the environment that names of
    `pass_env` are looked up in. A fault of our own code ends in the outcome evaluator_error, with what was
    written so far in place. Only an interrupt of this thread or a kill leaves an attempt without a record.
    """
    campaign, descriptor = store.campaign(plan.campaign), of_plan(plan)
    attempt = campaign.cell(cell).begin()
    progress = _Progress(datetime.now(UTC), _new_workspace(store), str(uuid.uuid4()), process.ticket())
    hidden = redact.secret_values(operator[name] for name in plan.spec.pass_env if name in operator)
    try:
        try:
            if on_start is not None:
                on_start(attempt)
            _carry_out(plan, cell, campaign, attempt, descriptor, progress, operator, hidden)
        finally:
            if progress.baseline:
                template = campaign.template(cell.eval_id, cell.condition)
                progress.destroyed = not tidy(progress.workspace, hidden, template)
    except Exception as error:  # noqa: BLE001 (whatever it is, the attempt gets its record)
        _note_fault(attempt, progress, error, hidden)
    record = _record(plan, cell, store, attempt, progress)
    write_model(attempt.record_path, record)
    return record


def _carry_out(
    plan: CampaignPlan,
    cell: Cell,
    campaign: CampaignFolder,
    attempt: AttemptFolder,
    descriptor: HarnessDescriptor,
    progress: _Progress,
    operator: Mapping[str, str],
    hidden: list[str],
) -> None:
    workspace = progress.workspace
    progress.baseline = provision(campaign.template(cell.eval_id, cell.condition), workspace)
    attempt.environment.symlink_to(os.path.relpath(workspace.project, attempt.root))
    write_bytes(attempt.prompt_path, _prompt(plan, cell))
    slots = values(plan, cell, descriptor, campaign, workspace, session_id=progress.session_id, user=_user(operator))
    argv = build_argv(descriptor, slots)
    environment = build_environment(descriptor, slots, plan.spec.env, plan.spec.pass_env, operator)
    environment[MARK_NAME] = new_mark(campaign.root)
    left = plan.spec.timeout_s
    for number, prompt in enumerate([attempt.prompt_path], start=1):
        record = process.run_round(
            argv,
            environment,
            workspace.project,
            process.RoundFiles.inside(attempt.round(number), prompt),
            process.Limits(deadline_s=left, silence_s=plan.spec.silence_s),
            parser=descriptor.transcript.parser,
            secrets=hidden,
            ticket=progress.ticket,
        )
        left -= record.duration_ms / 1000
        _judge_round(attempt, descriptor, progress, number, argv, record, hidden)
        if progress.ending is None or progress.ending.outcome is not Outcome.COMPLETED or left <= 0:
            break
    _keep_final_message(attempt, progress)


def _judge_round(
    attempt: AttemptFolder,
    descriptor: HarnessDescriptor,
    progress: _Progress,
    number: int,
    argv: list[str],
    record: ProcessRecord,
    hidden: list[str],
) -> None:
    """Read what the round wrote, and take down how it ended."""
    events, stderr = attempt.events(number), attempt.stderr(number)
    digest = file_digest(events) if events.is_file() else None
    progress.rounds.append(
        RoundRecord(
            round=number,
            argv=tuple(redact.scrub(text, hidden) for text in argv),
            process=record,
            events_digest=digest,
            session_id=None,
        )
    )
    parser = descriptor.transcript.parser
    if digest is not None:
        summary = read_stream(events, NullSink(), parser=parser, role=descriptor.tools.role)
    else:
        summary = StreamSummary(descriptor.label, parser, parser_version=0)
    session = next(iter(summary.init_session_ids or summary.session_ids), None)
    progress.rounds[-1] = progress.rounds[-1].model_copy(update={"session_id": session})
    progress.summary = summary
    facts = ProcessFacts(
        ended_by=record.ended_by,
        exit_code=record.exit_code,
        stderr=stderr.read_bytes().decode(errors="replace") if stderr.is_file() else "",
        error=redact.scrub(record.error, hidden) if record.error else None,
    )
    expected = progress.session_id if uses_slot(descriptor, "session_id") else None
    progress.ending = classify(facts, summary, expected)


def _note_fault(attempt: AttemptFolder, progress: _Progress, error: Exception, hidden: list[str]) -> None:
    text = redact.scrub("".join(traceback.format_exception(error)), hidden)
    write_bytes(attempt.root / ERROR_FILE, text.encode(errors="replace"))
    detail = redact.scrub(f"{type(error).__name__}: {error}", hidden)
    progress.ending = Ending(Outcome.EVALUATOR_ERROR, Reason.EXCEPTION, detail[:DETAIL_LIMIT], ())


def _record(plan: CampaignPlan, cell: Cell, store: Store, attempt: AttemptFolder, progress: _Progress) -> AttemptRecord:
    summary, ending = progress.summary, progress.ending
    assert ending is not None
    notes = list(ending.notes)
    if any(done.process.leftovers for done in progress.rounds):
        notes.append(Note.LEFTOVER_PROCESSES)
    if progress.destroyed:
        notes.append(Note.PROJECT_DESTROYED)
    return AttemptRecord(
        campaign=plan.campaign,
        eval_id=cell.eval_id,
        condition=cell.condition,
        repetition=cell.repetition,
        attempt=attempt.number,
        cell_digest=cell.digest,
        outcome=ending.outcome,
        reason=ending.reason,
        detail=ending.detail,
        notes=tuple(notes),
        started_at=progress.started_at,
        duration_ms=sum(done.process.duration_ms for done in progress.rounds),
        workspace=progress.workspace.root.relative_to(store.workspaces).as_posix(),
        baseline=progress.baseline,
        prompt_digest=sha256(_prompt(plan, cell)).hexdigest(),
        harness=plan.harness.label,
        cli_version=summary.cli_version if summary else None,
        model=summary.model if summary else None,
        permission_mode=summary.permission_mode if summary else None,
        session_id=progress.rounds[0].session_id if progress.rounds else None,
        cost_usd=summary.cost_usd if summary else None,
        worker=platform.node(),
        rounds=tuple(progress.rounds),
    )


def _keep_final_message(attempt: AttemptFolder, progress: _Progress) -> None:
    if progress.summary is not None and progress.summary.final_text is not None:
        write_bytes(attempt.outputs / FINAL_MESSAGE, progress.summary.final_text.encode(errors="replace"))


def _prompt(plan: CampaignPlan, cell: Cell) -> bytes:
    """The first prompt, byte for byte the same in every arm."""
    return plan.planned_eval(cell.eval_id).eval.prompt.encode()


def _new_workspace(store: Store) -> Workspace:
    """A workspace that nobody has yet; its name is random and short, since sockets lie below it."""
    while True:
        workspace = store.workspace(secrets.token_hex(4))
        if not workspace.root.exists():
            return workspace


def _user(operator: Mapping[str, str]) -> str:
    """The operator's name, which git and shells want to know; neutral where there is none."""
    try:
        return operator.get("USER") or getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "user"
