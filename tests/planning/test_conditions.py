"""Arms and contrasts of each mode, and what keeps arms comparable."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skilltrial.data.spec import CampaignSpec, SkillRef
from skilltrial.tasks.planning.conditions import (
    campaign_name,
    conditions_of,
    contrast_problems,
    contrasts_of,
    uncompared,
)
from skilltrial.tasks.planning.treatments import planned_treatments
from tests.planning.building import commit, repository, skill, write

HERE = Path("/skills/tables")


def arms(spec: CampaignSpec) -> dict[str, list[SkillRef]]:
    return {condition.name: list(condition.treatment) for condition in conditions_of(spec)}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, {"with_skill": [SkillRef(path=HERE)], "without_skill": []}),
        (
            {"mode": "revision", "baseline_ref": "v1"},
            {"new_skill": [SkillRef(path=HERE)], "old_skill": [SkillRef(path=HERE, ref="v1")]},
        ),
        ({"mode": "aa"}, {"with_skill_a": [SkillRef(path=HERE)], "with_skill_b": [SkillRef(path=HERE)]}),
    ],
)
def test_each_mode_has_its_two_arms_and_compares_them(
    fields: dict[str, Any], expected: dict[str, list[SkillRef]]
) -> None:
    spec = CampaignSpec(skill=HERE, **fields)
    assert arms(spec) == expected
    assert [(contrast.treatment, contrast.control) for contrast in contrasts_of(spec)] == [tuple(expected)]


def own(*contrasts: tuple[str, str], names: tuple[str, ...] = ("a", "b", "c")) -> CampaignSpec:
    return CampaignSpec.model_validate(
        {
            "skill": HERE,
            "conditions": [{"name": name} for name in names],
            "contrasts": [{"treatment": treatment, "control": control} for treatment, control in contrasts],
        }
    )


def test_contrasts_of_unknown_or_the_same_conditions_are_told() -> None:
    found = list(contrast_problems(own(("a", "x"), ("a", "b"), ("a", "b")), "campaign"))
    assert [(problem.where, problem.value, problem.allowed) for problem in found] == [
        ("contrasts[0].control", "x", "a, b, c"),
        ("contrasts[2]", None, ""),
    ]


def test_conditions_that_nothing_is_compared_with_are_found() -> None:
    assert uncompared(own(("a", "b"))) == ["c"]


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        (CampaignSpec(skill=HERE), "tables-new-skill"),
        (CampaignSpec(skill=HERE, mode="aa", name="mine"), "mine"),
        (CampaignSpec(skill=Path("/x/Two Words")), "two-words-new-skill"),
        (CampaignSpec(skill=Path("/x/表")), "skill-new-skill"),
        (own(("a", "b")), "tables-trial"),
    ],
)
def test_a_campaign_is_called_after_its_skill_and_mode(spec: CampaignSpec, name: str) -> None:
    assert campaign_name(spec) == name


def test_versions_of_a_skill_are_staged_under_one_slug(tmp_path: Path) -> None:
    now = skill(tmp_path / "tables")
    old = skill(tmp_path / "snapshots" / "v1-eval-baseline", name="tables", body="Old.")
    spec = CampaignSpec.model_validate(
        {
            "skill": now,
            "conditions": [
                {"name": "old", "treatment": [{"path": old}]},
                {"name": "new", "treatment": [{"path": now}]},
            ],
            "contrasts": [{"treatment": "new", "control": "old"}],
        }
    )
    found = planned_treatments(spec, "campaign")
    assert found.problems == []
    slugs = {condition.name: [skill.slug for skill in condition.skills] for condition in found.conditions}
    assert slugs == {"old": ["tables"], "new": ["tables"]}
    assert len({skill.digest for condition in found.conditions for skill in condition.skills}) == 2


def test_two_skills_of_one_arm_cannot_share_a_folder(tmp_path: Path) -> None:
    first = skill(tmp_path / "a" / "tables", name="one")
    second = skill(tmp_path / "b" / "Tables", name="two")
    spec = CampaignSpec.model_validate(
        {
            "skill": first,
            "conditions": [{"name": "both", "treatment": [{"path": first}, {"path": second}]}, {"name": "none"}],
            "contrasts": [{"treatment": "both", "control": "none"}],
        }
    )
    [problem] = planned_treatments(spec, "campaign").problems
    assert (problem.where, problem.value) == ("conditions[0].treatment", str(second))


def test_a_revision_that_changes_nothing_is_warned_about(tmp_path: Path) -> None:
    root = repository(tmp_path / "repository")
    folder = skill(root / "tables")
    commit(root)
    spec = CampaignSpec(skill=folder, mode="revision", baseline_ref="HEAD")
    assert planned_treatments(spec, "campaign").warnings == [
        "conditions 'new_skill' and 'old_skill' stage exactly the same: no effect is to be expected"
    ]
    write(folder / "SKILL.md", "---\nname: tables\ndescription: d\n---\nnew\n")
    [warning] = planned_treatments(spec, "campaign").warnings
    assert "differs from commit" in warning


def test_every_skill_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    spec = CampaignSpec(skill=tmp_path / "gone", mode="revision", baseline_ref="v1")
    found = [problem.message for problem in planned_treatments(spec, "campaign").problems]
    assert found == ["does not exist", "does not lie in a git repository"]
