"""Reading descriptors: the built-in ones, and files of one's own."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest

from skilltrial.data.errors import InvalidInput, UnknownName
from skilltrial.descriptors.loading import descriptor, labels, read

SCRIPTED = (resources.files("skilltrial.descriptors") / "scripted.toml").read_text("utf-8")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Where a descriptor of one's own would lie."""
    return tmp_path / "own.toml"


def problems(path: Path, text: str) -> list[str]:
    """What is wrong with a descriptor of that text, without the place of its file."""
    path.write_text(text, "utf-8")
    with pytest.raises(InvalidInput) as caught:
        read(path)
    assert {problem.file for problem in caught.value.problems} == {str(path)}
    return [str(problem).removeprefix(f"{path}: ") for problem in caught.value.problems]


def test_the_built_in_descriptors_are_claude_code_and_the_scripted_agent() -> None:
    assert labels() == ["claude-code", "scripted"]
    assert {label: (descriptor(label).label, descriptor(label).costs_money) for label in labels()} == {
        "claude-code": ("claude-code", True),
        "scripted": ("scripted", False),
    }


def test_a_label_that_does_not_exist_is_told_with_the_known_ones() -> None:
    with pytest.raises(UnknownName) as caught:
        descriptor("../claude-code")
    assert str(caught.value) == "there is no harness '../claude-code'; known: claude-code, scripted"


def test_a_file_is_read_like_a_built_in_descriptor(own: Path) -> None:
    own.write_text("\ufeff" + SCRIPTED, "utf-8")
    assert read(own) == descriptor("scripted")


def test_a_file_that_is_not_there_or_no_text_is_told_as_a_problem(own: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(own)
    assert str(caught.value) == f"{own}: does not exist"
    own.write_bytes(b"label = '\xff'")
    with pytest.raises(InvalidInput) as caught:
        read(own)
    assert str(caught.value) == f"{own}: is not UTF-8 at byte 9"


def test_a_file_that_is_no_toml_is_told_with_the_place(own: Path) -> None:
    assert problems(own, 'label = "x"\nlabel') == [
        "is not TOML: Expected '=' after a key in a key/value pair (at end of document)"
    ]


def test_every_wrong_field_is_told_at_once(own: Path) -> None:
    text = SCRIPTED.replace('label = "scripted"\n', "").replace("costs_money = false", 'costs_money = "perhaps"')
    assert problems(own, text.replace("[transcript]", '[transcript]\nparsr = "x"')) == [
        "label: is missing",
        "costs_money: input should be a valid boolean, unable to interpret input (found 'perhaps')",
        ("transcript.parsr: is not a known field (found 'x'); allowed: parser, reports_denials, reports_surface"),
    ]


def test_a_fault_of_the_whole_is_told_as_such(own: Path) -> None:
    (found,) = problems(own, SCRIPTED.replace('binary = "{python}"', 'binary = "{phyton}"'))
    assert found.startswith("binary: unknown slot {phyton}; known: ")


@pytest.mark.parametrize("label", labels())
def test_a_built_in_descriptor_lets_nothing_of_the_operator_in_but_the_basics(label: str) -> None:
    assert descriptor(label).environment.inherit == ("PATH", "LANG", "LC_ALL", "TZ")
    assert {"HOME", "CLAUDE_CONFIG_DIR", "TMPDIR"} <= set(descriptor(label).environment.set)


@pytest.mark.parametrize("label", labels())
def test_a_prompt_is_never_an_argument(label: str) -> None:
    found = descriptor(label)
    texts = [*found.dispatch.argv, *(text for group in found.dispatch.groups.values() for text in group)]
    assert not [text for text in texts if "prompt" in text]
