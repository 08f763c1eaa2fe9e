"""Which skills a session could find on disk, and which names stand in more than one place.

Which of two skills of one name a CLI takes is not promised by anybody, and has changed between versions: every
duplicate is reported, and no winner guessed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skilltrial.tasks.planning.front_matter import read_front_matter

SKILL_FOLDERS: Final[Mapping[str, tuple[str, ...]]] = {
    "claude-code": (".claude/skills",),
    "codex": (".agents/skills", ".codex/skills"),
    "opencode": (".opencode/skills", ".opencode/skill", ".agents/skills", ".claude/skills"),
    "cline": (".cline/skills", ".clinerules/skills", ".agents/skills"),
}
"""Folders below a project or a home that agent CLIs read (measured with codex-cli 0.171.0, opencode 1.18.33,
cline 3.0.65 and claude 2.1.332)."""

_FILE: Final = "SKILL.md"
_READ_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class SkillOnDisk:
    """One skill as it lies on disk. `folder` is below the root it was found from."""

    folder: Path
    folder_name: str
    name: str  # of the front matter; the folder's where it has none
    description: str
    notes: tuple[str, ...]  # what is odd about its SKILL.md

    @property
    def names(self) -> frozenset[str]:
        """Every name under which an agent CLI may list it: some take the folder's, some the front matter's."""
        return frozenset({self.name, self.folder_name})


def skills_below(root: Path, folders: Iterable[str] = SKILL_FOLDERS["claude-code"]) -> list[SkillOnDisk]:
    """The skills in these folders of a home or project, in the order of their paths; links are followed.

    A folder that is not there holds none. A SKILL.md that cannot be read is listed with a note.
    """
    found = []
    for relative in folders:
        place = root / relative
        folders_inside = sorted(place.iterdir()) if place.is_dir() else []
        # a link that leads nowhere is listed as well: somebody meant it to be a skill
        found += [_read(inside) for inside in folders_inside if os.path.lexists(inside / _FILE)]
    return found


def duplicates(skills: Iterable[SkillOnDisk]) -> dict[str, tuple[Path, ...]]:
    """Each name that more than one skill may be listed under, with the folders, in the order given."""
    places: dict[str, list[Path]] = {}
    for skill in skills:
        for name in sorted(skill.names):
            places.setdefault(name, []).append(skill.folder)
    return {name: tuple(folders) for name, folders in places.items() if len(folders) > 1}


def unique(skills: Iterable[SkillOnDisk]) -> tuple[str, ...]:
    """The names that stand in one place alone, sorted."""
    listed = list(skills)
    twice = duplicates(listed)
    return tuple(sorted({skill.name for skill in listed if not skill.names & set(twice)}))


def _read(folder: Path) -> SkillOnDisk:
    try:
        with (folder / _FILE).open("rb") as handle:
            text = handle.read(_READ_BYTES).decode("utf-8", "replace")
    except OSError as error:
        return SkillOnDisk(folder, folder.name, folder.name, "", (f"cannot be read: {error.strerror or error}",))
    front = read_front_matter(text)
    return SkillOnDisk(folder, folder.name, front.text("name") or folder.name, front.text("description"), front.notes)
