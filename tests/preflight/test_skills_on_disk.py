"""Skills on disk, with the oddities that real ones have."""

from __future__ import annotations

from pathlib import Path

import pytest

from skilltrial.tasks.preflight.skills_on_disk import SKILL_FOLDERS, duplicates, skills_below, unique


def _write(root: Path, folder: str, text: str, below: str = ".claude/skills") -> Path:
    place = root / below / folder
    place.mkdir(parents=True)
    (place / "SKILL.md").write_text(text, newline="")
    return place


@pytest.mark.parametrize(
    ("text", "name", "description"),
    [
        ("---\nname: slug\ndescription: d\n---\n", "slug", "d"),
        ("---\r\nname: slug\r\ndescription: d\r\n---\r\n", "slug", "d"),
        ("\ufeff---\nname: slug\n---\n", "slug", ""),
        ("---\nname: 'Other Name'\ndescription: >\n  two\n  lines\n---\n", "Other Name", "two lines"),
        ("---\nname: slug\ndescription: use it: always\n---\n", "slug", "use it: always"),
        ("---\ndescription: no name\n---\n", "folder", "no name"),
        ("no front matter\n", "folder", ""),
        ("---\nname: slug\nnever ended\n", "folder", ""),
    ],
)
def test_a_skill_is_named_by_its_front_matter_or_its_folder(
    tmp_path: Path, text: str, name: str, description: str
) -> None:
    _write(tmp_path, "folder", text)
    [skill] = skills_below(tmp_path)
    assert (skill.name, skill.folder_name, skill.description) == (name, "folder", description)


def test_the_same_name_by_folder_or_front_matter_is_a_duplicate(tmp_path: Path) -> None:
    home = _write(tmp_path / "home", "one", "---\nname: report\n---\n")
    project = _write(tmp_path / "project", "report", "---\nname: other\n---\n")
    _write(tmp_path / "home", "alone", "---\nname: alone\n---\n")
    skills = skills_below(tmp_path / "home") + skills_below(tmp_path / "project")
    assert duplicates(skills) == {"report": (home, project)}
    assert unique(skills) == ("alone",)


def test_every_folder_that_a_harness_reads_is_looked_at_in_order(tmp_path: Path) -> None:
    for below in reversed(SKILL_FOLDERS["opencode"]):
        _write(tmp_path, "same", "---\nname: same\n---\n", below)
    found = skills_below(tmp_path, SKILL_FOLDERS["opencode"])
    assert [str(skill.folder.relative_to(tmp_path).parent) for skill in found] == list(SKILL_FOLDERS["opencode"])


def test_links_are_followed_and_a_dead_one_is_no_skill(tmp_path: Path) -> None:
    real = _write(tmp_path / "elsewhere", "real", "---\nname: real\n---\n")
    folder = tmp_path / "home" / ".claude" / "skills"
    folder.mkdir(parents=True)
    (folder / "linked").symlink_to(real)
    (folder / "dead").mkdir()
    (folder / "dead" / "SKILL.md").symlink_to(tmp_path / "nowhere")
    found = skills_below(tmp_path / "home")
    assert [(skill.folder_name, skill.name) for skill in found if not skill.notes] == [("linked", "real")]
    assert [skill.notes[0].split(":")[0] for skill in found if skill.notes] == ["cannot be read"]


def test_a_home_without_skills_holds_none(tmp_path: Path) -> None:
    assert skills_below(tmp_path) == []
