"""A skill on disk: its SKILL.md, the folder it will be staged in, and exactly which of its files are staged."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from skilltrial.data.digests import tree_digest
from skilltrial.data.errors import InvalidInput, Problem
from skilltrial.descriptors import loading
from skilltrial.tasks.planning.front_matter import FrontMatter, read_front_matter
from skilltrial.tasks.planning.slugs import slug_of

SKILL_FILE: Final = "SKILL.md"
EVALS_FOLDER: Final = "evals"
CAMPAIGN_FILE: Final = "campaign.toml"

_FOLDER_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_NEVER: Final = frozenset({".git", "__pycache__", ".DS_Store", "Thumbs.db", ".idea", ".vscode"})
_JUNK: Final = re.compile(r".*~|\.#.*|#.*#|\..*\.sw[a-z]|.*\.py[co]")


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill as it lies in a folder."""

    folder: Path
    name: str  # of the front matter, else the folder's
    description: str
    slug: str  # the folder it is staged in, which is also what an agent CLI lists
    front_matter: FrontMatter
    notes: tuple[str, ...]

    @property
    def digest(self) -> str:
        """Tree digest of what is staged of it."""
        return tree_digest(self.folder, skip=not_staged)


def read_skill(folder: Path, *, folder_name: str | None = None) -> Skill:
    """The skill in a folder; `InvalidInput` says what keeps the folder from being one.

    `folder_name`: what the folder is called where it comes from, if it lies elsewhere now.
    """
    problem = skill_problem(folder)
    if problem is not None:
        raise InvalidInput([problem])
    content = (folder / SKILL_FILE).read_bytes()
    text = content.decode("utf-8", errors="replace")
    front = read_front_matter(text)
    given = folder_name or folder.absolute().name
    name = front.text("name")
    notes = [f"SKILL.md {note}" for note in (*front.notes, *_warnings(front))]
    if "\ufffd" in text and b"\xef\xbf\xbd" not in content:
        notes.append("SKILL.md is not UTF-8 throughout")
    return Skill(folder, name or given, front.text("description"), slug(given, name), front, tuple(notes))


def skill_problem(folder: Path) -> Problem | None:
    """Why a folder is not a skill that agent CLIs would load; null: it is one."""
    if not folder.is_dir():
        return Problem(str(folder), "", None, "is not a folder" if folder.exists() else "does not exist")
    names = [entry.name for entry in folder.iterdir()]
    if SKILL_FILE in names:
        if (folder / SKILL_FILE).is_file():
            return None
        return Problem(str(folder / SKILL_FILE), "", None, "is not a file, or a link that leads nowhere")
    similar = sorted(name for name in names if name.casefold() == SKILL_FILE.casefold())
    if similar:
        return Problem(str(folder / similar[0]), "", None, "is ignored by agent CLIs; rename it", SKILL_FILE)
    return Problem(str(folder), "", None, "holds no SKILL.md, so it is not a skill")


def slug(folder_name: str, name: str) -> str:
    """The folder's name where it can be one, else the front matter's name made fit, else `skill`."""
    if _FOLDER_NAME.fullmatch(folder_name):
        return folder_name
    return slug_of(name) or slug_of(folder_name) or "skill"


def not_staged(relative: str) -> bool:
    """Whether a path below a skill's folder stays out of the environment, and so out of the digest.

    Left out are its evals and campaign (an agent must not read what it is graded by), version control, what editors and
    interpreters leave behind, and configuration of agent CLIs, which would act on the session.
    """
    parts = relative.split("/")
    if parts[0] == EVALS_FOLDER or relative == CAMPAIGN_FILE or parts[0] in config_folders():
        return True
    return parts[-1] in _NEVER or _JUNK.fullmatch(parts[-1]) is not None


@cache
def config_folders() -> frozenset[str]:
    """The folders of a project that any built-in harness reads its configuration from."""
    return frozenset(name for label in loading.labels() for name in loading.descriptor(label).skills.config_folders)


def _warnings(front: FrontMatter) -> list[str]:
    """What the front matter means for a session (claude 2.1.332, measured)."""
    found = []
    if not front.visible:
        found.append("is loaded, but no session lists the skill, so it cannot be told whether it was there")
    elif not front.text("description"):
        found.append("has no description, so an agent cannot tell when to use it")
    if front.text("disable-model-invocation") == "true":
        found.append("sets disable-model-invocation, so an agent cannot invoke it")
    if "hooks" in front.fields:
        found.append("brings hooks, which run in the session once the skill is invoked")
    if "allowed-tools" in front.fields:
        found.append("has allowed-tools: without bypassPermissions, invoking it is denied unless Skill is allowed")
    return found
