"""Stage: one immutable template repository for each (eval, condition)."""

from __future__ import annotations

from typing import Any

from prefect import task

from skilltrial.data.plan import CampaignPlan, Template
from skilltrial.data.store import CampaignFolder
from skilltrial.tasks.staging.template import build


def _key(_: object, arguments: dict[str, Any]) -> str:
    template: Template = arguments["template"]
    return f"stage/{template.eval_id}/{template.condition}/{template.digest}"


@task(
    name="stage",
    task_run_name="stage {template.eval_id}/{template.condition}",
    cache_key_fn=_key,
    result_serializer="json",
)
def stage_template(plan: CampaignPlan, template: Template, folder: CampaignFolder) -> str:
    """Build the template unless it stands already; returns the commit that attempts start from."""
    return build(plan, template, folder).baseline
