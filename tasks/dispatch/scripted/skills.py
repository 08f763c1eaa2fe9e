"""The skills that are really staged in the working directory."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

_FRONT_MATTER: Final = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*\n?", re.DOTALL | re.MULTILINE)
_KEY: Final = re.compile(r"^([A-Za-z][\w-]*):[ \t]*(.*)$", re.MULTILINE)


class Skill(NamedTuple):
    """A staged skill. `folder` is absolute; its name is the slug that the CLI lists."""

    folder: Path
    name: str | None  # of the front matter
    listed: bool  # a skill without front matter can be launched, but is not listed (measured)
    allowed_tools: str
    body: str

    @property
    def slug(self) -> str:
        """The folder's name."""
        return self.folder.name


def staged(cwd: Path) -> list[Skill]:
    """The skills of `.claude/skills`, by slug; a folder without `SKILL.md` is none."""
    root = cwd / ".claude" / "skills"
    if not root.is_dir():
        return []
    return [_read(path.parent) for path in sorted(root.glob("*/SKILL.md"))]


def find(cwd: Path, name: str) -> Skill | None:
    """The skill of that slug, else the one whose front matter has that name."""
    skills = staged(cwd)
    return next((s for s in skills if s.slug == name), None) or next((s for s in skills if s.name == name), None)


def _read(folder: Path) -> Skill:
    text = (folder / "SKILL.md").read_text("utf-8", "replace")
    match = _FRONT_MATTER.match(text)
    keys = {key: value.strip().strip("'\"") for key, value in _KEY.findall(match[1])} if match else {}
    body = text[match.end() :] if match else text
    return Skill(folder, keys.get("name"), match is not None, keys.get("allowed-tools", ""), body)
