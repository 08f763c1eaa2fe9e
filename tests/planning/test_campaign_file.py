"""Campaign files and the other things a person may name instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from skilltrial.data.errors import InvalidInput, Problem
from skilltrial.data.spec import CampaignSpec
from skilltrial.tasks.planning.campaign_file import read_spec, resolve, spec_of_target, with_overrides
from tests.planning.building import evals, skill, write


def problems_in(path: Path) -> list[Problem]:
    with pytest.raises(InvalidInput) as caught:
        read_spec(path)
    return list(caught.value.problems)


def test_paths_start_at_the_file_and_become_absolute(tmp_path: Path) -> None:
    path = write(
        tmp_path / "trial" / "campaign.toml",
        'skill = "tables"\nevals = "../e.json"\nbinary = "bin/agent"\nharness_inputs = { script = "s.json" }\n'
        'contrasts = [{ treatment = "a", control = "b" }]\nconditions = [{ name = "a", '
        'treatment = [{ path = "tables", ref = "v1" }, { path = "/other" }] }, { name = "b" }]\n',
    )
    spec = read_spec(path)
    base = tmp_path / "trial"
    assert spec.skill == base / "tables"
    assert spec.evals == tmp_path / "e.json"
    assert spec.binary == base / "bin/agent"
    assert spec.harness_inputs == {"script": base / "s.json"}
    assert [skill.path for skill in spec.conditions[0].treatment] == [base / "tables", Path("/other")]


def test_every_fault_of_a_campaign_file_is_told_with_field_value_and_known_fields(tmp_path: Path) -> None:
    path = write(tmp_path / "c.toml", 'skil = "x"\nrepetitions = "3"\nmode = "ab"\ntimeout_s = inf\n')
    found = {problem.where: problem for problem in problems_in(path)}
    assert set(found) == {"skill", "skil", "repetitions", "mode", "timeout_s"}
    assert all(problem.file == str(path) for problem in found.values())
    assert "skill, evals, only" in found["skil"].allowed
    assert found["repetitions"].value == "3"
    assert found["mode"].allowed == "'new-skill', 'revision' or 'aa'"
    assert found["timeout_s"].message == "is not a finite number"


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"skill = ", "is not TOML: Invalid value (at end of document)"), (b"\xff", "is not UTF-8 at byte 0")],
)
def test_what_is_no_toml_is_told_where(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "c.toml"
    path.write_bytes(content)
    assert [problem.message for problem in problems_in(path)] == [says]


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    assert [problem.message for problem in problems_in(tmp_path / "c.toml")] == ["does not exist"]


def test_a_skill_its_file_or_its_evals_mean_a_campaign_with_defaults(tmp_path: Path) -> None:
    folder = skill(tmp_path / "tables")
    path = evals(folder)
    expected = CampaignSpec(skill=folder)
    assert spec_of_target(folder) == expected
    assert spec_of_target(folder / "SKILL.md") == expected
    assert spec_of_target(path) == spec_of_target(path.parent) == CampaignSpec(skill=folder, evals=path)


def test_a_campaign_file_in_a_folder_comes_first(tmp_path: Path) -> None:
    folder = skill(tmp_path / "tables")
    write(folder / "campaign.toml", 'skill = "."\nrepetitions = 7\n')
    assert spec_of_target(folder).repetitions == 7


def test_anything_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"names no campaign; allowed: a campaign file"):
        spec_of_target(write(tmp_path / "notes.md", ""))
    with pytest.raises(InvalidInput, match="does not exist"):
        spec_of_target(tmp_path / "gone")


def test_overrides_replace_fields_and_are_checked_like_them(tmp_path: Path) -> None:
    spec = CampaignSpec(skill=tmp_path, repetitions=5)
    assert with_overrides(spec, repetitions=None, only=()) is spec
    assert with_overrides(spec, jobs=2, only=("a",)) == CampaignSpec(skill=tmp_path, repetitions=5, jobs=2, only=("a",))
    with pytest.raises(InvalidInput, match="command line: jobs: "):
        with_overrides(spec, jobs=0)
    with pytest.raises(InvalidInput, match="needs baseline_ref"):
        with_overrides(spec, mode="revision")


def test_a_mode_cannot_override_conditions_of_the_file(tmp_path: Path) -> None:
    spec = CampaignSpec.model_validate(
        {
            "skill": tmp_path,
            "conditions": [{"name": "a"}, {"name": "b"}],
            "contrasts": [{"treatment": "a", "control": "b"}],
        }
    )
    with pytest.raises(InvalidInput, match="mode: has no effect"):
        with_overrides(spec, mode="aa")


def test_resolving_twice_changes_nothing(tmp_path: Path) -> None:
    once = resolve(CampaignSpec(skill=Path("a/../b"), evals=Path("e.json")), tmp_path)
    assert once.skill == tmp_path.resolve() / "b"
    assert resolve(once, Path("/elsewhere")) == once
