"""Argument vectors and environments: what is in them, what is left out, and what is refused."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from skilltrial.data.errors import InvalidInput
from skilltrial.descriptors.loading import descriptor
from skilltrial.descriptors.model import HarnessDescriptor
from skilltrial.tasks.dispatch.command import build_argv, build_environment, fill, uses_slot

VALUES: dict[str, str | None] = {
    "binary": "/opt/claude",
    "session_id": "11111111-2222-4333-8444-555555555501",
    "settings": '{"a":1}',
    "home": "/w/1/home",
    "config": "/w/1/config",
    "tmp": "/w/1/tmp",
    "user": "somebody",
    "repetition": "2",
}


def _descriptor(**changes: Any) -> HarnessDescriptor:
    written = {**descriptor("scripted").model_dump(mode="json"), **changes}
    return HarnessDescriptor.model_validate(written)


def test_absent_values_leave_their_groups_out() -> None:
    argv = build_argv(descriptor("claude-code"), VALUES)

    assert argv[:2] == ["/opt/claude", "-p"]
    assert argv[-2:] == ["--settings", '{"a":1}']
    assert argv[argv.index("--session-id") + 1] == VALUES["session_id"]
    assert not {"--model", "--permission-mode", "--allowedTools", "--max-turns", "--max-budget-usd"} & set(argv)


def test_present_values_fill_their_groups_in_place() -> None:
    given = {**VALUES, "model": "m-1", "permission_mode": "plan", "allowed_tools": "Skill,Bash(ls *)", "max_turns": "5"}

    argv = build_argv(descriptor("claude-code"), given)

    start = argv.index("--model")
    assert argv[start : start + 6] == [
        "--model",
        "m-1",
        "--permission-mode",
        "plan",
        "--allowedTools",
        "Skill,Bash(ls *)",
    ]
    assert argv[argv.index("--max-turns") + 1] == "5"


def test_every_missing_fixed_slot_is_named_with_its_place() -> None:
    with pytest.raises(InvalidInput) as caught:
        build_argv(descriptor("scripted"), {"binary": "python", "session_id": "s"})

    assert [problem.where for problem in caught.value.problems] == ["dispatch.argv[3]"]
    assert "{bundled_agent}" in str(caught.value)


def test_a_filled_text_is_not_filled_again() -> None:
    assert fill("{model}", {"model": "{home}", "home": "/secret"}, "here") == "{home}"


def test_slots_are_filled_inside_of_texts() -> None:
    assert fill("{home}/.config:{home}", {"home": "/h"}, "here") == "/h/.config:/h"


def test_a_group_with_two_values_needs_both() -> None:
    dispatch = {"argv": ["{binary}", "{pair}"], "groups": {"pair": ["--pair", "{model}={max_turns}"]}}
    pair = _descriptor(dispatch=dispatch)

    found = [
        build_argv(pair, {"binary": "b", "model": model, "max_turns": turns})
        for model, turns in itertools.product((None, "m"), (None, "3"))
    ]

    assert found == [["b"], ["b"], ["b"], ["b", "--pair", "m=3"]]


def test_only_listed_variables_of_the_operator_pass() -> None:
    operator = {
        "PATH": "/usr/bin",
        "LANG": "C.UTF-8",
        "HOME": "/home/operator",
        "AWS_SECRET_ACCESS_KEY": "x",
        "PYTHONPATH": "/somewhere",
        "ANTHROPIC_API_KEY": "key-of-the-operator",
        "CLAUDECODE": "1",
        "CLAUDE_CODE_ENTRYPOINT": "cli",
        "CLAUDE_CODE_SESSION_ID": "x",
        "CLAUDE_CONFIG_DIR": "/home/operator/.claude",
    }

    found = build_environment(descriptor("scripted"), VALUES, {}, (), operator)

    assert found == {
        "PATH": "/usr/bin",
        "LANG": "C.UTF-8",
        "HOME": "/w/1/home",
        "USER": "somebody",
        "CLAUDE_CONFIG_DIR": "/w/1/config",
        "TMPDIR": "/w/1/tmp",
        "GIT_CONFIG_NOSYSTEM": "1",
        "SCRIPTED_REPETITION": "2",
    }


def test_stronger_sources_win() -> None:
    harness = _descriptor(environment={"inherit": ["A", "B", "C", "D"], "set": {"B": "set", "C": "set", "D": "set"}})
    operator = dict.fromkeys("ABCD", "operator")

    found = build_environment(harness, VALUES, {"C": "campaign", "D": "campaign"}, ("D", "UNSET"), operator)

    assert found == {"A": "operator", "B": "set", "C": "campaign", "D": "operator"}


def test_marks_of_a_running_session_pass_by_no_way() -> None:
    names = ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID"]
    harness = _descriptor(environment={"inherit": [*names, "CLAUDE_CODE_SSE_PORT"], "set": {}})
    operator = {**dict.fromkeys([*names, "CLAUDE_CODE_SSE_PORT"], "1"), "CLAUDE_CODE_OAUTH_TOKEN": "token"}

    found = build_environment(harness, VALUES, {}, (*names, "CLAUDE_CODE_OAUTH_TOKEN"), operator)

    assert found == {"CLAUDE_CODE_OAUTH_TOKEN": "token"}


def test_a_variable_that_needs_an_absent_value_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"environment\.set\.HOME"):
        build_environment(descriptor("scripted"), {**VALUES, "home": None}, {}, (), {})


def test_a_descriptor_tells_whether_it_hands_over_a_slot() -> None:
    assert uses_slot(descriptor("claude-code"), "session_id")
    assert uses_slot(descriptor("claude-code"), "model")
    assert not uses_slot(descriptor("claude-code"), "repetition")
