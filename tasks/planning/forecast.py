"""What running a plan now would dispatch, seen from what the store holds already."""

from __future__ import annotations

from skilltrial.data.plan import CampaignPlan, Forecast
from skilltrial.data.store import CampaignFolder
from skilltrial.descriptors.model import of_plan


def forecast(plan: CampaignPlan, folder: CampaignFolder) -> Forecast:
    """Counts of cells and dispatches. The budget covers one try at each unsettled cell, since most need no second."""
    settled = len(folder.settled(plan))
    unsettled = len(plan.cells) - settled
    return Forecast(
        cells=len(plan.cells),
        settled=settled,
        dispatches=unsettled,
        costs_money=of_plan(plan).costs_money,
        budget_usd=None if plan.spec.budget_usd is None else plan.spec.budget_usd * unsettled,
    )
