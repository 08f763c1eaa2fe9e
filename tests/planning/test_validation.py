"""Checking files of every kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from skilltrial.tasks.planning.validation import check
from tests.planning.building import evals, skill, write


def test_each_kind_of_path_is_recognised(tmp_path: Path) -> None:
    folder = skill(tmp_path / "tables")
    path = evals(folder)
    campaign = write(tmp_path / "campaign.toml", 'skill = "tables"\n')
    found = [check(target) for target in (folder, folder / "SKILL.md", path, path.parent, campaign, tmp_path)]
    assert [(checked.kind, checked.problems) for checked in found] == [
        ("skill", ()),
        ("skill", ()),
        ("evals", ()),
        ("evals", ()),
        ("campaign", ()),
        ("campaign", ()),
    ]


def test_a_skill_without_evals_is_told_how_to_get_some(tmp_path: Path) -> None:
    [problem] = check(skill(tmp_path / "tables")).problems
    assert "skilltrial init" in problem.message


def test_problems_of_a_skill_and_of_its_evals_come_together(tmp_path: Path) -> None:
    evals(tmp_path, {"id": "a", "prompt": " "})
    assert [problem.message for problem in check(tmp_path).problems] == [
        "holds no SKILL.md, so it is not a skill",
        "is blank",
    ]


def test_a_campaign_is_checked_with_all_it_names(tmp_path: Path) -> None:
    evals(skill(tmp_path / "tables"), {"id": "a", "prompt": "p"})
    path = write(tmp_path / "c.toml", 'skill = "tables"\nonly = ["a", "x"]\nharness = "scripted"\n')
    found = [(Path(problem.file).name, problem.where, problem.value) for problem in check(path).problems]
    assert found == [("c.toml", "harness_inputs.script", None), ("c.toml", "only[1]", "x")]


@pytest.mark.parametrize("content", ['harness = "clod"\nskill = "x"\n', "skill = 3\n", "="])
def test_a_campaign_that_cannot_be_read_is_a_problem_and_no_exception(tmp_path: Path, content: str) -> None:
    path = write(tmp_path / "c.toml", content)
    [problem] = check(path).problems
    assert problem.file == str(path)
