"""Grading an attempt: what changed is measured first, then every assertion is decided on its own.

`grading/grade.json`, written last, keeps each verdict with a digest of all that it depends on: grading again
decides only what has changed, or had no verdict. One check that fails to run leaves the others alone.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from skilltrial.data.attempt import AttemptRecord
from skilltrial.data.digests import digest, file_digest
from skilltrial.data.errors import SkilltrialError, StoreConflict
from skilltrial.data.evals import Assertion, CommandCheck, DiffScope, LlmJudge, TranscriptCheck
from skilltrial.data.grading import (
    DIFF_SCHEMA,
    GRADE_SCHEMA,
    GRADER_VERSION,
    DiffRecord,
    FileChange,
    GradedAssertion,
    GradeRecord,
    Verdict,
)
from skilltrial.data.outcomes import policy
from skilltrial.data.plan import CampaignPlan, Cell, PlannedEval
from skilltrial.data.store import AttemptFolder, CampaignFolder, kept_model, write_bytes, write_model
from skilltrial.data.tables import TABLES
from skilltrial.tasks.dispatch import process
from skilltrial.tasks.grading import command, scope, transcript
from skilltrial.tasks.grading.diff import measure
from skilltrial.tasks.grading.shell import CheckCancelled
from skilltrial.tasks.staging.template import REPOSITORY, template_record

T = TypeVar("T")

EVIDENCE_LIMIT: Final = 4096
PATCH: Final = "diff.patch"


def grade_attempt(
    plan: CampaignPlan, cell: Cell, record: AttemptRecord, campaign: CampaignFolder, attempt: AttemptFolder
) -> None:
    """Write the fragments `diff_files` and `assertions` of a scored attempt; nothing for an excluded one.

    No fragment `diff_files` means that the changes could not be measured, an empty one that there are none.
    Raises `CheckCancelled`, with nothing written, when the run ends meanwhile.
    """
    if not policy(record.outcome).graded:
        return
    planned = plan.planned_eval(cell.eval_id)
    ticket = process.ticket()
    command.remove_leftovers(attempt)
    diff = _attempted(lambda: _diff(record, campaign, attempt))
    graded = _grade(planned, campaign, attempt, diff, ticket)
    if isinstance(diff, DiffRecord):
        _write_fragment(attempt, "diff_files", (record.identity | _file_row(file) for file in diff.files))
    _write_fragment(attempt, "assertions", (record.identity | _row(one, planned.grading_digest) for one in graded))
    write_model(
        attempt.grading / "grade.json", GradeRecord(grading_digest=planned.grading_digest, assertions=tuple(graded))
    )


def is_graded(plan: CampaignPlan, cell: Cell, attempt: AttemptFolder) -> bool:
    """Whether every assertion has a verdict that fits the plan, and both fragments are there."""
    kept = kept_model(attempt.grading / "grade.json", GradeRecord)
    return (
        kept is not None
        and kept.grading_digest == plan.planned_eval(cell.eval_id).grading_digest
        and all(one.verdict.passed is not None for one in kept.assertions)
        and all(attempt.fragment(name).is_file() for name in ("assertions", "diff_files"))
    )


def _diff(record: AttemptRecord, campaign: CampaignFolder, attempt: AttemptFolder) -> DiffRecord:
    """What the attempt changed: measured once, before anything held-out exists anywhere near the environment."""
    path = attempt.grading / "diff.json"
    kept = kept_model(path, DiffRecord)
    if kept is not None and kept.schema_version == DIFF_SCHEMA and kept.baseline == record.baseline:
        return kept
    folder = campaign.template(record.eval_id, record.condition)
    template = template_record(folder)
    if template is None or template.baseline != record.baseline:
        raise StoreConflict(
            f"the template that the attempt started from ({record.baseline[:12]}) is gone from {folder}"
        )
    patch = attempt.outputs / PATCH
    diff = measure(folder / REPOSITORY, template, attempt.environment, patch, root=attempt.root)
    write_model(path, diff)
    return diff


def _grade(
    planned: PlannedEval, campaign: CampaignFolder, attempt: AttemptFolder, diff: DiffRecord | str, ticket: int
) -> list[GradedAssertion]:
    kept = kept_model(attempt.grading / "grade.json", GradeRecord)
    earlier = kept.assertions if kept is not None and kept.schema_version == GRADE_SCHEMA else ()
    decided = {one.digest: one for one in earlier if one.verdict.passed is not None}
    graded = []
    for assertion in planned.eval.assertions:
        key = digest([GRADER_VERSION, assertion, _depends_on(assertion, planned, attempt, diff)])
        graded.append(decided.get(key) or _decide(assertion, key, planned, campaign, attempt, diff, ticket))
    return graded


def _depends_on(
    assertion: Assertion, planned: PlannedEval, attempt: AttemptFolder, diff: DiffRecord | str
) -> list[str | None]:
    """Digests of what a verdict rests on besides the assertion, within one attempt."""
    match assertion:
        case TranscriptCheck():
            paths = [attempt.fragment(name) for name in transcript.TABLES]
            return [file_digest(path) if path.is_file() else None for path in paths]
        case CommandCheck():
            return [planned.heldout_digest] if assertion.setup_files else []
        case DiffScope():
            return [diff.tree if isinstance(diff, DiffRecord) else None]
        case LlmJudge():
            return []


def _decide(
    assertion: Assertion,
    key: str,
    planned: PlannedEval,
    campaign: CampaignFolder,
    attempt: AttemptFolder,
    diff: DiffRecord | str,
    ticket: int,
) -> GradedAssertion:
    begun = time.monotonic()
    found = _attempted(lambda: _check(assertion, planned, campaign, attempt, diff, ticket))
    verdict = found if isinstance(found, Verdict) else Verdict(passed=None, evidence="", error=found)
    duration_ms = round((time.monotonic() - begun) * 1000)
    return GradedAssertion(
        assertion_id=assertion.id, kind=assertion.type, digest=key, verdict=verdict, duration_ms=duration_ms
    )


def _check(
    assertion: Assertion,
    planned: PlannedEval,
    campaign: CampaignFolder,
    attempt: AttemptFolder,
    diff: DiffRecord | str,
    ticket: int,
) -> Verdict | str:
    match assertion:
        case TranscriptCheck():
            spoken = transcript.read_transcript(attempt)
            return spoken if isinstance(spoken, str) else transcript.check(assertion, spoken)
        case CommandCheck():
            return command.check(assertion, campaign.source(planned.heldout_digest), attempt, ticket=ticket)
        case DiffScope():
            return diff if isinstance(diff, str) else scope.check(assertion, diff)
        case LlmJudge():
            return "needs judges, not yet built"


def _attempted(step: Callable[[], T | str]) -> T | str:
    """What a step gives, or why it gave nothing: one check that cannot be carried out must not stop the others."""
    try:
        return step()
    except CheckCancelled:
        raise
    except Exception as error:  # noqa: BLE001 (whatever it is, it becomes the reason for the missing verdict)
        return str(error) if isinstance(error, SkilltrialError) else f"{type(error).__name__}: {error}"


def _file_row(change: FileChange) -> dict[str, Any]:
    return {**change.model_dump(), "binary": change.binary}


def _row(graded: GradedAssertion, grading_digest: str) -> dict[str, Any]:
    verdict = graded.verdict
    return {
        "assertion_id": graded.assertion_id,
        "kind": graded.kind,
        "passed": verdict.passed,
        "evidence": verdict.evidence[:EVIDENCE_LIMIT],
        "error": verdict.error,
        "duration_ms": graded.duration_ms,
        "artifacts": list(verdict.artifacts),
        "grading_digest": grading_digest,
    }


def _write_fragment(attempt: AttemptFolder, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
    content = io.BytesIO()
    TABLES[table].frame(rows).write_parquet(content)
    write_bytes(attempt.fragment(table), content.getvalue())
