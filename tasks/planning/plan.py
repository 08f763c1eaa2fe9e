"""From a `CampaignSpec` to a `CampaignPlan`: everything resolved, digested and ordered; nothing written.

All that is wrong with what a person wrote is told at once: the spec, the skills, the evals, the codebases.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from skilltrial.data.digests import digest
from skilltrial.data.errors import InvalidInput, NotBuiltYet, Problem, UnknownName
from skilltrial.data.evals import Codebase, Eval, EvalsFile
from skilltrial.data.grading import GRADER_VERSION
from skilltrial.data.plan import CampaignPlan, PlannedCodebase, PlannedCondition, PlannedEval, PlannedSkill
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
from skilltrial.tasks.planning.treatments import Treatments, planned_treatments
from skilltrial.tasks.planning.trees import joined_digest

_SECRET: Final = re.compile(r"(?i)(^|_)(key|token|secret|password|passwd|credentials?)(_|$)")
SPEC: Final = "campaign"
"""What problems of the spec itself name as their file."""


def make_plan(spec: CampaignSpec) -> CampaignPlan:
    """The plan of a campaign as its folders, repositories and CLI are now. Relative paths start where we are.

    Raises `InvalidInput` with every problem, `UnknownName` for a harness or an eval that does not exist,
    `NotBuiltYet` for evals that need parts which do not exist yet.
    """
    spec = resolve(spec, Path.cwd())
    descriptor = loading.descriptor(spec.harness)
    reading = examine(evals_path(spec))
    treatments = planned_treatments(spec, SPEC)
    problems = find_problems(spec, descriptor, reading, treatments)
    if problems or reading.evals is None or treatments.subject is None:
        raise InvalidInput(problems)
    chosen = _chosen(reading.evals, spec)
    require_built(chosen)
    codebases = _codebases(reading, chosen)
    evals = tuple(_planned_eval(entry, reading, codebases, spec) for entry in chosen)
    harness = planned_harness(spec, descriptor)
    warnings = [
        *_warnings(spec, reading, treatments.subject),
        *treatments.warnings,
        *_codebase_warnings(codebases.values()),
    ]
    return CampaignPlan(
        campaign=campaign_name(spec),
        skill_name=treatments.subject.name,
        spec=spec,
        harness=harness,
        conditions=tuple(treatments.conditions),
        contrasts=contrasts_of(spec),
        evals=evals,
        templates=templates_of(evals, treatments.conditions, descriptor),
        cells=cells_of(spec, evals, treatments.conditions, harness),
        warnings=tuple(dict.fromkeys(warnings)),
    )


def find_problems(
    spec: CampaignSpec, descriptor: HarnessDescriptor, reading: Reading, treatments: Treatments
) -> list[Problem]:
    """Everything that is wrong with a campaign, as far as it shows without asking a remote repository."""
    return [
        *contrast_problems(spec, SPEC),
        *input_problems(spec, descriptor, SPEC),
        *_evals_staged(spec),
        *treatments.problems,
        *reading.problems,
        *_staged_over(reading, treatments.conditions, descriptor),
    ]


def require_built(evals: Sequence[Eval]) -> None:
    """`NotBuiltYet` that names every eval which needs a part of skilltrial that does not exist yet."""
    needs = {
        "conversations": [entry.id for entry in evals if entry.turns or entry.responder],
        "plan mode": [entry.id for entry in evals if entry.plan_mode],
        "judges": [entry.id for entry in evals if any(check.type == "llm_judge" for check in entry.assertions)],
    }
    missing = {need: ids for need, ids in needs.items() if ids}
    if missing:
        listed = "; ".join(f"{need} (evals {', '.join(ids)})" for need, ids in missing.items())
        raise NotBuiltYet("this campaign", listed)


def _evals_staged(spec: CampaignSpec) -> Iterator[Problem]:
    path = evals_path(spec).resolve()
    skill = spec.skill.resolve()
    if path.is_relative_to(skill) and not not_staged(path.relative_to(skill).as_posix()):
        message = "would be staged with the skill, where the agent could read what it is graded by"
        yield Problem(SPEC, "evals", str(path), message, f"a file below {skill / 'evals'}, or outside of the skill")


def _staged_over(
    reading: Reading, conditions: Sequence[PlannedCondition], descriptor: HarnessDescriptor
) -> Iterator[Problem]:
    """Fixtures that would lie where a skill is staged, in the control arm too."""
    folders = {f"{descriptor.skills.folder}/{skill.slug}" for arm in conditions for skill in arm.skills}
    for number, entry in enumerate(reading.evals.evals if reading.evals else ()):
        for index, name in enumerate(entry.files):
            taken = next((folder for folder in sorted(folders) if overlap(name, folder)), None)
            if taken is not None:
                where = f"evals[{number}].files[{index}]"
                yield Problem(str(reading.path), where, name, f"overlaps {taken!r}, where a skill is staged")


def _chosen(evals: EvalsFile, spec: CampaignSpec) -> tuple[Eval, ...]:
    known = [entry.id for entry in evals.evals]
    for name in spec.only:
        if name not in known:
            raise UnknownName("eval", name, known)
    return tuple(entry for entry in evals.evals if not spec.only or entry.id in spec.only)


def _codebases(reading: Reading, chosen: Sequence[Eval]) -> dict[Codebase, PlannedCodebase]:
    """Every codebase that is declared, each resolved once; `InvalidInput` lists all that cannot be."""
    assert reading.evals is not None
    declared: dict[Codebase, str] = {}
    for number, entry in enumerate(reading.evals.evals):
        if entry in chosen and entry.codebase is not None:
            declared.setdefault(entry.codebase, f"evals[{number}].codebase")
        elif entry in chosen and reading.evals.codebase is not None:
            declared.setdefault(reading.evals.codebase, "codebase")
    planned, problems = {}, []
    for codebase, where in declared.items():
        try:
            planned[codebase] = planned_codebase(codebase, reading.path.parent)
        except ValueError as error:
            problems.append(Problem(str(reading.path), where, codebase.ref or codebase.path, str(error)))
    if problems:
        raise InvalidInput(problems)
    return planned


def _planned_eval(
    entry: Eval, reading: Reading, codebases: dict[Codebase, PlannedCodebase], spec: CampaignSpec
) -> PlannedEval:
    assert reading.evals is not None
    declared = entry.codebase or reading.evals.codebase
    folder = reading.path.parent
    heldout_digest = joined_digest(heldout(entry, folder))
    grading = {"schema": GRADER_VERSION, "assertions": entry.assertions, "heldout": heldout_digest}
    return PlannedEval(
        eval=entry,
        repetitions=entry.runs or spec.repetitions,
        files_digest=joined_digest(fixtures(entry, folder)),
        heldout_digest=heldout_digest,
        grading_digest=digest(grading),
        codebase=codebases[declared] if declared else None,
    )


def _warnings(spec: CampaignSpec, reading: Reading, subject: PlannedSkill) -> Iterator[str]:
    assert reading.evals is not None
    for note in reading.notes:
        yield f"{reading.path} {note}"
    if reading.evals.skill_name not in (subject.name, subject.slug):
        yield f"{reading.path} is written for skill {reading.evals.skill_name!r}, but tests {subject.name!r}"
    for name in uncompared(spec):
        yield f"condition {name!r} is in no contrast: its cells cost money and decide nothing"
    if spec.baseline_ref is not None and (spec.mode != "revision" or spec.conditions):
        yield "baseline_ref has no effect: only mode revision reads it"
    for name in spec.env:
        if _SECRET.search(name):
            yield f"env {name} looks like a secret, and env is kept in the plan: name it in pass_env instead"


def _codebase_warnings(codebases: Iterable[PlannedCodebase]) -> Iterator[str]:
    for codebase in codebases:
        if codebase.provenance.dirty:
            where = codebase.provenance.path
            yield f"codebase {where} has uncommitted changes, which no environment gets: only its commit is used"
