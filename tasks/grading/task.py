"""Grade: an eval's assertions are decided on what the attempt left behind."""

from __future__ import annotations

from typing import Any

from prefect import task

from skilltrial.data.attempt import AttemptRecord
from skilltrial.data.digests import digest
from skilltrial.data.grading import GRADER_VERSION
from skilltrial.data.plan import CampaignPlan, Cell
from skilltrial.data.store import AttemptFolder, CampaignFolder
from skilltrial.descriptors.model import of_plan
from skilltrial.tasks.grading.grade import grade_attempt
from skilltrial.tasks.ingest.fragments import parser_stamp


def _key(_: object, arguments: dict[str, Any]) -> str:
    plan: CampaignPlan = arguments["plan"]
    cell: Cell = arguments["cell"]
    record: AttemptRecord = arguments["record"]
    graded = plan.planned_eval(cell.eval_id).grading_digest
    streams = [parser_stamp(of_plan(plan)), *(part.events_digest for part in record.rounds)]
    return f"grade/{GRADER_VERSION}/{digest([cell.digest, record.attempt, streams, graded])}"


@task(name="grade", task_run_name="grade {cell.label}", cache_key_fn=_key, result_serializer="json")
def grade(plan: CampaignPlan, cell: Cell, record: AttemptRecord, folder: CampaignFolder, attempt: AttemptFolder) -> str:
    """Decide the assertions whose verdict is not there yet; returns the cell's label."""
    grade_attempt(plan, cell, record, folder, attempt)
    return cell.label
