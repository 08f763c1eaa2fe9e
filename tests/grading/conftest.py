"""One finished attempt in a real environment, for the tests of grading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from skilltrial.data.evals import Assertion
from skilltrial.data.grading import DiffRecord
from skilltrial.data.outcomes import Outcome
from skilltrial.data.store import AttemptFolder, CampaignFolder, Store
from skilltrial.data.template import TemplateRecord
from skilltrial.tasks.grading.diff import measure
from skilltrial.tasks.grading.grade import grade_attempt
from skilltrial.tasks.staging.provision import provision
from skilltrial.tasks.staging.template import build
from tests.staging.building import (
    EVAL,
    SKILL_FILES,
    TREATMENT,
    campaign_of,
    frozen_skill,
    git_codebase,
    make_plan,
    make_record,
    make_repository,
)

CODEBASE = {
    ".gitignore": "ignored/\n*.log\n",
    ".gitattributes": "*.lock -diff\n",
    "app.py": "".join(f"line {n}\n" for n in range(1, 21)),
    "run.sh": "#!/bin/sh\necho run\n",
    "a.lock": "1\n",
    "docs/read me.md": "text\n",
}


@dataclass
class Ground:
    """A campaign with one attempt, whose agent is the test."""

    folder: CampaignFolder
    store: Store
    attempt: AttemptFolder
    template: TemplateRecord
    project: Path  # the environment
    sources: Path  # where the plan's codebase and skill lie

    @property
    def repository(self) -> Path:
        """The template's repository."""
        return self.folder.template(EVAL, TREATMENT) / "repository"

    def diff(self) -> DiffRecord:
        """What the agent changed, measured now."""
        patch = self.attempt.outputs / "diff.patch"
        return measure(self.repository, self.template, self.attempt.environment, patch, root=self.attempt.root)

    def changes(self) -> dict[str, tuple[str, int | None, int | None, int]]:
        """Status, lines added and removed, and hunks of each changed file."""
        return {
            file.path: (file.status, file.lines_added, file.lines_removed, file.hunks) for file in self.diff().files
        }

    def grade(
        self,
        assertions: Sequence[Assertion],
        *,
        heldout: Path | None = None,
        outcome: Outcome = Outcome.COMPLETED,
    ) -> None:
        """Grade the attempt by these assertions."""
        plan = make_plan(self.folder, heldout=heldout, assertions=assertions)
        record = make_record(self.folder, self.attempt, self.template.baseline, outcome)
        grade_attempt(plan, plan.cells[0], record, self.folder, self.attempt)

    def verdicts(self) -> dict[str, tuple[bool | None, str | None]]:
        """Verdict and error of each assertion, from the fragment."""
        frame = self.fragment("assertions")
        return {row["assertion_id"]: (row["passed"], row["error"]) for row in frame.iter_rows(named=True)}

    def fragment(self, table: str) -> pl.DataFrame:
        """One fragment of the attempt."""
        return pl.read_parquet(self.attempt.fragments / f"{table}.parquet")


@pytest.fixture
def ground(store: Store, tmp_path: Path) -> Ground:
    """An attempt that starts from a codebase with history and one staged skill."""
    folder, sources = campaign_of(store), tmp_path / "sources"
    revision = make_repository(sources / "codebase", CODEBASE)
    skill = frozen_skill(folder, sources / "skill", SKILL_FILES)
    plan = make_plan(folder, skills=[skill], codebase=git_codebase(sources / "codebase", revision))
    template = build(plan, plan.template(EVAL, TREATMENT), folder)
    workspace = store.workspace("w1")
    provision(folder.template(EVAL, TREATMENT), workspace)
    attempt = folder.cell(plan.cells[0]).begin()
    attempt.environment.symlink_to(workspace.project)
    return Ground(folder, store, attempt, template, workspace.project, sources)
