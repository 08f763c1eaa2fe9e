"""Preflight: refuse or warn before anything is dispatched."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from skilltrial.data.plan import CampaignPlan
from skilltrial.data.store import Store
from skilltrial.tasks.preflight.checks import passed


@task(name="preflight", cache_policy=NO_CACHE, persist_result=False)
def preflight(plan: CampaignPlan, store: Store) -> list[str]:
    """Examine the live machine and the templates; returns warnings, `PreflightRefused` names what must change."""
    return passed(plan, store)
