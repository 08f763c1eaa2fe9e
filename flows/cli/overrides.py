"""The options of `plan` and `run` that replace fields of the campaign."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

if TYPE_CHECKING:
    from skilltrial.data.spec import CampaignSpec

_REPEATABLE: Final = Parameter(negative="", show_default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """Each is the campaign's own unless given.

    Parameters
    ----------
    name
        Name of the campaign in the store.
    harness
        Label of the agent CLI, such as claude-code or scripted.
    model
        Model name handed to the agent CLI.
    mode
        Which conditions are compared: new-skill, revision or aa.
    baseline_ref
        Git ref that holds the old skill (mode revision).
    only
        Run this eval alone; may be given several times.
    repetitions
        Cells of each eval and condition.
    jobs
        Cells that run at once.
    seed
        Decides the random order of the cells.
    permission_mode
        Permission mode of the agent in both arms.
    pass_env
        Variable copied from your environment to the agent's; may be given several times.
    budget_usd
        Money that one attempt may spend.
    timeout_s
        Seconds for one attempt.
    home
        The store's folder.
    """

    name: str | None = None
    harness: str | None = None
    model: str | None = None
    mode: str | None = None
    baseline_ref: str | None = None
    only: Annotated[tuple[str, ...], _REPEATABLE] = ()
    repetitions: int | None = None
    jobs: int | None = None
    seed: int | None = None
    permission_mode: str | None = None
    pass_env: Annotated[tuple[str, ...], _REPEATABLE] = ()
    budget_usd: float | None = None
    timeout_s: float | None = None
    home: Path | None = None

    def spec_of(self, target: Path) -> CampaignSpec:
        """The campaign that a target means, with these fields replaced; `InvalidInput` for what is wrong."""
        from skilltrial.tasks.planning.campaign_file import spec_of_target

        return spec_of_target(
            target,
            name=self.name,
            harness=self.harness,
            model=self.model,
            mode=self.mode,
            baseline_ref=self.baseline_ref,
            only=self.only,
            repetitions=self.repetitions,
            jobs=self.jobs,
            seed=self.seed,
            permission_mode=self.permission_mode,
            pass_env=self.pass_env,
            budget_usd=self.budget_usd,
            timeout_s=self.timeout_s,
        )


NO_OVERRIDES: Final = Overrides()
