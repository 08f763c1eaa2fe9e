"""Skills, evals and repositories for the tests of planning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from skilltrial.data.git import git, git_text
from skilltrial.data.spec import CampaignSpec

CHECK = {"id": "ok", "type": "command_check", "command": "true"}


def write(path: Path, text: str) -> Path:
    """Write a file, its folders included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def skill(folder: Path, *, name: str | None = None, description: str = "Sorts tables.", body: str = "Sort.") -> Path:
    """A skill folder with a SKILL.md."""
    write(folder / "SKILL.md", f"---\nname: {name or folder.name}\ndescription: {description}\n---\n{body}\n")
    return folder


def evals(folder: Path, *entries: dict[str, Any], **top: Any) -> Path:
    """`evals/evals.json` of a skill; without entries it has one valid eval."""
    listed = entries or ({"id": "one", "prompt": "Sort it.", "assertions": [CHECK]},)
    document = {"skill_name": folder.name, **top, "evals": list(listed)}
    return write(folder / "evals" / "evals.json", json.dumps(document))


def trial(tmp_path: Path, *entries: dict[str, Any], top: dict[str, Any] | None = None, **fields: Any) -> CampaignSpec:
    """The spec of a scripted campaign over a fresh skill `tables` with these evals."""
    folder = skill(tmp_path / "tables")
    evals(folder, *entries, **(top or {}))
    script = write(tmp_path / "script.json", "{}")
    given = {"harness": "scripted", "harness_inputs": {"script": script}, "repetitions": 2, **fields}
    return CampaignSpec(skill=folder, **given)


def repository(folder: Path, files: dict[str, str] | None = None) -> Path:
    """A git repository with one commit of these files."""
    folder.mkdir(parents=True, exist_ok=True)
    git("init", "--quiet", cwd=folder)
    for name, text in (files or {}).items():
        write(folder / name, text)
    commit(folder)
    return folder


def commit(folder: Path, message: str = "change") -> str:
    """Commit everything; returns the commit id."""
    git("add", "--all", cwd=folder)
    git("commit", "--quiet", "--allow-empty", "--message", message, cwd=folder)
    return git_text("rev-parse", "HEAD", cwd=folder)
