"""What a descriptor may say, and how its faults are told."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from skilltrial.descriptors.loading import descriptor
from skilltrial.descriptors.model import VALUES, HarnessDescriptor, Tools, of_plan
from tests.analysis.trials import make_plan


def changed(**parts: Any) -> dict[str, Any]:
    """The scripted descriptor with some parts replaced."""
    return {**descriptor("scripted").model_dump(mode="json"), **parts}


def fault(**parts: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        HarnessDescriptor.model_validate(changed(**parts))
    (only,) = caught.value.errors()
    return only["msg"].removeprefix("Value error, ")


def test_a_tool_is_known_by_its_role_and_others_are_other() -> None:
    names = {"read": "Read", "write": "Edit", "patch": "Patch", "shell": "Bash", "skill": "Skill", "subagent": "Task"}
    tools = Tools.model_validate({role: [name] for role, name in names.items()})
    assert {role: tools.role(name) for role, name in names.items()} == {role: role for role in names}
    assert [tools.role(name) for name in ("bash", "")] == ["other", "other"]


def test_a_tool_has_one_role() -> None:
    assert fault(tools={"read": ["Read"], "shell": ["Bash", "Read"]}) == "tool 'Read' has two roles, read and shell"


def test_a_tool_is_listed_once() -> None:
    assert fault(tools={"read": ["Read", "Read"]}) == "tool 'Read' has two roles, read and read"


@pytest.mark.parametrize(
    ("place", "parts"),
    [
        ("binary", {"binary": "{pyhton}"}),
        ("version.argv", {"version": {"argv": ["{pyhton}"], "pattern": "(.*)"}}),
        ("environment.set", {"environment": {"set": {"HOME": "{pyhton}/x"}}}),
        ("dispatch.groups.g", {"dispatch": {"argv": ["{binary}"], "groups": {"g": ["--x", "{pyhton}"]}}}),
    ],
)
def test_an_unknown_slot_is_told_with_its_place_and_the_known_ones(place: str, parts: dict[str, Any]) -> None:
    known = ", ".join(sorted({*VALUES, "input.script"}))
    assert fault(**parts) == f"{place}: unknown slot {{pyhton}}; known: {known}"


def test_groups_are_slots_of_the_dispatch_alone() -> None:
    dispatch = {"argv": ["{binary}", "{g}"], "groups": {"g": ["--model", "{model}"]}}
    assert HarnessDescriptor.model_validate(changed(dispatch=dispatch)).dispatch.argv == ("{binary}", "{g}")
    assert fault(dispatch=dispatch, binary="{g}").startswith("binary: unknown slot {g}; known: ")


def test_a_file_to_be_handed_over_has_a_slot_once_it_is_declared() -> None:
    dispatch = {"argv": ["{binary}", "{input.rules}"]}
    assert fault(dispatch=dispatch).startswith("dispatch.argv: unknown slot {input.rules}; known: ")
    made = HarnessDescriptor.model_validate(changed(dispatch=dispatch, inputs={"rules": {"description": "rules"}}))
    assert (made.inputs["rules"].required, made.inputs["rules"].description) == (False, "rules")


@pytest.mark.parametrize("parts", [{"act": "yolo"}, {"act": "default", "refused_as_root": ["yolo"]}])
def test_modes_that_are_named_are_among_the_modes(parts: dict[str, Any]) -> None:
    permissions = {"modes": ["default"], **parts}
    assert fault(permissions=permissions) == "permission mode 'yolo' is not among permissions.modes"


@pytest.mark.parametrize("pattern", [r"\d+", r"(\d+)\.(\d+)"])
def test_a_version_pattern_has_one_group(pattern: str) -> None:
    assert fault(version={"argv": ["{binary}"], "pattern": pattern}) == "must have exactly one group, the version"


@pytest.mark.parametrize("label", ["", "Claude", "claude_code", "-a", "a-", "a--b", "a/b"])
def test_a_label_is_lower_case_words_joined_by_hyphens(label: str) -> None:
    assert fault(label=label).startswith("String should match pattern")


def test_unknown_fields_are_refused_at_every_depth() -> None:
    assert fault(tytle="x") == "Extra inputs are not permitted"
    assert fault(skills={"folder": "a", "folders": "b"}) == "Extra inputs are not permitted"


def test_a_stream_must_have_a_parser_that_exists() -> None:
    transcript = {"parser": "gemini", "reports_denials": True, "reports_surface": True}
    assert fault(transcript=transcript) == (
        "Input should be 'claude-stream-json', 'codex-items', 'opencode-events' or 'cline-json'"
    )


def test_a_plan_gives_its_descriptor_back() -> None:
    assert of_plan(make_plan(harness="claude-code")) == descriptor("claude-code")
