"""`CampaignPlan`: the frozen inputs of a campaign, resolved, digested and ordered.

A plan holds content digests instead of live folders. What a cell depends on is summed up in its
`digest`: two cells with the same digest would dispatch exactly the same work.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from skilltrial.data.digests import digest
from skilltrial.data.evals import Eval
from skilltrial.data.models import Kept
from skilltrial.data.spec import CampaignSpec, ContrastSpec

PLAN_SCHEMA = 1


def cell_label(eval_id: str, condition: str, repetition: int) -> str:
    """A cell's name, unique in a campaign: `<eval>/<condition>/r<repetition>`; also its folder below `cells/`."""
    return f"{eval_id}/{condition}/r{repetition}"


class Provenance(Kept):
    """Where a folder came from, for people; never part of a digest."""

    kind: Literal["folder", "git"]
    path: str  # absolute, as resolved on the planning machine
    ref: str | None = None
    revision: str | None = None  # full commit id; null outside a repository
    dirty: bool | None = None  # uncommitted changes below the folder; null outside a repository
    origin: str | None = None  # URL of the remote `origin`, credentials removed


class PlannedSkill(Kept):
    """One skill of a treatment. `digest` is the tree digest of what is staged (no `evals/`, no `.git`)."""

    name: str  # front matter name, or the folder's
    slug: str  # the folder it is staged in, and the identifier the CLI lists
    description: str
    digest: str
    provenance: Provenance


class PlannedCondition(Kept):
    """One arm with its skills, in staging order."""

    name: str
    skills: tuple[PlannedSkill, ...]


class PlannedCodebase(Kept):
    """A codebase at a fixed state. `key` names its one cached checkout."""

    key: str  # `<revision>` of a repository, or `tree-<digest>` of a folder without history
    revision: str | None
    branch: str
    provenance: Provenance


class PlannedEval(Kept):
    """One eval with digests of the files it brings along."""

    eval: Eval
    repetitions: int
    files_digest: str  # the fixtures, as a tree of their destinations; names their frozen copy
    heldout_digest: str  # the setup files of command checks, as a tree; names their frozen copy
    grading_digest: str  # its assertions and held-out files: what a verdict depends on besides the attempt
    codebase: PlannedCodebase | None = None


class PlannedHarness(Kept):
    """The resolved descriptor (`descriptors.model.of_plan` reads it back), and the CLI found with it."""

    label: str
    descriptor: dict[str, JsonValue]
    binary: str | None  # absolute path; null: not found
    cli_version: str | None  # null: not found, or it did not answer
    inputs: dict[str, str] = Field(default_factory=dict)  # name -> digest of each harness input file


class Cell(Kept):
    """One (eval, condition, repetition): what is dispatched, cached and retried. Repetitions count from 1."""

    eval_id: str
    condition: str
    repetition: int
    block: int  # cells of one block are one eval's and repetition's arms, run side by side
    digest: str

    @property
    def label(self) -> str:
        """Its name in a campaign."""
        return cell_label(self.eval_id, self.condition, self.repetition)


class Template(Kept):
    """One environment to build: an (eval, condition) with the digest of all that goes in."""

    eval_id: str
    condition: str
    digest: str


class Forecast(Kept):
    """What running the plan as it is now would dispatch."""

    cells: int
    settled: int  # cells whose newest attempt is settled and still fits the plan
    dispatches: int  # CLI processes at the least: one for each unsettled cell
    costs_money: bool
    budget_usd: float | None  # the most that the unsettled cells can spend in one try each; null: unlimited


class CampaignPlan(Kept):
    """Everything that decides a campaign's cells. `cells` stand in dispatch order."""

    schema_version: int = PLAN_SCHEMA
    campaign: str
    skill_name: str
    spec: CampaignSpec  # with absolute paths
    harness: PlannedHarness
    conditions: tuple[PlannedCondition, ...]
    contrasts: tuple[ContrastSpec, ...]
    evals: tuple[PlannedEval, ...]
    templates: tuple[Template, ...]
    cells: tuple[Cell, ...]
    warnings: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """Digest of the cells: equal for plans that would dispatch the same work."""
        return digest([cell.digest for cell in sorted(self.cells, key=lambda cell: cell.label)])

    def planned_eval(self, eval_id: str) -> PlannedEval:
        """The planned eval of that id (`KeyError` if there is none)."""
        return {planned.eval.id: planned for planned in self.evals}[eval_id]

    def condition(self, name: str) -> PlannedCondition:
        """The planned condition of that name (`KeyError` if there is none)."""
        return {condition.name: condition for condition in self.conditions}[name]

    def template(self, eval_id: str, condition: str) -> Template:
        """The template of that (eval, condition) (`KeyError` if there is none)."""
        return {(t.eval_id, t.condition): t for t in self.templates}[eval_id, condition]
