"""Runs the scripted agent as its users do: as a process of its own, with its own folders."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skilltrial.tasks.dispatch.scripted import agent as agent_module

AGENT = Path(agent_module.__file__ or "")
SESSION = "11111111-2222-4333-8444-555555555555"

Json = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """What one process wrote and how it ended."""

    code: int
    stdout: bytes
    stderr: str

    @property
    def events(self) -> list[Json]:
        """Every line, all of which must be JSON."""
        return [json.loads(line) for line in self.stdout.decode("utf-8").splitlines()]

    def of(self, kind: str, subtype: str | None = None) -> list[Json]:
        """The events of a type, and of a subtype."""
        return [e for e in self.events if e["type"] == kind and subtype in (None, e.get("subtype"))]

    @property
    def init(self) -> Json:
        """The only init event."""
        (event,) = self.of("system", "init")
        return event

    @property
    def result(self) -> Json:
        """The only result event, which is the last one."""
        (event,) = self.of("result")
        assert self.events[-1] == event
        return event

    @property
    def tool_results(self) -> list[Json]:
        """The user events that answer a tool call."""
        return [e for e in self.of("user") if e["message"]["content"][0]["type"] == "tool_result"]

    @property
    def answers(self) -> list[str]:
        """The texts of the answers to tool calls."""
        return [event["message"]["content"][0]["content"] for event in self.tool_results]


@dataclass
class Agent:
    """A working directory with the private folders of a session."""

    root: Path
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("project", "home", "config", "tmp"):
            (self.root / name).mkdir(parents=True)
        self.cwd = (self.root / "project").resolve()
        self.config = self.root / "config"
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root / "home"),
            "CLAUDE_CONFIG_DIR": str(self.config),
            "TMPDIR": str(self.root / "tmp"),
            **self.environment,
        }

    def run(self, steps: list[Json], *arguments: str, mode: str = "bypassPermissions", prompt: str = "Do it.") -> Run:
        """Carry out steps to the end."""
        process = self.start(steps, *arguments, mode=mode, prompt=prompt)
        out, err = process.communicate(timeout=60)
        return Run(process.returncode, out, err.decode())

    def script(self, document: object, *arguments: str, prompt: str = "Do it.") -> Run:
        """Run with a whole script, valid or not."""
        process = self._start(document, arguments, prompt)
        out, err = process.communicate(timeout=60)
        return Run(process.returncode, out, err.decode())

    def start(
        self, steps: list[Json], *arguments: str, mode: str = "bypassPermissions", prompt: str = "Do it."
    ) -> subprocess.Popen[bytes]:
        """Start with steps and return at once; standard input is closed after the prompt."""
        document = {"conversations": [{"match": "", "steps": steps}]}
        return self._start(document, ("--permission-mode", mode, *arguments), prompt)

    def stage(self, slug: str, text: str) -> None:
        """Stage a skill."""
        folder = self.cwd / ".claude" / "skills" / slug
        folder.mkdir(parents=True)
        (folder / "SKILL.md").write_text(text, "utf-8")

    def _start(self, document: object, arguments: tuple[str, ...], prompt: str) -> subprocess.Popen[bytes]:
        script = self.root / "script.json"
        script.write_text(document if isinstance(document, str) else json.dumps(document), "utf-8")
        session = () if {"--session-id", "--resume"} & set(arguments) else ("--session-id", SESSION)
        (self.root / "prompt").write_text(prompt, "utf-8")
        with (self.root / "prompt").open("rb") as stdin:
            return subprocess.Popen(
                [sys.executable, "-I", "-S", str(AGENT), "--script", str(script), *session, *arguments],
                cwd=self.cwd,
                env=self.environment,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )


def tool(name: str, **given: object) -> Json:
    """A step that makes one call."""
    return {"tool": {"name": name, "input": given}}


def bash(command: str, **given: object) -> Json:
    """A step that runs a shell command."""
    return tool("Bash", command=command, **given)


def read_until(process: subprocess.Popen[bytes], text: bytes) -> Iterator[bytes]:
    """The lines of a running process up to the first that holds a text."""
    assert process.stdout is not None
    for line in process.stdout:
        yield line
        if text in line:
            return


def finish(process: subprocess.Popen[bytes]) -> Run:
    """What the process writes from now on, and how it ends."""
    out, err = process.communicate(timeout=60)
    return Run(process.returncode, out, err.decode())
