"""`skilltrial schema`: the JSON schemas of the files that skilltrial reads and writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from cyclopts import Parameter

from skilltrial.flows.cli.output import emit_json

if TYPE_CHECKING:
    from pydantic import BaseModel

# name -> (module, class, does a person write it)
_MODELS: Final = {
    "benchmark": ("skilltrial.data.benchmark", "Benchmark", False),
    "campaign": ("skilltrial.data.spec", "CampaignSpec", True),
    "evals": ("skilltrial.data.evals", "EvalsFile", True),
    "plan": ("skilltrial.data.plan", "CampaignPlan", False),
    "attempt": ("skilltrial.data.attempt", "AttemptRecord", False),
}


def schema(
    name: Literal["benchmark", "campaign", "evals", "plan", "attempt"],
    *,
    json: Annotated[bool, Parameter(negative="")] = False,  # noqa: ARG001 - every command takes it
) -> int:
    """Print the JSON schema (draft 2020-12) of a file.

    Parameters
    ----------
    name
        benchmark.json, campaign.toml, evals.json, plan.json or attempt.json, without its ending.
    json
        Accepted as everywhere: a schema is always JSON.
    """
    emit_json(json_schema(name))
    return 0


def json_schema(name: str) -> dict[str, Any]:
    """The schema of what a person may write, or of what skilltrial writes."""
    import importlib

    module, attribute, written = _MODELS[name]
    model: type[BaseModel] = getattr(importlib.import_module(module), attribute)
    found = model.model_json_schema(mode="validation" if written else "serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}
