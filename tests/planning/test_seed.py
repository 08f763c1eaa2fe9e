"""The first eval that `init` writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skilltrial.tasks.planning.evals import read_evals
from skilltrial.tasks.planning.seed import seed_evals
from skilltrial.tasks.planning.skill import read_skill
from tests.planning.building import skill, write


@pytest.mark.parametrize(
    ("description", "task"),
    [
        ("Sorts tables. Use when they are not.", "Sorts tables"),
        ("Uses csv-tools to sort Use when tables are unsorted", "Uses csv tools to sort"),
        ("", "do the task that this project is about"),
    ],
)
def test_the_prompt_asks_for_what_the_description_promises(tmp_path: Path, description: str, task: str) -> None:
    found = read_skill(skill(tmp_path / "csv-tools", description=f"'{description}'"))
    [entry] = read_evals(write(tmp_path / "csv-tools/evals/evals.json", seed_evals(found))).evals
    assert entry.prompt.startswith(f"I need help with this: {task}. ")
    assert "csv-tools" not in entry.prompt


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(body=st.text(st.characters(codec="utf-8"), max_size=80))
def test_the_seed_of_any_skill_is_valid(tmp_path_factory: pytest.TempPathFactory, body: str) -> None:
    folder = tmp_path_factory.mktemp("seed")
    write(folder / "SKILL.md", f"---\n{body}\n---\n")
    read_evals(write(folder / "evals/evals.json", seed_evals(read_skill(folder))))
