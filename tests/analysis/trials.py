"""A factory of small stores with real records and real Parquet fragments, no agent needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import polars as pl

from skilltrial.data.attempt import AttemptRecord, EndedBy, ProcessRecord, RoundRecord
from skilltrial.data.digests import digest
from skilltrial.data.evals import CommandCheck, Eval
from skilltrial.data.outcomes import Outcome
from skilltrial.data.plan import (
    CampaignPlan,
    Cell,
    PlannedCondition,
    PlannedEval,
    PlannedHarness,
    PlannedSkill,
    Provenance,
    Template,
)
from skilltrial.data.spec import CampaignSpec, ContrastSpec
from skilltrial.data.store import AttemptFolder, Store, write_model
from skilltrial.data.tables import TABLES
from skilltrial.descriptors.loading import descriptor
from skilltrial.tasks.analysis.cells import rows_of_attempts
from skilltrial.tasks.analysis.fragments import newest_attempts

START: Final = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TREATMENT: Final = "with_skill"
CONTROL: Final = "without_skill"
SKILL: Final = "csv-tidy"
Row = Mapping[str, Any]


def skill(slug: str = SKILL, content: str = "new") -> PlannedSkill:
    """A planned skill that lies nowhere."""
    where = Provenance(kind="folder", path=f"/skills/{slug}")
    return PlannedSkill(name=slug, slug=slug, description="d", digest=digest(content), provenance=where)


def make_plan(
    *,
    campaign: str = "trial",
    evals: Sequence[str] = ("alpha", "beta"),
    ungraded: Sequence[str] = (),
    repetitions: int = 2,
    conditions: Mapping[str, Sequence[PlannedSkill]] | None = None,
    contrasts: Sequence[tuple[str, str]] = ((TREATMENT, CONTROL),),
    harness: str = "scripted",
    assertions: int = 2,
    grading: str = "g1",
) -> CampaignPlan:
    """A plan over evals of `assertions` command checks each (none for the `ungraded` ones)."""
    arms: Mapping[str, Sequence[PlannedSkill]] = (
        conditions if conditions is not None else {TREATMENT: [skill()], CONTROL: []}
    )
    pairs = tuple(ContrastSpec(treatment=t, control=c) for t, c in contrasts)
    checks = tuple(CommandCheck(id=f"a{n}", type="command_check", command="true") for n in range(1, assertions + 1))
    planned = tuple(
        PlannedEval(
            eval=Eval(id=name, prompt="p", assertions=() if name in ungraded else checks),
            repetitions=repetitions,
            files_digest="f",
            heldout_digest="h",
            grading_digest=grading,
        )
        for name in (*evals, *ungraded)
    )
    cells = [
        Cell(eval_id=p.eval.id, condition=arm, repetition=r, block=block, digest=digest([p.eval.id, arm, r]))
        for block, (p, r) in enumerate((p, r) for p in planned for r in range(1, repetitions + 1))
        for arm in reversed(list(arms))
    ]
    return CampaignPlan(
        campaign=campaign,
        skill_name=SKILL,
        spec=CampaignSpec(skill=Path("/skills/csv-tidy"), harness=harness),
        harness=PlannedHarness(
            label=harness, descriptor=descriptor(harness).model_dump(mode="json"), binary="/bin/x", cli_version="1.0.0"
        ),
        conditions=tuple(PlannedCondition(name=name, skills=tuple(skills)) for name, skills in arms.items()),
        contrasts=pairs,
        evals=planned,
        templates=tuple(
            Template(eval_id=p.eval.id, condition=arm, digest=digest([p.eval.id, arm])) for p in planned for arm in arms
        ),
        cells=tuple(cells),
    )


def row(table: str, cell: Cell, attempt: int, **values: object) -> Row:
    """A row of a table with what is given, null where it may be, and a neutral value elsewhere."""
    identity = {"eval_id": cell.eval_id, "condition": cell.condition, "repetition": cell.repetition}
    given = {**identity, "attempt": attempt, **values}
    neutral = {pl.String: "", pl.Int64: 0, pl.Float64: 0.0, pl.Boolean: False, pl.List: [], pl.Datetime: START}
    defaults = {
        column.name: None if column.nullable else neutral[column.dtype.base_type()] for column in TABLES[table].columns
    }
    return {**defaults, **given}


def write_fragment(folder: AttemptFolder, table: str, rows: Iterable[Row]) -> Path:
    """One fragment with exactly the declared schema."""
    folder.fragments.mkdir(parents=True, exist_ok=True)
    path = folder.fragments / f"{table}.parquet"
    TABLES[table].frame(rows).write_parquet(path)
    return path


@dataclass
class Trial:
    """A plan with a store that tests fill cell by cell."""

    plan: CampaignPlan
    store: Store
    skills: Mapping[str, Sequence[str]] = field(default_factory=lambda: {TREATMENT: [SKILL], CONTROL: []})

    def cell(self, eval_id: str, condition: str, repetition: int = 1) -> Cell:
        """The planned cell."""
        key = (eval_id, condition, repetition)
        return next(c for c in self.plan.cells if (c.eval_id, c.condition, c.repetition) == key)

    def attempt(self, cell: Cell, outcome: Outcome = Outcome.COMPLETED, **values: Any) -> AttemptFolder:
        """A finished attempt without fragments; `values` replace fields of its record."""
        folder = self.store.campaign(self.plan.campaign).cell(cell).begin()
        process = ProcessRecord(
            ended_by=EndedBy.EXIT,
            exit_code=0,
            started_at=START,
            duration_ms=1000,
            stdout_bytes=10,
            stderr_bytes=0,
            leftovers=0,
        )
        rounds = tuple(
            RoundRecord(round=n, argv=("agent",), process=process, events_digest="e", session_id="s")
            for n in range(1, values.pop("rounds", 1) + 1)
        )
        fields: dict[str, Any] = {
            "campaign": self.plan.campaign,
            "eval_id": cell.eval_id,
            "condition": cell.condition,
            "repetition": cell.repetition,
            "attempt": folder.number,
            "cell_digest": cell.digest,
            "outcome": outcome,
            "reason": "",
            "started_at": START + timedelta(seconds=cell.block),
            "duration_ms": 1000,
            "workspace": "w",
            "baseline": "b",
            "prompt_digest": f"prompt-{cell.eval_id}",
            "harness": self.plan.harness.label,
            "cli_version": "1.0.0",
            "model": "model-1",
            "permission_mode": "default",
            "session_id": "s",
            "worker": "host",
            "rounds": rounds,
        }
        write_model(folder.record_path, AttemptRecord.model_validate(fields | values))
        return folder

    def ingest(self, folder: AttemptFolder, cell: Cell, **tables: Iterable[Row]) -> None:
        """The fragments of the session tables: one round that lists the arm's skills, plus the given rows."""
        number = folder.number
        defaults: dict[str, Iterable[Row]] = {
            "rounds": [{"round": 1, "surface_kinds": ["skill"], "cost_usd": 0.5, "final_text": "done"}],
            "session_surface": [
                {"round": 1, "kind": "skill", "name": name} for name in self.skills.get(cell.condition, [])
            ],
            **{name: [] for name in ("tool_calls", "denials", "usage", "messages")},
        }
        given = {**defaults, **tables}
        streams = [{"round": one["round"], "parser": "claude-stream-json"} for one in given["rounds"]]
        for table, rows in {"parse_coverage": streams, **given}.items():
            write_fragment(folder, table, [row(table, cell, number, **values) for values in rows])

    def grade(self, folder: AttemptFolder, cell: Cell, verdicts: Sequence[bool | None], **values: object) -> None:
        """The fragments of grading: one verdict for each assertion."""
        given = {"grading_digest": self.plan.planned_eval(cell.eval_id).grading_digest, **values}
        rows = [
            row(
                "assertions",
                cell,
                folder.number,
                assertion_id=f"a{n}",
                kind="command_check",
                passed=passed,
                error=None if passed is not None else "no answer",
                **given,
            )
            for n, passed in enumerate(verdicts, start=1)
        ]
        write_fragment(folder, "assertions", rows)
        write_fragment(folder, "diff_files", [])

    def run(self, cell: Cell, verdicts: Sequence[bool | None], **values: Any) -> AttemptFolder:
        """A whole completed cell: record, ingest and grade."""
        folder = self.attempt(cell, **values)
        self.ingest(folder, cell)
        self.grade(folder, cell, verdicts)
        return folder

    def run_all(self, passes: Callable[[Cell], Sequence[bool | None]]) -> None:
        """Every cell of the plan, with the verdicts that `passes` gives for it."""
        for cell in self.plan.cells:
            self.run(cell, passes(cell))


def eight_evals(store: Store) -> Trial:
    """The worked example: 8 evals, 5 repetitions of one assertion, passes as listed."""
    passes = {TREATMENT: (5, 4, 3, 5, 2, 5, 4, 1), CONTROL: (3, 4, 1, 2, 2, 3, 1, 1)}
    names = [f"e{n}" for n in range(1, 9)]
    made = Trial(make_plan(evals=names, repetitions=5, assertions=1), store)
    made.run_all(lambda cell: [cell.repetition <= passes[cell.condition][names.index(cell.eval_id)]])
    return made


def cell_rows(plan: CampaignPlan, store: Store) -> pl.DataFrame:
    """The cells table of a campaign as its folder is now."""
    return rows_of_attempts(plan, store.home, newest_attempts(plan, store.campaign(plan.campaign)))
