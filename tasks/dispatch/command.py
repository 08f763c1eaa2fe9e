"""The command line and the environment of a round: plain functions of the descriptor and of named values."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import orjson

from skilltrial.data.errors import InvalidInput, Problem
from skilltrial.data.plan import CampaignPlan, Cell
from skilltrial.data.spec import CampaignSpec
from skilltrial.data.store import CampaignFolder, Workspace
from skilltrial.descriptors.model import SLOT, HarnessDescriptor

Values = Mapping[str, str | None]
"""What the slots of `descriptors.model.VALUES` and `input.NAME` stand for; null or missing: there is no value."""

SESSION_VARIABLES: Final = frozenset({"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SESSION_ID"})
"""Set inside a session of Claude Code: a CLI that finds them may refuse to start, or report to that session.

No variable of the operator's that begins like them is inherited; others, such as CLAUDE_CODE_OAUTH_TOKEN, can
still be named in `pass_env`.
"""


def bundled_agent() -> str:
    """Path of the scripted agent that comes with skilltrial: a program, run without site-packages."""
    return str(Path(__file__).parent / "scripted" / "agent.py")


def fixed_values() -> dict[str, str]:
    """The values of the slots that are the same for every cell of every campaign."""
    return {"python": sys.executable, "bundled_agent": bundled_agent()}


def permission_mode(spec: CampaignSpec, descriptor: HarnessDescriptor) -> str | None:
    """The permission mode of both arms: the campaign's, else the descriptor's."""
    return spec.permission_mode or descriptor.permissions.act


def values(
    plan: CampaignPlan,
    cell: Cell,
    descriptor: HarnessDescriptor,
    folder: CampaignFolder,
    workspace: Workspace,
    *,
    session_id: str,
    user: str,
) -> dict[str, str | None]:
    """The values of one attempt's slots. The binary is the one found when planning, else the descriptor's name."""
    spec = plan.spec
    fixed: dict[str, str | None] = {
        **fixed_values(),
        "model": spec.model,
        "permission_mode": permission_mode(spec, descriptor),
        "session_id": session_id,
        "allowed_tools": ",".join(spec.allowed_tools) or None,
        "max_turns": None if spec.max_turns is None else str(spec.max_turns),
        "budget_usd": None if spec.budget_usd is None else f"{spec.budget_usd:g}",
        "settings": orjson.dumps(descriptor.settings).decode() if descriptor.settings else None,
        "project": str(workspace.project),
        "home": str(workspace.home),
        "config": str(workspace.config),
        "tmp": str(workspace.tmp),
        "repetition": str(cell.repetition),
        "user": user,
    }
    inputs = {f"input.{name}": str(folder.source(digest)) for name, digest in plan.harness.inputs.items()}
    found = {**fixed, **inputs}
    return {**found, "binary": plan.harness.binary or fill(descriptor.binary, found, "binary")}


def build_argv(descriptor: HarnessDescriptor, values: Values) -> list[str]:
    """The argument vector of a dispatch.

    A group is left out when a value that it needs is absent. A value that is absent outside of a group is
    an `InvalidInput` that names the place and the slot.
    """
    argv: list[str] = []
    for number, text in enumerate(descriptor.dispatch.argv):
        group = descriptor.dispatch.groups.get(_only_slot(text) or "")
        if group is None:
            argv.append(fill(text, values, f"dispatch.argv[{number}]"))
        elif all(values.get(slot) is not None for part in group for slot in SLOT.findall(part)):
            argv.extend(fill(part, values, f"dispatch.groups.{_only_slot(text)}") for part in group)
    return argv


def build_environment(
    descriptor: HarnessDescriptor,
    values: Values,
    env: Mapping[str, str],
    pass_env: Iterable[str],
    operator: Mapping[str, str],
) -> dict[str, str]:
    """All variables that an agent gets, from the weakest source to the strongest.

    1. the descriptor's inherited names, as far as `operator` (the environment of this process) has them;
    2. the descriptor's own variables; one whose text needs an absent value is an `InvalidInput`;
    3. `env`, the campaign's variables;
    4. the names of `pass_env`, with the operator's values.

    Nothing else of the operator's passes, and what marks a running session of his passes by no way.
    """
    inherited = {name: operator[name] for name in descriptor.environment.inherit if name in operator}
    inherited = {name: value for name, value in inherited.items() if not _of_a_session(name)}
    fixed = {name: fill(text, values, f"environment.set.{name}") for name, text in descriptor.environment.set.items()}
    passed = {name: operator[name] for name in pass_env if name in operator and name not in SESSION_VARIABLES}
    return {**inherited, **fixed, **env, **passed}


def uses_slot(descriptor: HarnessDescriptor, slot: str) -> bool:
    """Whether the CLI is told the value of a slot on its command line."""
    texts: Iterator[str] = (
        text for texts in (descriptor.dispatch.argv, *descriptor.dispatch.groups.values()) for text in texts
    )
    return any(slot in SLOT.findall(text) for text in texts)


def fill(text: str, values: Values, place: str) -> str:
    """The text with its slots filled; `place` is how an `InvalidInput` names it. Filled text is not read again."""
    absent = [slot for slot in SLOT.findall(text) if values.get(slot) is None]
    if absent:
        raise InvalidInput(
            Problem("harness descriptor", place, text, f"needs a value for {{{slot}}}, and there is none")
            for slot in absent
        )
    return SLOT.sub(lambda match: values[match[1]] or "", text)


def _of_a_session(name: str) -> bool:
    return name == "CLAUDECODE" or name.startswith("CLAUDE_CODE_")


def _only_slot(text: str) -> str | None:
    """The name of the slot that the whole text is."""
    match = SLOT.fullmatch(text)
    return match[1] if match else None
