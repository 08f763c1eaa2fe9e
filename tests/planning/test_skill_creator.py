"""The skill-creator form of evals.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from skilltrial.data.evals import Eval, LlmJudge
from skilltrial.tasks.planning.evals import examine, fixtures, problems
from tests.planning.building import CHECK, evals, write


def read(tmp_path: Path, *entries: dict[str, Any], **top: Any) -> tuple[list[Eval], tuple[str, ...]]:
    reading = examine(evals(tmp_path / "s", *entries, **top))
    assert reading.problems == ()
    assert reading.evals is not None
    return list(reading.evals.evals), reading.notes


def test_integer_ids_plain_assertions_and_missing_fields_are_read(tmp_path: Path) -> None:
    entries, notes = read(
        tmp_path,
        {"id": 1, "name": "first", "prompt": "p", "assertions": ["A.", {"name": "n", "description": "B."}]},
        {"id": "Two Words", "prompt": "q", "expectations": ["C."], "files": [], "expected_output": None},
        version="2",
    )
    assert [entry.id for entry in entries] == ["eval-1", "two-words"]
    assert entries[0].assertions == (
        LlmJudge(id="a1", type="llm_judge", rubric="A."),
        LlmJudge(id="a2", type="llm_judge", rubric="B."),
    )
    assert entries[1].assertions == (LlmJudge(id="a1", type="llm_judge", rubric="C."),)
    assert entries[1].expected_output == ""
    assert "ids are read as Two Words → two-words" in notes
    assert "ignored fields: name, version (of the file)" in notes


def test_typed_assertions_among_plain_ones_are_ours(tmp_path: Path) -> None:
    [entry], _ = read(tmp_path, {"id": 1, "prompt": "p", "assertions": [CHECK, "Looks good."]})
    assert [(check.id, check.type) for check in entry.assertions] == [("ok", "command_check"), ("a2", "llm_judge")]


def test_should_trigger_is_the_other_name_of_skill_should_trigger(tmp_path: Path) -> None:
    [entry], _ = read(tmp_path, {"id": 1, "prompt": "p", "should_trigger": False})
    assert not entry.skill_should_trigger


def test_files_relative_to_the_skill_lose_the_evals_prefix(tmp_path: Path) -> None:
    source = write(tmp_path / "s/evals/files/in.csv", "a")
    [entry], _ = read(tmp_path, {"id": 1, "prompt": "p", "files": ["evals/files/in.csv"]})
    assert fixtures(entry, tmp_path / "s/evals") == {"files/in.csv": source}


def test_files_keep_the_prefix_that_the_prompt_speaks_of(tmp_path: Path) -> None:
    write(tmp_path / "s/evals/files/in.csv", "a")
    [entry], _ = read(tmp_path, {"id": 1, "prompt": "Sort evals/files/in.csv", "files": ["evals/files/in.csv"]})
    [(destination, source)] = fixtures(entry, tmp_path / "s/evals").items()
    assert destination == "evals/files/in.csv"
    assert source.read_text() == "a"


def test_files_beside_the_evals_or_in_the_skill_are_found(tmp_path: Path) -> None:
    write(tmp_path / "s/evals/files/a.py", "a")
    write(tmp_path / "s/reference/b.py", "b")
    entries, _ = read(
        tmp_path,
        {"id": 1, "prompt": "p", "files": ["files/a.py"]},
        {"id": 2, "prompt": "p", "files": ["reference/b.py"]},
    )
    found = [fixtures(entry, tmp_path / "s/evals") for entry in entries]
    assert [list(files) for files in found] == [["files/a.py"], ["reference/b.py"]]
    assert [path.read_text() for files in found for path in files.values()] == ["a", "b"]


def test_faults_keep_the_place_where_they_were_written(tmp_path: Path) -> None:
    path = evals(
        tmp_path / "s",
        {"id": 1, "prompt": "p", "expectations": [" ", 3], "files": ["gone", "../up"]},
        {"id": 1, "prompt": ""},
        {"id": 2.5, "prompt": "p", "assertions": "text"},
    )
    assert [problem.where for problem in problems(path)] == [
        "evals[0].expectations[0]",
        "evals[0].expectations[1]",
        "evals[0].files[0]",
        "evals[0].files[1]",
        "evals[1].id",
        "evals[1].prompt",
        "evals[2].assertions",
        "evals[2].id",
    ]
