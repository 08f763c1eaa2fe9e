"""Skills on disk: what is one, what is staged of it, what it is called."""

from __future__ import annotations

from pathlib import Path

import pytest

from skilltrial.data.errors import InvalidInput
from skilltrial.tasks.planning.skill import not_staged, read_skill, skill_problem, slug
from tests.planning.building import skill, write


def test_a_skill_has_the_name_of_its_front_matter_and_the_slug_of_its_folder(tmp_path: Path) -> None:
    found = read_skill(skill(tmp_path / "tables", name="Table Sorter"))
    assert (found.name, found.slug, found.description, found.notes) == ("Table Sorter", "tables", "Sorts tables.", ())


@pytest.mark.parametrize(
    ("folder", "name", "expected"),
    [
        ("My-Skill", "other", "My-Skill"),
        ("two words", "Zoom-MCP/White board", "zoom-mcp-white-board"),
        (".hidden", "", "hidden"),
        ("日本", "表", "skill"),
        ("é" * 3, "Éclair", "eclair"),
    ],
)
def test_the_slug_is_a_name_that_a_folder_can_have(folder: str, name: str, expected: str) -> None:
    assert slug(folder, name) == expected


@pytest.mark.parametrize("name", ["skill.md", "SKILL.MD", "Skill.md"])
def test_a_skill_file_in_other_case_is_refused_with_its_right_name(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, "---\nname: x\n---\n")
    problem = skill_problem(tmp_path)
    assert problem is not None
    assert (problem.file, problem.allowed) == (str(tmp_path / name), "SKILL.md")


def test_what_is_no_skill_is_told_why(tmp_path: Path) -> None:
    (tmp_path / "dangling").mkdir()
    (tmp_path / "dangling" / "SKILL.md").symlink_to("nowhere")
    messages = []
    for path in (tmp_path, tmp_path / "gone", write(tmp_path / "file", ""), tmp_path / "dangling"):
        with pytest.raises(InvalidInput) as caught:
            read_skill(path)
        messages.append(caught.value.problems[0].message)
    assert messages == [
        "holds no SKILL.md, so it is not a skill",
        "does not exist",
        "is not a folder",
        "is not a file, or a link that leads nowhere",
    ]


def test_a_skill_file_that_is_a_link_is_read_through_it(tmp_path: Path) -> None:
    write(tmp_path / "real.md", "---\nname: linked\ndescription: d\n---\n")
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "SKILL.md").symlink_to("../real.md")
    assert read_skill(tmp_path / "x").name == "linked"


def test_what_spoils_a_trial_is_noted(tmp_path: Path) -> None:
    text = "---\nname: x\ndisable-model-invocation: true\nallowed-tools: Bash\nhooks: {}\n---\n"
    write(tmp_path / "SKILL.md", text)
    notes = " / ".join(read_skill(tmp_path).notes)
    for word in ("no description", "cannot invoke it", "brings hooks", "allowed-tools"):
        assert word in notes


@pytest.mark.parametrize(
    ("path", "left_out"),
    [
        ("SKILL.md", False),
        ("scripts/sort.py", False),
        ("reference/evals/notes.md", False),
        ("evals", True),
        ("evals/evals.json", True),
        ("campaign.toml", True),
        ("assets/campaign.toml", False),
        (".git", True),
        ("vendor/.git", True),
        ("scripts/__pycache__", True),
        ("scripts/a.pyc", True),
        (".claude", True),
        ("assets/.claude", False),
        ("notes.md~", True),
        (".notes.md.swp", True),
        (".DS_Store", True),
        (".env.example", False),
    ],
)
def test_exactly_what_belongs_to_a_skill_is_staged(path: str, left_out: bool) -> None:
    assert not_staged(path) is left_out


def test_the_digest_sees_what_is_staged_and_nothing_else(tmp_path: Path) -> None:
    folder = skill(tmp_path / "tables")
    before = read_skill(folder).digest
    write(folder / "evals/evals.json", "{}")
    write(folder / "__pycache__/x.pyc", "x")
    assert read_skill(folder).digest == before
    script = write(folder / "scripts/sort.sh", "sort")
    changed = read_skill(folder).digest
    script.chmod(0o755)
    assert len({before, changed, read_skill(folder).digest}) == 3
