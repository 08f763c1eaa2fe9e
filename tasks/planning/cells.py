"""The cells of a plan: what each depends on, and in which order they are dispatched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from skilltrial.data.digests import digest
from skilltrial.data.evals import Eval
from skilltrial.data.plan import Cell, PlannedCondition, PlannedEval, PlannedHarness, Template
from skilltrial.data.spec import CampaignSpec
from skilltrial.descriptors.model import HarnessDescriptor

CELL_VERSION: Final = 1
"""Raised when a cell of the same inputs would be dispatched differently."""

TEMPLATE_VERSION: Final = 1
"""Raised when a template of the same inputs would be built differently."""

_NOT_DISPATCHED: Final = frozenset({"title", "costs_money", "install_hint", "version", "tools", "transcript"})
"""Parts of a descriptor that a dispatched process never meets: they serve people, ingest and grading."""


def templates_of(
    evals: Sequence[PlannedEval], conditions: Sequence[PlannedCondition], descriptor: HarnessDescriptor
) -> tuple[Template, ...]:
    """One template for each eval and condition, in that order."""
    return tuple(
        Template(
            eval_id=planned.eval.id,
            condition=condition.name,
            digest=digest(
                {
                    "schema": TEMPLATE_VERSION,
                    "codebase": planned.codebase and planned.codebase.key,
                    "branch": planned.codebase and planned.codebase.branch,
                    "files": planned.files_digest,
                    "treatment": _treatment(condition),
                    "skills_folder": descriptor.skills.folder,
                    "config_folders": descriptor.skills.config_folders,
                }
            ),
        )
        for planned in evals
        for condition in conditions
    )


def cells_of(
    spec: CampaignSpec,
    evals: Sequence[PlannedEval],
    conditions: Sequence[PlannedCondition],
    harness: PlannedHarness,
) -> tuple[Cell, ...]:
    """Every cell in dispatch order.

    A block is one eval's and repetition's arms, dispatched side by side so that rate limits and model drift
    hit them alike. Blocks, and the arms within each, stand in the order of a hash over the seed: any order
    is as likely as any other, it is the same on every machine, and an added eval leaves the others' order.
    """
    blocks = sorted(
        ((planned, repetition) for planned in evals for repetition in range(1, planned.repetitions + 1)),
        key=lambda block: digest(["block", spec.seed, block[0].eval.id, block[1]]),
    )
    common = _common(spec, harness)
    return tuple(
        cell
        for number, (planned, repetition) in enumerate(blocks)
        for cell in _arms(number, planned, repetition, conditions, common, spec.seed)
    )


def _arms(
    block: int,
    planned: PlannedEval,
    repetition: int,
    conditions: Sequence[PlannedCondition],
    common: dict[str, object],
    seed: int,
) -> Iterator[Cell]:
    ordered = sorted(conditions, key=lambda arm: digest(["arm", seed, planned.eval.id, repetition, arm.name]))
    for condition in ordered:
        depends_on = {
            **common,
            **_task(planned.eval),
            "files": planned.files_digest,
            "codebase": planned.codebase and planned.codebase.key,
            "branch": planned.codebase and planned.codebase.branch,
            "treatment": _treatment(condition),
            "condition": condition.name,
            "repetition": repetition,
        }
        yield Cell(
            eval_id=planned.eval.id,
            condition=condition.name,
            repetition=repetition,
            block=block,
            digest=digest(depends_on),
        )


def _task(entry: Eval) -> dict[str, object]:
    """What the agent is asked, and how the conversation goes on."""
    return {
        "eval": entry.id,
        "prompt": entry.prompt,
        "turns": entry.turns,
        "responder": entry.responder,
        "plan_mode": entry.plan_mode,
        "guard": entry.guard,
    }


def _common(spec: CampaignSpec, harness: PlannedHarness) -> dict[str, object]:
    """What all cells of a campaign depend on; how many run at once or are tried again is not among it."""
    return {
        "schema": CELL_VERSION,
        "descriptor": {name: value for name, value in harness.descriptor.items() if name not in _NOT_DISPATCHED},
        "cli_version": harness.cli_version,
        "harness_inputs": harness.inputs,
        "model": spec.model,
        "permission_mode": spec.permission_mode,
        "allowed_tools": spec.allowed_tools,
        "env": spec.env,
        "pass_env": sorted(set(spec.pass_env)),
        "timeout_s": spec.timeout_s,
        "silence_s": spec.silence_s,
        "max_turns": spec.max_turns,
        "budget_usd": spec.budget_usd,
    }


def _treatment(condition: PlannedCondition) -> list[list[str]]:
    return [[skill.slug, skill.digest] for skill in condition.skills]
