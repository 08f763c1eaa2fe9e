"""One agent of the real CLI, started as a campaign starts it: argv and environment come from the descriptor."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from pydantic import JsonValue

from skilltrial.data.store import Workspace
from skilltrial.descriptors.loading import descriptor
from skilltrial.descriptors.model import HarnessDescriptor
from skilltrial.tasks.dispatch.command import build_argv, build_environment
from skilltrial.tasks.preflight.loopback.server import LoopbackServer

KEY = "sk-ant-loopback-dummy"
"""A key that opens nothing."""


@dataclass(frozen=True, slots=True)
class Run:
    """What one process of the CLI left behind."""

    exit_code: int
    events: list[dict[str, Any]]
    stdout: bytes
    stderr: str
    session_id: str

    def of(self, kind: str, subtype: str | None = None) -> list[dict[str, Any]]:
        """The records of a type, in order."""
        return [e for e in self.events if e["type"] == kind and subtype in (None, e.get("subtype"))]

    @property
    def init(self) -> dict[str, Any]:
        """The one `init` record."""
        (record,) = self.of("system", "init")
        return record

    @property
    def result(self) -> dict[str, Any]:
        """The one `result` record."""
        (record,) = self.of("result")
        return record

    @property
    def tool_results(self) -> list[tuple[str, dict[str, Any]]]:
        """Text and decision of every tool call, in the order of their answers."""
        found = []
        for record in self.of("user"):
            for block in record["message"]["content"]:
                if block["type"] == "tool_result":
                    meta = {entry["id"]: entry for entry in record.get("tool_result_meta", ())}
                    told = meta.get(block["tool_use_id"], {})
                    found.append((str(block["content"]), {"is_error": block.get("is_error"), **told}))
        return found


@dataclass(slots=True)
class Agent:
    """Folders of one agent, and the CLI that works in them."""

    binary: Path
    workspace: Workspace
    harness: HarnessDescriptor = field(default_factory=lambda: descriptor("claude-code"))

    @classmethod
    def make(cls, binary: Path, root: Path) -> Agent:
        """A new agent below `root`, its project an empty git repository."""
        made = cls(binary, Workspace(root))
        for folder in (made.workspace.project, made.workspace.home, made.workspace.config, made.workspace.tmp):
            folder.mkdir(parents=True)
        subprocess.run(["git", "init", "--quiet", str(made.workspace.project)], check=True)
        return made

    @property
    def project(self) -> Path:
        """The agent's working directory."""
        return self.workspace.project

    def stage_skill(self, slug: str, description: str, body: str = "Do it well.") -> None:
        """Put a skill where the CLI looks for a project's skills."""
        folder = self.project / self.harness.skills.folder / slug
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {slug}\ndescription: {description}\n---\n\n{body}\n")

    def run(
        self,
        server: LoopbackServer,
        prompt: str,
        *,
        set_environment: Mapping[str, str] | None = None,
        settings: Mapping[str, JsonValue] | None = None,
        **values: str | None,
    ) -> Run:
        """Run one prompt to its end. `values` fill the slots of the same name; the mode is acceptEdits by default."""
        session_id = str(uuid.uuid4())
        merged = orjson.dumps({**self.harness.settings, **(settings or {})}).decode()
        filled: dict[str, str | None] = {
            "binary": str(self.binary),
            "permission_mode": "acceptEdits",
            "session_id": session_id,
            "settings": merged,
            "project": str(self.project),
            "home": str(self.workspace.home),
            "config": str(self.workspace.config),
            "tmp": str(self.workspace.tmp),
            "user": "agent",
            **values,
        }
        api = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": KEY, **(set_environment or {})}
        done = subprocess.run(
            build_argv(self.harness, filled),
            cwd=self.project,
            env=build_environment(self.harness, filled, api, (), os.environ),
            input=prompt.encode(),
            capture_output=True,
            timeout=120,
        )
        events = [orjson.loads(line) for line in done.stdout.splitlines()]
        return Run(done.returncode, events, done.stdout, done.stderr.decode(), session_id)
