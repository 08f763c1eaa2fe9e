"""Ingest: an attempt's event streams become its fragments of the tables."""

from __future__ import annotations

from typing import Any

from prefect import task

from skilltrial.data.attempt import AttemptRecord
from skilltrial.data.digests import digest
from skilltrial.data.store import AttemptFolder
from skilltrial.descriptors.model import HarnessDescriptor
from skilltrial.tasks.ingest.fragments import ingest_attempt, parser_stamp


def _key(_: object, arguments: dict[str, Any]) -> str:
    record: AttemptRecord = arguments["record"]
    descriptor: HarnessDescriptor = arguments["descriptor"]
    content = digest([record.cell, record.attempt, [part.events_digest for part in record.rounds]])
    return f"ingest/{parser_stamp(descriptor)}/{content}"


@task(name="ingest", task_run_name="ingest {record.cell}", cache_key_fn=_key, result_serializer="json")
def ingest(record: AttemptRecord, attempt: AttemptFolder, descriptor: HarnessDescriptor) -> str:
    """Write the attempt's fragments unless they fit its streams and the parser; returns the cell's label."""
    ingest_attempt(attempt, record, descriptor)
    return record.cell
