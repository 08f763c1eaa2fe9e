"""Small campaigns on disk, and running them through the real flow."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from prefect.client.schemas.objects import State

from skilltrial.data.attempt import AttemptRecord
from skilltrial.data.plan import CampaignPlan, Cell
from skilltrial.data.spec import CampaignSpec
from skilltrial.data.store import AttemptFolder, Store
from skilltrial.flows import observing
from skilltrial.tasks.planning.campaign_file import read_spec

WRITE = {"tool": {"name": "Write", "input": {"file_path": "{cwd}/done.txt", "content": "done\n"}}}


def script(*steps: dict[str, Any], match: str = ".") -> dict[str, Any]:
    """A script of one conversation."""
    return {"conversations": [{"match": match, "steps": list(steps)}]}


def evals(*prompts: str, assertions: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """An evals.json with one eval for each prompt, all with the same assertions."""
    made = {"id": "wrote", "type": "command_check", "command": "test -f done.txt"}
    checks = [made] if assertions is None else assertions
    return {
        "skill_name": "finisher",
        "evals": [
            {"id": f"e{number}", "prompt": prompt, "expected_output": "a file", "assertions": checks}
            for number, prompt in enumerate(prompts, start=1)
        ],
    }


@dataclass
class Files:
    """A skill, its evals, a script and a campaign file in one folder."""

    root: Path
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def skill(self) -> Path:
        """The skill's folder."""
        return self.root / "finisher"

    @property
    def campaign(self) -> Path:
        """The campaign file."""
        return self.root / "campaign.toml"

    def write(self, script: dict[str, Any], evals: dict[str, Any], *, skill: str = "Write done.txt.") -> Files:
        """Write, or overwrite, all four."""
        (self.skill / "evals").mkdir(parents=True, exist_ok=True)
        (self.skill / "SKILL.md").write_text(f"---\nname: finisher\ndescription: Finishes.\n---\n{skill}\n")
        (self.skill / "evals" / "evals.json").write_text(json.dumps(evals))
        (self.root / "script.json").write_text(json.dumps(script))
        settings = {"name": "small", "skill": "finisher", "harness": "scripted", "repetitions": 1, "jobs": 2}
        lines = [f"{key} = {json.dumps(value)}" for key, value in {**settings, **self.settings}.items()]
        self.campaign.write_text("\n".join([*lines, "[harness_inputs]", 'script = "script.json"', ""]))
        return self

    def spec(self, **changes: Any) -> CampaignSpec:
        """The spec of the campaign file."""
        return read_spec(self.campaign).model_copy(update=changes)


class Witness(observing.Observer):
    """Keeps what the flow reported."""

    def __init__(self) -> None:
        self.attempts: list[tuple[str, int, str]] = []
        self.warnings: list[str] = []
        self.settled_before = -1

    def planned(self, plan: CampaignPlan, settled: Any) -> None:
        """Keep how many cells were settled."""
        self.settled_before = len(settled)

    def warned(self, warnings: Any) -> None:
        """Keep the warnings."""
        self.warnings += warnings

    def finished(self, cell: Cell, record: AttemptRecord) -> None:
        """Keep the attempt."""
        self.attempts.append((cell.label, record.attempt, str(record.outcome)))

    def started(self, cell: Cell, attempt: AttemptFolder) -> None:
        """Starts are not kept."""


def run(spec: CampaignSpec, store: Store, cells: tuple[str, ...] | None = None) -> tuple[State[Any], Witness]:
    """Run the flow in this process; what it raises is in the state."""
    from skilltrial.flows.campaign import campaign

    witness = Witness()
    with observing.observed_by(witness):
        state = campaign(spec, store.home, cells, return_state=True)
    return state, witness


def table(store: Store, name: str) -> pl.DataFrame:
    """One table of all campaigns, in a fixed order."""
    frame = pl.read_parquet(store.tables / name / "**/*.parquet", hive_partitioning=True)
    return frame.sort([column for column in ("eval_id", "condition", "repetition") if column in frame.columns])
