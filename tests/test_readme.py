"""What the README shows is true."""

from __future__ import annotations

import json
import re
from pathlib import Path

from skilltrial.data.evals import EvalsFile
from skilltrial.data.outcomes import Outcome
from skilltrial.data.tables import TABLES
from skilltrial.data.tables.documentation import DENIALS_EXAMPLE

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_denials_example_is_the_tested_one() -> None:
    assert DENIALS_EXAMPLE in blocks("python")


def test_evals_example_is_valid() -> None:
    (example,) = blocks("json")
    assert EvalsFile.model_validate(json.loads(example)).evals[0].id == "fix-rounding"


def test_every_table_is_listed_once_and_none_else() -> None:
    section = README[README.index("## The tables") : README.index("Which tools were denied")]
    assert re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE) == list(TABLES)


def test_outcomes_named_in_examples_exist() -> None:
    assert all(Outcome(word) for word in re.findall(r"--outcome (\w+)", README))
