"""`skilltrial init`, as a person calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skilltrial.data.errors import InvalidInput, StoreConflict
from skilltrial.flows.cli import app
from tests.planning.building import skill, write


def test_the_seed_passes_validate_and_can_be_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = skill(tmp_path / "tables")
    assert app(["init", str(folder)]) == 0
    assert f"wrote {folder}/evals/evals.json" in capsys.readouterr().out
    assert app(["validate", str(folder)]) == 0
    script = write(tmp_path / "script.json", "{}")
    campaign = write(
        tmp_path / "c.toml", f'skill = "tables"\nharness = "scripted"\nharness_inputs.script = "{script}"\n'
    )
    assert app(["plan", str(campaign), "--home", str(tmp_path / "home")]) == 0


def test_what_was_written_is_told_as_json(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    folder = skill(tmp_path / "tables")
    assert app(["init", str(folder / "SKILL.md"), "--json"]) == 0
    assert json.loads(capfdbinary.readouterr().out) == {
        "path": f"{folder}/evals/evals.json",
        "skill_name": "tables",
        "evals": ["first-case"],
        "notes": [],
    }


def test_existing_evals_are_never_touched(tmp_path: Path) -> None:
    folder = skill(tmp_path / "tables")
    path = write(folder / "evals/evals.json", "mine")
    with pytest.raises(StoreConflict, match="exists already"):
        app(["init", str(folder)])
    assert path.read_text() == "mine"


def test_a_folder_that_is_no_skill_gets_no_evals(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"holds no SKILL\.md"):
        app(["init", str(tmp_path)])
    assert list(tmp_path.iterdir()) == []
