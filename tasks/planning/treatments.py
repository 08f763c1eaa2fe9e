"""From the arms a campaign names to arms with digested skills."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from skilltrial.data.errors import InvalidInput, Problem
from skilltrial.data.plan import PlannedCondition, PlannedSkill, Provenance
from skilltrial.data.spec import CampaignSpec, SkillRef
from skilltrial.tasks.planning.conditions import conditions_of
from skilltrial.tasks.planning.skill import Skill
from skilltrial.tasks.planning.sources import opened_skill


@dataclass(slots=True)
class Treatments:
    """The arms of a campaign, as far as they could be resolved."""

    subject: PlannedSkill | None = None  # the skill under test, as its folder is now
    conditions: list[PlannedCondition] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def planned_treatments(spec: CampaignSpec, file: str) -> Treatments:
    """Resolve and digest the skills of every arm; a skill that several arms stage is read once."""
    result = Treatments()
    skills: dict[SkillRef, PlannedSkill | None] = {}
    slugs: dict[str, str] = {}
    subject = SkillRef(path=spec.skill)
    references = [reference for condition in conditions_of(spec) for reference in condition.treatment]
    # the skill under test is read first even if its newest version is in no arm: it gives the others its slug
    for reference in dict.fromkeys([subject, *references]):
        skills[reference] = _planned(reference, slugs, result, staged=reference in references)
    result.subject = skills[subject]
    for condition in conditions_of(spec):
        staged = [skill for reference in condition.treatment if (skill := skills[reference]) is not None]
        result.conditions.append(PlannedCondition(name=condition.name, skills=tuple(staged)))
    result.problems += _slug_problems(result.conditions, file)
    if all(skills.values()):  # without those that could not be read, arms look alike that are not
        result.warnings += _likenesses(result.conditions)
    return result


def _planned(reference: SkillRef, slugs: dict[str, str], result: Treatments, *, staged: bool) -> PlannedSkill | None:
    try:
        with opened_skill(reference) as (skill, provenance):
            # versions of one skill share one slug, so that no arm can be told by a folder's name
            slug = slugs.setdefault(skill.name, skill.slug)
            planned = PlannedSkill(
                name=skill.name,
                slug=slug,
                description=skill.description,
                digest=skill.digest,
                provenance=provenance,
            )
            if staged:
                result.warnings += _warnings(reference, skill, provenance)
    except InvalidInput as error:
        result.problems += error.problems
        return None
    return planned


def _warnings(reference: SkillRef, skill: Skill, provenance: Provenance) -> Iterator[str]:
    label = f"skill {reference.path}" + (f" at {reference.ref}" if reference.ref else "")
    for note in skill.notes:
        yield f"{label}: {note}"
    if provenance.dirty:
        yield f"{label} differs from commit {provenance.revision}: the campaign measures work not committed yet"


def _slug_problems(conditions: Sequence[PlannedCondition], file: str) -> Iterator[Problem]:
    for index, condition in enumerate(conditions):
        seen: dict[str, PlannedSkill] = {}
        for skill in condition.skills:
            other = seen.setdefault(skill.slug.casefold(), skill)
            if other is not skill:
                message = f"would be staged in the same folder as {other.provenance.path}"
                where = f"conditions[{index}].treatment"
                yield Problem(file, where, skill.provenance.path, f"{message}: {skill.slug!r}")


def _likenesses(conditions: Sequence[PlannedCondition]) -> Iterator[str]:
    seen: dict[tuple[tuple[str, str], ...], str] = {}
    for condition in conditions:
        staged = tuple((skill.slug, skill.digest) for skill in condition.skills)
        other = seen.setdefault(staged, condition.name)
        if other != condition.name:
            yield f"conditions {other!r} and {condition.name!r} stage exactly the same: no effect is to be expected"
        for skill in condition.skills:
            if skill.slug in {arm.name for arm in conditions}:
                yield f"skill {skill.slug!r} is called like a condition, which may tell an agent what goes on"
