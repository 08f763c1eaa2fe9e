"""From a `CampaignSpec` to a `CampaignPlan`: everything resolved, digested and ordered; nothing written.

All that is wrong with what a person wrote is told at once: the spec, the skills, the evals, the codebases.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from skilltrial.data.digests import digest
from skilltrial.data.errors import InvalidInput, NotBuiltYet, Problem, UnknownName
from skilltrial.data.evals import Codebase, Eval, EvalsFile
from skilltrial.data.plan import CampaignPlan, PlannedCodebase, PlannedCondition, PlannedEval
from skilltrial.data.spec import CampaignSpec
from skilltrial.descriptors import loading
from skilltrial.descriptors.model import HarnessDescriptor
from skilltrial.tasks.planning.campaign_file import evals_path, resolve
from skilltrial.tasks.planning.cells import cells_of, templates_of
from skilltrial.tasks.planning.conditions import campaign_name, contrast_problems, contrasts_of, uncompared
from skilltrial.tasks.planning.evals import Reading, examine, fixtures, heldout
from skilltrial.tasks.planning.harness import input_problems, planned_harness
from skilltrial.tasks.planning.paths import overlap
from skilltrial.tasks.planning.skill import not_staged
from skilltrial.tasks.planning.sources import planned_codebase
from skilltrial.tasks.planning.treatments import planned_treatments
from skilltrial.tasks.planning.trees import joined_digest

GRADING_SCHEMA: Final = 1
"""Raised when an attempt would be graded differently by the same assertions."""

_SECRET: Final = re.compile(r"(?i)(^|_)(key|token|secret|password|passwd|credentials?)(_|$)")
_SPEC: Final = "campaign"


def make_plan(spec: CampaignSpec) -> CampaignPlan:
    """The plan of a campaign as its folders, repositories and CLI are now. Relative paths start where we are.

    Raises `InvalidInput` with every problem, `UnknownName` for a harness or an eval that does not exist,
    `NotBuiltYet` for evals that need parts which do not exist yet.
    """
    spec = resolve(spec, Path.cwd())
    descriptor = loading.descriptor(spec.harness)
    reading = examine(evals_path(spec))
    treatments = planned_treatments(spec, _SPEC)
    problems = [
        *_spec_problems(spec, descriptor),
        *treatments.problems,
        *reading.problems,
        *_collisions(reading.evals, treatments.conditions, descriptor, str(reading.path)),
    ]
    if reading.evals is None or problems:
        raise InvalidInput(dict.fromkeys(problems))
    chosen = _chosen(reading.evals, spec)
    require_built(chosen)
    evals, codebase_warnings = _planned_evals(reading, chosen, spec)
    harness = planned_harness(spec, descriptor)
    subject = planned_treatments_subject(spec, treatments.conditions)
    return CampaignPlan(
        campaign=campaign_name(spec),
        skill_name=subject,
        spec=spec,
        harness=harness,
        conditions=tuple(treatments.conditions),
        contrasts=contrasts_of(spec),
        evals=evals,
        templates=templates_of(evals, treatments.conditions, descriptor),
        cells=cells_of(spec, evals, treatments.conditions, harness),
        warnings=tuple(
            dict.fromkeys(
                [*_warnings(spec, reading, subject), *treatments.warnings, *codebase_warnings],
            )
        ),
    )
