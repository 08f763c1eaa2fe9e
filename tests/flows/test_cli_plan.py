"""`skilltrial plan`, as a person calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skilltrial.data.errors import InvalidInput
from skilltrial.flows.cli import app
from tests.planning.building import evals, skill, write


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """A scripted campaign of one eval, three repetitions."""
    evals(skill(tmp_path / "tables"))
    write(tmp_path / "script.json", "{}")
    text = 'skill = "tables"\nharness = "scripted"\nharness_inputs.script = "script.json"\n'
    return write(tmp_path / "campaign.toml", text)


def files(root: Path) -> dict[str, int]:
    return {str(path): path.lstat().st_mtime_ns for path in root.rglob("*")}


def test_a_plan_writes_nothing_anywhere(
    tmp_path: Path, campaign: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "elsewhere" / "home"
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    before = files(tmp_path)
    assert app(["plan", str(campaign), "--home", str(home)]) == 0
    after = files(tmp_path)
    after.pop(str(tmp_path), None)
    before.pop(str(tmp_path), None)
    assert after == before
    lines = capsys.readouterr().out.splitlines()
    assert "campaign tables-new-skill: skill tables" in lines
    assert "contrast with_skill − without_skill" in lines
    assert sum("one/with_skill/r" in line for line in lines) == 3
    assert "forecast: 6 of 6 cells to dispatch, 0 settled; costs nothing" in lines
    assert "so this design cannot reach alpha 0.05" in "\n".join(lines)


def test_the_plan_is_told_as_json_with_overrides_applied(
    tmp_path: Path, campaign: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    options = ["--repetitions", "2", "--name", "mine", "--mode", "aa", "--budget-usd", "0.5", "--pass-env", "A"]
    options += ["--pass-env", "B", "--only", "one", "--home", str(tmp_path / "home"), "--json"]
    assert app(["plan", str(campaign), *options]) == 0
    made = json.loads(capfdbinary.readouterr().out)
    assert made["campaign"] == "mine"
    assert [condition["name"] for condition in made["conditions"]] == ["with_skill_a", "with_skill_b"]
    assert made["spec"]["pass_env"] == ["A", "B"]
    assert len(made["cells"]) == 4
    assert all(len(cell["digest"]) == 64 for cell in made["cells"])
    assert made["forecast"] == {
        "cells": 4,
        "settled": 0,
        "dispatches": 4,
        "costs_money": False,
        "budget_usd": 2.0,
    }
    assert made["floor"]["across_evals"] == 1.0
    assert made["floor"]["reaches_alpha"] is False


def test_an_override_that_makes_no_sense_is_told_by_its_name(campaign: Path) -> None:
    with pytest.raises(InvalidInput, match="command line: mode: "):
        app(["plan", str(campaign), "--mode", "ab"])


def test_a_plan_tells_what_a_run_would_be_refused_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evals(skill(tmp_path / "tables"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # no agent CLI is there
    arguments = ["plan", str(tmp_path / "tables"), "--home", str(tmp_path / "home")]
    assert app([*arguments, "--permission-mode", "default"]) == 0
    assert "a run would be refused: Claude Code was not found as 'claude' on PATH" in capsys.readouterr().out
