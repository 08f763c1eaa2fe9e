"""The model of a harness descriptor: everything declarative about an agent CLI.

Texts may hold slots such as `{model}`; `tasks/dispatch/command.py` fills them. An entry of an argument
vector that is exactly one slot of `dispatch.groups` stands for that whole group of arguments, and for
none when a value the group needs is absent.
"""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from pydantic import Field, JsonValue, StringConstraints, field_validator, model_validator

from skilltrial.data.models import NonEmpty, Written
from skilltrial.data.plan import CampaignPlan

SLOT: Final = re.compile(r"\{([a-z_]+(?:\.[a-z0-9_-]+)?)\}")
"""A slot: `{name}`, or `{input.NAME}` for a file that the campaign hands to the harness."""

VALUES: Final = frozenset(
    {
        "python",  # this interpreter
        "bundled_agent",  # the scripted agent that comes with skilltrial
        "binary",  # the resolved executable
        "model",
        "permission_mode",
        "session_id",  # a fresh UUID for each attempt
        "allowed_tools",  # comma separated
        "max_turns",
        "budget_usd",
        "settings",  # the `settings` table as JSON on one line
        "project",  # the environment, which is also the working directory
        "home",
        "config",
        "tmp",
        "repetition",
        "user",
    }
)
"""The slots that a text may hold, besides `{input.NAME}` and the groups of an argument vector."""

Label = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$")]


class Version(Written):
    """How the CLI tells its version, without any model call."""

    argv: tuple[NonEmpty, ...] = Field(min_length=1)
    pattern: NonEmpty  # regular expression; its first group is the version

    @field_validator("pattern")
    @classmethod
    def _one_group(cls, value: str) -> str:
        if re.compile(value).groups != 1:
            raise ValueError("must have exactly one group, the version")
        return value


class Skills(Written):
    """Where the CLI looks for a project's skills, and how a call of one looks."""

    folder: NonEmpty  # relative to the project
    config_folders: tuple[NonEmpty, ...] = ()  # the CLI's own folders in a project; part of the baseline
    tool: NonEmpty | None = None
    argument: NonEmpty | None = None


class Dispatch(Written):
    """How one round is started. The prompt goes to stdin, events come from stdout."""

    argv: tuple[NonEmpty, ...] = Field(min_length=1)
    groups: dict[str, tuple[NonEmpty, ...]] = Field(default_factory=dict)


class Environment(Written):
    """The only variables an agent gets: names taken over if they are set, and fixed ones."""

    inherit: tuple[NonEmpty, ...] = ()
    set: dict[str, str] = Field(default_factory=dict)


class Permissions(Written):
    """Permission modes, as the CLI calls them."""

    modes: tuple[NonEmpty, ...] = ()
    act: NonEmpty | None = None  # the mode of a dispatch unless the campaign says otherwise
    refused_as_root: tuple[NonEmpty, ...] = ()
    root_override: NonEmpty | None = None  # variable by which a sandboxed host lets root use them


class Tools(Written):
    """The CLI's tool names by what they do."""

    read: tuple[NonEmpty, ...] = ()
    write: tuple[NonEmpty, ...] = ()
    patch: tuple[NonEmpty, ...] = ()
    shell: tuple[NonEmpty, ...] = ()
    skill: tuple[NonEmpty, ...] = ()
    subagent: tuple[NonEmpty, ...] = ()

    def role(self, tool: str) -> str:
        """read, write, patch, shell, skill or subagent; `other` for a tool that no list names."""
        for role in type(self).model_fields:
            if tool in getattr(self, role):
                return role
        return "other"

    @model_validator(mode="after")
    def _disjoint(self) -> Tools:
        seen: dict[str, str] = {}
        for role in type(self).model_fields:
            for tool in getattr(self, role):
                if tool in seen:
                    raise ValueError(f"tool {tool!r} has two roles, {seen[tool]} and {role}")
                seen[tool] = role
        return self


class Transcript(Written):
    """How the events are read."""

    parser: Literal["claude-stream-json", "codex-items", "opencode-events", "cline-json"]
    reports_denials: bool  # false: a refused call looks like a failed one
    reports_surface: bool  # the session tells which skills, plugins and tools it loaded


class HarnessInput(Written):
    """A file that the campaign hands to the harness."""

    description: NonEmpty
    required: bool = False


class HarnessDescriptor(Written):
    """One agent CLI."""

    label: Label
    title: NonEmpty
    costs_money: bool  # dispatching calls a paid model
    binary: NonEmpty  # name on PATH, a path, or a slot
    install_hint: str = ""
    version: Version
    skills: Skills
    dispatch: Dispatch
    environment: Environment
    permissions: Permissions = Permissions()
    tools: Tools
    transcript: Transcript
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    inputs: dict[str, HarnessInput] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _slots_exist(self) -> HarnessDescriptor:
        values = VALUES | {f"input.{name}" for name in self.inputs}
        places = {
            "binary": [self.binary],
            "version.argv": self.version.argv,
            "environment.set": self.environment.set.values(),
            **{f"dispatch.groups.{name}": texts for name, texts in self.dispatch.groups.items()},
        }
        for place, texts in places.items():
            _require_known(place, list(texts), values)
        _require_known("dispatch.argv", list(self.dispatch.argv), values | set(self.dispatch.groups))
        return self

    @model_validator(mode="after")
    def _act_is_a_mode(self) -> HarnessDescriptor:
        for mode in (self.permissions.act, *self.permissions.refused_as_root):
            if mode is not None and mode not in self.permissions.modes:
                raise ValueError(f"permission mode {mode!r} is not among permissions.modes")
        return self


def of_plan(plan: CampaignPlan) -> HarnessDescriptor:
    """The descriptor that was frozen in a plan."""
    return HarnessDescriptor.model_validate(plan.harness.descriptor)


def _require_known(place: str, texts: list[str], known: frozenset[str] | set[str]) -> None:
    for text in texts:
        for slot in SLOT.findall(text):
            if slot not in known:
                raise ValueError(f"{place}: unknown slot {{{slot}}}; known: {', '.join(sorted(known))}")
