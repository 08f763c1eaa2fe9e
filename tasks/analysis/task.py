"""Aggregate: fragments become tables, tables become contrasts, verdicts and artifacts."""

from __future__ import annotations

from datetime import UTC, datetime

from prefect import task
from prefect.artifacts import create_markdown_artifact, create_table_artifact
from prefect.cache_policies import NO_CACHE

from skilltrial.data.benchmark import Benchmark
from skilltrial.data.plan import CampaignPlan
from skilltrial.data.store import Store, write_model
from skilltrial.tasks.analysis.benchmark import build
from skilltrial.tasks.analysis.compaction import compact
from skilltrial.tasks.analysis.summary import markdown, table_rows


@task(name="aggregate", cache_policy=NO_CACHE, persist_result=False)
def aggregate(plan: CampaignPlan, store: Store) -> Benchmark:
    """Compact the tables, write `benchmark.json`, and show both in Prefect's UI; never cached: it is cheap."""
    compact(plan, store)
    benchmark = build(plan, store, now=datetime.now(UTC))
    write_model(store.campaign(plan.campaign).benchmark_path, benchmark)
    key = artifact_key(plan.campaign)
    create_markdown_artifact(markdown(benchmark), key=f"{key}-verdict", description=f"Campaign {plan.campaign}")
    create_table_artifact(table_rows(benchmark), key=f"{key}-effects", description=f"Effects in {plan.campaign}")
    return benchmark


def artifact_key(campaign: str) -> str:
    """The campaign's name in the characters that Prefect allows in an artifact's key: a-z, 0-9 and dashes."""
    return "".join(character if character.isalnum() else "-" for character in campaign.lower())
