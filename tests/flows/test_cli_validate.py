"""`skilltrial validate`, as a person calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skilltrial.flows.cli import app
from tests.planning.building import evals, skill, write


def test_every_problem_of_every_file_is_printed_and_the_code_is_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = evals(skill(tmp_path / "tables"), {"id": "A", "prompt": " "})
    second = write(tmp_path / "c.toml", "skill = 3\n")
    assert app(["validate", str(first), str(second)]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        f"{first}: evals[0].id: has not the right form (found 'A'); allowed: ^[a-z0-9][a-z0-9-]*$",
        f"{first}: evals[0].prompt: is blank (found ' ')",
        f"{first}: 2 problems",
        f"{second}: skill: input should be a valid string (found 3)",
        f"{second}: 1 problem",
    ]


def test_findings_are_told_as_json(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    folder = skill(tmp_path / "tables", description="")
    path = write(folder / "evals/evals.json", '{"skill_name": "s", "evals": [{"id": "a", "prompt": "\\ud800"}]}')
    assert app(["validate", str(folder), "--json"]) == 2
    found = json.loads(capfdbinary.readouterr().out)
    assert found == {
        "problems": 1,
        "files": [
            {
                "path": str(folder),
                "kind": "skill",
                "problems": [
                    {
                        "file": str(path),
                        "where": "evals[0].prompt",
                        "value": "?",
                        "message": "holds half of a surrogate pair, which is no character",
                        "allowed": "",
                    }
                ],
                "notes": ["SKILL.md has no description, so an agent cannot tell when to use it"],
            }
        ],
    }


def test_the_working_directory_is_checked_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evals(skill(tmp_path / "tables"))
    monkeypatch.chdir(tmp_path / "tables")
    assert app(["validate"]) == 0
