"""`CampaignSpec`: what a person asks for, in `campaign.toml` or as the parameter of the flow."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from skilltrial.data.models import NonEmpty, Written

SLUG_PATTERN = r"^[a-z0-9][a-z0-9._-]*$"
ENVIRONMENT_NAME_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$"

Slug = Annotated[str, StringConstraints(pattern=SLUG_PATTERN, max_length=100)]
EnvironmentName = Annotated[str, StringConstraints(pattern=ENVIRONMENT_NAME_PATTERN)]

Mode = Literal["new-skill", "revision", "aa"]


class SkillRef(Written):
    """One skill to stage: a folder with `SKILL.md`, as it lies there or as a git ref has it."""

    path: Path
    ref: NonEmpty | None = None  # read the folder at this revision instead of the working tree


class ConditionSpec(Written):
    """One arm of the trial: a name, and the skills staged in it, in this order."""

    name: Slug
    treatment: tuple[SkillRef, ...] = ()


class ContrastSpec(Written):
    """A comparison; its effect is always treatment − control."""

    treatment: Slug
    control: Slug


class CampaignSpec(Written):
    """One trial. Paths may be relative: to the campaign file, or to the working directory of the flow."""

    name: Slug | None = Field(default=None, description="name in the store; default: <skill>-<mode>")
    skill: Path = Field(description="folder that holds SKILL.md")
    evals: Path | None = Field(default=None, description="evals.json; default: <skill>/evals/evals.json")
    only: tuple[NonEmpty, ...] = Field(default=(), description="ids of the evals to run; empty: all")

    mode: Mode = Field(default="new-skill", description="which conditions are compared, unless they are given")
    baseline_ref: NonEmpty | None = Field(default=None, description="git ref of the old skill (mode revision)")
    conditions: tuple[ConditionSpec, ...] = Field(default=(), description="the arms, instead of a mode's")
    contrasts: tuple[ContrastSpec, ...] = Field(default=(), description="what is compared; default: the mode's")

    harness: NonEmpty = Field(default="claude-code", description="label of the agent CLI's descriptor")
    harness_inputs: dict[str, Path] = Field(
        default_factory=dict, description="files that the descriptor asks for by name"
    )
    binary: Path | None = Field(default=None, description="the agent CLI's executable, instead of the one on PATH")
    model: NonEmpty | None = Field(default=None, description="model name handed to the CLI; default: the CLI's own")
    permission_mode: NonEmpty | None = Field(
        default=None, description="permission mode of both arms; default: the descriptor's"
    )
    allowed_tools: tuple[NonEmpty, ...] = Field(default=(), description="tool rules allowed without asking")
    env: dict[EnvironmentName, str] = Field(
        default_factory=dict, description="variables set for the agent; kept in the plan, so never secrets"
    )
    pass_env: tuple[EnvironmentName, ...] = Field(
        default=(), description="variables copied from your environment; only their names are kept"
    )

    repetitions: int = Field(default=3, ge=1, le=1000, description="cells of each eval and condition")
    jobs: int = Field(default=4, ge=1, le=256, description="cells that run at once")
    attempts: int = Field(default=3, ge=1, le=20, description="tries at a cell within one run")
    timeout_s: float = Field(default=1800.0, gt=0, description="seconds for one attempt, all its rounds together")
    silence_s: float = Field(default=600.0, gt=0, description="seconds without output after which a CLI has hung")
    max_turns: int | None = Field(default=None, ge=1, description="turns the agent may take in one attempt")
    budget_usd: float | None = Field(default=None, gt=0, description="money one attempt may spend")
    seed: int = Field(default=0, ge=0, description="decides the random order of the cells")

    alpha: float = Field(default=0.05, gt=0, lt=1, description="level of the declared tests")
    margin: float | None = Field(default=None, gt=0, le=1, description="effects smaller than this count as none")

    @model_validator(mode="after")
    def _consistent(self) -> CampaignSpec:
        if self.mode == "revision" and not self.conditions and self.baseline_ref is None:
            raise ValueError("mode 'revision' needs baseline_ref, the git ref that holds the old skill")
        names = [condition.name for condition in self.conditions]
        if len(names) != len(set(names)):
            raise ValueError(f"conditions must have different names, found {names}")
        if self.conditions and not self.contrasts:
            raise ValueError("conditions of your own need contrasts: which one is compared with which")
        for contrast in self.contrasts:
            if contrast.treatment == contrast.control:
                raise ValueError(f"a contrast needs two conditions, found {contrast.treatment!r} twice")
        return self
