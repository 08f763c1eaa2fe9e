"""Front matter as people write it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skilltrial.tasks.planning.front_matter import read_front_matter


@pytest.mark.parametrize(
    ("lines", "description"),
    [
        ("description: Sorts tables.", "Sorts tables."),
        ("description: 'Sorts: tables.'", "Sorts: tables."),
        ('description: "Sorts\\ttables"', "Sorts tables"),
        ("description: |\n  Sorts\n  tables.", "Sorts tables."),
        ("description: >-\n  Sorts\n  tables.", "Sorts tables."),
        ("description: Sorts\n  tables.", "Sorts tables."),
        ("description:\n  Sorts tables.", "Sorts tables."),
        ("description: 2024-01-01", "2024-01-01"),
        ("description: yes", "yes"),
        ("description:", ""),
        ("description: [a]", ""),
    ],
)
def test_every_spelling_of_a_description_is_read(lines: str, description: str) -> None:
    front = read_front_matter(f"---\nname: tables\n{lines}\nlicense: MIT\n---\nbody\n")
    assert front.text("description") == description
    assert (front.text("name"), front.text("license")) == ("tables", "MIT")
    assert front.notes == ()
    assert front.visible


@pytest.mark.parametrize(
    ("lines", "description"),
    [
        ("description: Use when: tables are unsorted", "Use when: tables are unsorted"),
        ("description: Use when: tables\n  are unsorted", "Use when: tables are unsorted"),
        ("description: |\n  Sorts\n  tables.\nbroken: a: b", "Sorts tables."),
        ("description: 'Sorts.'\nbroken: a: b", "Sorts."),
        ("tags:\n\t- a\ndescription: Sorts.", "Sorts."),
    ],
)
def test_what_strict_yaml_refuses_is_read_line_by_line(lines: str, description: str) -> None:
    front = read_front_matter(f"---\nname: tables\n{lines}\n---\n")
    assert (front.text("name"), front.text("description")) == ("tables", description)
    assert front.notes == ("has front matter that is not valid YAML; it was read line by line",)


def test_line_ends_and_a_byte_order_mark_do_not_matter() -> None:
    front = read_front_matter("\ufeff---\r\nname: tables\r\n---\r\nbody")
    assert front.text("name") == "tables"
    assert front.notes == ("starts with a byte order mark",)


def test_front_matter_in_a_fence_is_read_but_not_seen_by_agents() -> None:
    front = read_front_matter("```markdown\n---\nname: tables\n---\nbody\n```\n")
    assert front.text("name") == "tables"
    assert not front.visible


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("", "has no front matter"),
        ("# Tables\n---\nname: x\n---\n", "has no front matter"),
        ("---\nname: x\nbody", "has front matter without an end ('---')"),
    ],
)
def test_without_front_matter_there_are_no_fields(text: str, note: str) -> None:
    front = read_front_matter(text)
    assert (dict(front.fields), front.notes, front.visible) == ({}, (note,), False)


@given(st.text(max_size=200), st.booleans())
def test_no_text_is_too_strange_to_read(text: str, fenced: bool) -> None:
    front = read_front_matter(f"---\n{text}\n---\n" if fenced else text)
    assert isinstance(front.text("name"), str)


@pytest.mark.corpus
def test_public_skills_with_front_matter_yield_their_descriptions() -> None:
    folder = Path(os.environ.get("SKILLTRIAL_CORPUS") or pytest.skip("SKILLTRIAL_CORPUS is not set")) / "skills"
    read = {path: read_front_matter(path.read_bytes().decode(errors="replace")) for path in folder.glob("*/*.[mM][dD]")}
    assert len(read) >= 20
    assert all(front.text("description") for front in read.values() if "description" in front.fields)
    assert sum(bool(front.text("description")) for front in read.values()) >= len(read) - 5
