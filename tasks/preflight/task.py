"""Preflight: refuse or warn before anything is dispatched."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from skilltrial.data.errors import PreflightRefused
from skilltrial.data.plan import CampaignPlan
from skilltrial.data.store import Store
from skilltrial.tasks.preflight.checks import Level, examine


@task(name="preflight", cache_policy=NO_CACHE, persist_result=False)
def preflight(plan: CampaignPlan, store: Store) -> list[str]:
    """Examine the live machine and the templates; returns warnings, `PreflightRefused` names what must change."""
    findings = examine(plan, store)
    refusals = [finding for finding in findings if finding.level is Level.REFUSE]
    if refusals:
        raise PreflightRefused(plan.campaign, [str(finding) for finding in refusals])
    return [str(finding) for finding in findings]
