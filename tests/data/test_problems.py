"""Problems name the place as it was written and list what is known there."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from skilltrial.data.errors import Problem
from skilltrial.data.evals import EvalsFile
from skilltrial.data.problems import problems_of


def found(**entry: Any) -> list[Problem]:
    with pytest.raises(ValidationError) as caught:
        EvalsFile.model_validate({"skill_name": "s", "evals": [{"id": "a", "prompt": "p", **entry}]})
    return problems_of(caught.value, "evals.json", model=EvalsFile)


def test_the_path_leaves_out_the_tag_of_a_union_member() -> None:
    check = {"id": "c", "type": "command_check", "command": "true", "timeout": 3}
    [problem] = found(assertions=[check])
    assert problem.where == "evals[0].assertions[0].timeout"
    assert problem.value == 3
    assert problem.message == "is not a known field"
    assert problem.allowed == (
        "id, type, command, setup_files, env, matrix, expect_exit_code, expect_stdout, timeout_s"
    )


def test_an_unknown_type_is_named_with_the_known_ones() -> None:
    [problem] = found(assertions=[{"id": "c", "type": "regex"}])
    assert (problem.where, problem.value) == ("evals[0].assertions[0].type", "regex")
    assert problem.allowed == "'transcript_check', 'llm_judge', 'command_check', 'diff_scope'"


def test_known_fields_are_those_of_the_object_that_has_the_unknown_one() -> None:
    [problem] = found(codebase={"url": "u", "ref": "r", "branch": "b"})
    assert (problem.where, problem.allowed) == ("evals[0].codebase.branch", "url, ref, path")


def test_a_list_that_is_too_short_is_told_without_words_of_python() -> None:
    with pytest.raises(ValidationError) as caught:
        EvalsFile.model_validate({"skill_name": "s", "evals": []})
    [problem] = problems_of(caught.value, "evals.json", model=EvalsFile)
    assert str(problem) == "evals.json: evals: has 0 items; allowed: at least 1"
