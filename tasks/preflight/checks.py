"""What can be known to spoil a campaign before a single cell is dispatched."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from skilltrial.data.errors import PreflightRefused
from skilltrial.data.plan import CampaignPlan
from skilltrial.data.store import Store
from skilltrial.descriptors.model import HarnessDescriptor, of_plan
from skilltrial.tasks.dispatch.command import permission_mode
from skilltrial.tasks.staging.template import template_record

_NEEDED_BYTES: Final = 1 << 30
_LEAKS: Final = ("CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", ".mcp.json", ".git")
"""What agent CLIs read, or take for their own, in any folder above the working directory, however far.

Skills and settings of folders above are not among them: each environment is a git repository of its own,
and the search for them ends at its root (claude 2.1.332, measured).
"""


class Level(StrEnum):
    """What a finding means for the campaign."""

    REFUSE = "refuse"
    WARN = "warn"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found, and what to do about it."""

    level: Level
    what: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.what}; {self.remedy}" if self.remedy else self.what


def passed(plan: CampaignPlan, store: Store) -> list[str]:
    """What is worth knowing although the campaign may run; `PreflightRefused` names all that must change."""
    findings = examine(plan, store)
    refusals = [str(finding) for finding in findings if finding.level is Level.REFUSE]
    if refusals:
        raise PreflightRefused(plan.campaign, refusals)
    return [str(finding) for finding in findings]


def examine(plan: CampaignPlan, store: Store, *, root: bool | None = None) -> list[Finding]:
    """Everything found, refusals first. `root`: whether agents run as root; default: what this process is."""
    descriptor = of_plan(plan)
    as_root = (os.geteuid() == 0) if root is None else root
    found = [
        *_cli(plan, descriptor),
        *_permission_mode(plan, descriptor, as_root),
        *_passed_variables(plan),
        *_folders_above(store.workspaces),
        *_disk(store.workspaces),
        *_codebase_skills(plan, store),
    ]
    return sorted(found, key=lambda finding: list(Level).index(finding.level))


def _cli(plan: CampaignPlan, descriptor: HarnessDescriptor) -> Iterator[Finding]:
    harness = plan.harness
    if harness.binary is None:
        hint = f"install it ({descriptor.install_hint})" if descriptor.install_hint else "install it"
        where = f"at {plan.spec.binary}" if plan.spec.binary else f"as {descriptor.binary!r} on PATH"
        yield Finding(Level.REFUSE, f"{descriptor.title} was not found {where}", f"{hint} or set `binary`")
    elif harness.cli_version is None:
        asked = " ".join(descriptor.version.argv).replace("{binary}", harness.binary)
        yield Finding(Level.REFUSE, f"`{asked}` did not tell a version", "run it by hand and mend what it says")


def _permission_mode(plan: CampaignPlan, descriptor: HarnessDescriptor, as_root: bool) -> Iterator[Finding]:
    permissions, mode = descriptor.permissions, permission_mode(plan.spec, descriptor)
    if mode is not None and mode not in permissions.modes:
        yield Finding(
            Level.REFUSE,
            f"{descriptor.title} has no permission mode {mode!r}",
            f"set permission_mode to one of {', '.join(permissions.modes)}",
        )
    if not as_root or mode not in permissions.refused_as_root:
        return
    override = permissions.root_override
    given = {**{name: os.environ.get(name, "") for name in plan.spec.pass_env}, **plan.spec.env}
    if override is not None and given.get(override):
        yield Finding(Level.NOTE, f"runs as root in mode {mode}, since {override} declares this host a sandbox")
        return
    ways = ["run as an unprivileged user"]
    if override is not None:
        ways.append(f'on a host that is a sandbox, declare so with env = {{ {override} = "1" }}')
    ways.append("choose another permission_mode, such as acceptEdits with allowed_tools")
    yield Finding(Level.REFUSE, f"{descriptor.title} refuses mode {mode} to root", ", or ".join(ways))


def _passed_variables(plan: CampaignPlan) -> Iterator[Finding]:
    missing = [name for name in plan.spec.pass_env if name not in os.environ]
    if missing:
        yield Finding(
            Level.REFUSE,
            f"pass_env names {', '.join(missing)}, not set in this environment",
            "set it where skilltrial runs, or take the name out",
        )


def _folders_above(workspaces: Path) -> Iterator[Finding]:
    for folder in (workspaces, *workspaces.parents):
        for name in _LEAKS:
            if (folder / name).exists():
                yield Finding(
                    Level.WARN,
                    f"{folder / name} lies above the agents' working directories, where agent CLIs read it",
                    "move the workspaces with SKILLTRIAL_WORKSPACES, or move that file",
                )


def _disk(workspaces: Path) -> Iterator[Finding]:
    existing = next(folder for folder in (workspaces, *workspaces.parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    if free < _NEEDED_BYTES:
        yield Finding(Level.WARN, f"only {free // (1 << 20)} MiB are free at {existing}", "make room before long runs")


def _codebase_skills(plan: CampaignPlan, store: Store) -> Iterator[Finding]:
    """Skills that a codebase brings along are live in every arm; one of the treatment's name spoils the control."""
    folder = store.campaign(plan.campaign)
    tested = {skill.slug for condition in plan.conditions for skill in condition.skills}
    for template in plan.templates:
        record = template_record(folder.template(template.eval_id, template.condition))
        for name in record.codebase_skills if record else ():
            place = f"the codebase of eval {template.eval_id} ({template.condition})"
            if name in tested:
                yield Finding(
                    Level.REFUSE,
                    f"{place} already holds a skill {name!r}, so the control arm could use it",
                    "take it out of the codebase, or compare with a revision that has none",
                )
            else:
                yield Finding(Level.WARN, f"{place} brings its own skill {name!r}, live in every arm")
