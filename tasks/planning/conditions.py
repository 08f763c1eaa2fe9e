"""The arms of a trial and what is compared with what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from skilltrial.data.errors import Problem
from skilltrial.data.spec import CampaignSpec, ConditionSpec, ContrastSpec, Mode, SkillRef
from skilltrial.tasks.planning.slugs import slug_of

CONTRASTS: Final[dict[Mode, ContrastSpec]] = {
    "new-skill": ContrastSpec(treatment="with_skill", control="without_skill"),
    "revision": ContrastSpec(treatment="new_skill", control="old_skill"),
    "aa": ContrastSpec(treatment="with_skill_a", control="with_skill_b"),
}
"""What each ready mode compares. An A/A trial stages the same skill twice: its effect should be none."""


def conditions_of(spec: CampaignSpec) -> tuple[ConditionSpec, ...]:
    """The arms: the spec's own, else those of its mode, treatment first."""
    if spec.conditions:
        return spec.conditions
    contrast = CONTRASTS[spec.mode]
    skill = SkillRef(path=spec.skill)
    control = {
        "new-skill": (),
        "revision": (SkillRef(path=spec.skill, ref=spec.baseline_ref),),
        "aa": (skill,),
    }
    return (
        ConditionSpec(name=contrast.treatment, treatment=(skill,)),
        ConditionSpec(name=contrast.control, treatment=control[spec.mode]),
    )


def contrasts_of(spec: CampaignSpec) -> tuple[ContrastSpec, ...]:
    """The comparisons: the spec's own, else the one of its mode."""
    return spec.contrasts or (CONTRASTS[spec.mode],)


def contrast_problems(spec: CampaignSpec, file: str) -> Iterator[Problem]:
    """Contrasts of conditions that do not exist, and contrasts given twice."""
    known = [condition.name for condition in conditions_of(spec)]
    seen: list[ContrastSpec] = []
    for index, contrast in enumerate(contrasts_of(spec)):
        for role, name in (("treatment", contrast.treatment), ("control", contrast.control)):
            if name not in known:
                where = f"contrasts[{index}].{role}"
                yield Problem(file, where, name, "is not a condition of this campaign", ", ".join(known))
        if contrast in seen:
            yield Problem(file, f"contrasts[{index}]", None, f"is contrasts[{seen.index(contrast)}] again")
        seen.append(contrast)


def uncompared(spec: CampaignSpec) -> list[str]:
    """Names of conditions that no contrast compares with anything."""
    compared = {name for contrast in contrasts_of(spec) for name in (contrast.treatment, contrast.control)}
    return [condition.name for condition in conditions_of(spec) if condition.name not in compared]


def campaign_name(spec: CampaignSpec) -> str:
    """The campaign's name in the store: the spec's, else `<skill>-<mode>` after the skill's folder."""
    skill = slug_of(spec.skill.expanduser().resolve().name) or "skill"
    return spec.name or f"{skill[:80]}-{'trial' if spec.conditions else spec.mode}"
