"""Plan: resolve what a campaign asks for, and freeze it in the store."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from skilltrial.data.plan import CampaignPlan
from skilltrial.data.spec import CampaignSpec
from skilltrial.data.store import Store
from skilltrial.tasks.planning.freeze import freeze
from skilltrial.tasks.planning.plan import make_plan


@task(name="plan", cache_policy=NO_CACHE, persist_result=False)
def plan_campaign(spec: CampaignSpec, store: Store) -> CampaignPlan:
    """Resolve the spec against live folders, and copy what it names into the campaign; never cached."""
    plan = make_plan(spec)
    freeze(plan, store.campaign(plan.campaign))
    return plan
