"""Reasons to doubt a comparison, each on positive evidence from the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from skilltrial.data.benchmark import Severity, ValidityWarning
from skilltrial.data.outcomes import Outcome
from skilltrial.data.plan import CampaignPlan, cell_label
from skilltrial.data.tables.columns import CELL_KEY
from skilltrial.tasks.analysis import effects, roster

_SHOWN: Final = 20
_KEY: Final = list(CELL_KEY)
_CUT_SHORT: Final = (Outcome.TIMED_OUT, Outcome.MAX_TURNS, Outcome.BUDGET_EXCEEDED)


@dataclass(frozen=True, slots=True)
class Tables:
    """The campaign's rows that warnings are made from."""

    cells: pl.DataFrame
    rounds: pl.DataFrame  # cell, round, surface_kinds, unfinished_tasks
    denials: pl.DataFrame  # cell, tool
    skills: pl.DataFrame  # cell, kind, name: the session surface
    coverage: pl.DataFrame  # cell, malformed, unknown_type, truncated, unknown_types

    @property
    def scored(self) -> pl.DataFrame:
        """Cells whose outcome counts; doubts about other cells concern nobody."""
        return effects.scored(self.cells)


def validity_warnings(plan: CampaignPlan, tables: Tables) -> list[ValidityWarning]:
    """Every warning, the gravest first, otherwise in a fixed order."""
    found = [
        *_treatment_not_listed(plan, tables),
        *_treatment_leaked(plan, tables),
        *_prompts_differ(plan, tables),
        *_roster_unknown(plan, tables),
        *_skill_unused(plan, tables),
        *_unsettled(plan, tables),
        *_excluded(tables),
        *_unequal(plan, tables),
        *_missing_verdicts(tables),
        *_mixed_sessions(tables),
        *_denials(plan, tables),
        *_cut_short(tables),
        *_unread(tables),
        *_coverage(tables),
        *_noted(tables),
        *_ungraded(plan),
        *(_warn(Severity.NOTE, "plan", text) for text in plan.warnings),
    ]
    return sorted(found, key=lambda warning: list(Severity).index(warning.severity))


def _treatment_not_listed(plan: CampaignPlan, tables: Tables) -> Iterator[ValidityWarning]:
    for condition, cells in _by_condition(plan, tables.scored.filter(pl.col("skill_listed").not_())):
        yield _warn(
            Severity.INVALID,
            "skill_not_listed",
            f"{_count(cells)} of {condition} ran in a session that does not list every staged skill",
            [condition],
            cells,
        )


def _treatment_leaked(plan: CampaignPlan, tables: Tables) -> Iterator[ValidityWarning]:
    leaks = roster.foreign_listed(tables.skills.lazy(), roster.foreign_skills(plan)).collect()
    for condition, cells in _by_condition(plan, tables.scored.join(leaks, on=_KEY)):
        names = cells["names"].explode().unique().sort().to_list()
        yield _warn(
            Severity.INVALID,
            "skill_leaked",
            f"{_count(cells)} of {condition} ran in a session that lists a skill only the other arm should have: "
            f"{', '.join(names)}",
            [condition],
            cells,
        )


def _prompts_differ(plan: CampaignPlan, tables: Tables) -> Iterator[ValidityWarning]:
    for contrast in plan.contrasts:
        arms = [contrast.treatment, contrast.control]
        rows = tables.scored.filter(pl.col("condition").is_in(arms))
        different = rows.group_by("eval_id").agg(pl.col("prompt_digest").n_unique()).filter(pl.col("prompt_digest") > 1)
        cells = rows.join(different.select("eval_id"), on="eval_id", how="semi")
        if cells.height:
            evals = ", ".join(different["eval_id"].sort())
            text = f"the cells of {' and '.join(arms)} did not all get the same prompt: {evals}"
            yield _warn(Severity.INVALID, "prompts_differ", text, arms, cells)


def _roster_unknown(plan: CampaignPlan, tables: Tables) -> Iterator[ValidityWarning]:
    told = tables.rounds.filter(pl.col("surface_kinds").list.contains("skill")).select(_KEY).unique()
    for condition, cells in _by_condition(plan, tables.scored.join(told, on=_KEY, how="anti")):
        text = (
            f"{_count(cells)} of {condition} ran in a session that does not tell its skills, so nobody can check them"
        )
        yield _warn(Severity.SUSPECT, "roster_unknown", text, [condition], cells)


def _skill_unused(plan: CampaignPlan, tables: Tables) -> Iterator[ValidityWarning]:
    wanted = {planned.eval.id for planned in plan.evals if planned.eval.skill_should_trigger}
    known = tables.scored.filter(pl.col("skill_used").is_not_null())
    for condition, cells in _by_condition(plan, known.filter(pl.col("eval_id").is_in(wanted))):
        if not cells["skill_used"].any():
            text = f"no cell of {condition} used the staged skill ({_count(cells)} could tell)"
            yield _warn(Severity.SUSPECT, "skill_never_used", text, [condition])
    needless = known.filter(pl.col("skill_used") & ~pl.col("eval_id").is_in(wanted))
    for condition, cells in _by_condition(plan, needless):
        text = f"{_count(cells)} of {condition} used the skill in an eval that should not trigger it"
        yield _warn(Severity.NOTE, "skill_used_needlessly", text, [condition], cells)


def _unsettled(plan: CampaignPlan, tables: Tables) -> Iterator[ValidityWarning]:
    tried = set(tables.cells.select(_KEY).iter_rows())
    never = [c.label for c in plan.cells if (c.eval_id, c.condition, c.repetition) not in tried]
    waiting = tables.cells.filter(pl.col("settled").not_())
    if never:
        text = f"{len(never)} of {len(plan.cells)} cells were never dispatched"
        yield ValidityWarning(
            severity=Severity.SUSPECT,
            code="not_dispatched",
            message=text,
            cells=tuple(sorted(never)[:_SHOWN]),
            count=len(never),
        )
    if waiting.height:
        text = f"{_count(waiting)} failed and can be tried again: the figures are preliminary"
        yield _warn(Severity.SUSPECT, "unsettled", text, cells=waiting)


def _excluded(tables: Tables) -> Iterator[ValidityWarning]:
    for (condition,), cells in effects.excluded(tables.cells).group_by("condition", maintain_order=True):
        by_outcome = cells["outcome"].value_counts().sort("outcome").iter_rows()
        listed = ", ".join(f"{number} {outcome}" for outcome, number in by_outcome)
        text = f"{_count(cells)} of {condition} left out for reasons of infrastructure: {listed}"
        yield _warn(Severity.SUSPECT, "excluded", text, [str(condition)], cells)


def _unequal(plan: CampaignPlan, tables: Tables) -> Iterator[ValidityWarning]:
    graded = tables.scored.filter(pl.col("score").is_not_null())
    for contrast in plan.contrasts:
        arms = [contrast.treatment, contrast.control]
        counts = [graded.filter(pl.col("condition") == arm).height for arm in arms]
        if counts[0] != counts[1]:
            text = f"the arms have different numbers of graded cells: {arms[0]} {counts[0]}, {arms[1]} {counts[1]}"
            yield _warn(Severity.SUSPECT, "unequal_graded", text, arms)


def _missing_verdicts(tables: Tables) -> Iterator[ValidityWarning]:
    cells = tables.scored.filter(pl.col("assertions_missing") > 0)
    if cells.height:
        missing = cells["assertions_missing"].sum()
        text = f"assertions without a verdict, which count neither way: {missing} in {_count(cells)}"
        yield _warn(Severity.SUSPECT, "missing_verdicts", text, cells=cells)


def _mixed_sessions(tables: Tables) -> Iterator[ValidityWarning]:
    titles = {"cli_version": "CLI versions", "model": "models", "permission_mode": "permission modes"}
    for column, title in titles.items():
        seen = tables.scored[column].drop_nulls().value_counts().sort(column).rows()
        if len(seen) > 1:
            listed = ", ".join(f"{value} ({number})" for value, number in seen)
            yield _warn(Severity.SUSPECT, f"mixed_{column}", f"the cells ran with different {title}: {listed}")


def _denials(plan: CampaignPlan, tables: Tables) -> Iterator[ValidityWarning]:
    rows = tables.denials.join(tables.scored.select(_KEY), on=_KEY, how="semi")
    counts = {(c, tool): n for c, tool, n in rows.group_by("condition", "tool").len().iter_rows()}
    for contrast in plan.contrasts:
        arms = (contrast.treatment, contrast.control)
        tools = sorted({tool for condition, tool in counts if condition in arms})
        pairs = {tool: [counts.get((arm, tool), 0) for arm in arms] for tool in tools}
        if pairs:
            listed = ", ".join(f"{tool} {numbers[0]}:{numbers[1]}" for tool, numbers in pairs.items())
            uneven = any(numbers[0] != numbers[1] for numbers in pairs.values())
            kind = "differently often" if uneven else "equally often"
            text = f"tool calls were refused {kind} in {arms[0]} and {arms[1]}: {listed}"
            severity = Severity.SUSPECT if uneven else Severity.NOTE
            yield _warn(severity, "denials_uneven" if uneven else "denials", text, arms)


def _cut_short(tables: Tables) -> Iterator[ValidityWarning]:
    for outcome in _CUT_SHORT:
        cells = tables.scored.filter(pl.col("outcome") == outcome.value)
        if cells.height:
            by_arm = cells["condition"].value_counts().sort("condition").rows()
            listed = ", ".join(f"{number} of {condition}" for condition, number in by_arm)
            text = f"{_count(cells)} ended as {outcome.value}, graded as left then: {listed}"
            yield _warn(Severity.SUSPECT, outcome.value, text, [arm for arm, _ in by_arm], cells)


def _unread(tables: Tables) -> Iterator[ValidityWarning]:
    cells = tables.scored.filter(pl.col("tool_calls").is_null())
    if cells.height:
        text = f"the events of {_count(cells)} were not read: calls, tokens and skill use of these are not known"
        yield _warn(Severity.SUSPECT, "not_ingested", text, cells=cells)


def _coverage(tables: Tables) -> Iterator[ValidityWarning]:
    titles = {
        "malformed": "event lines that are no JSON objects",
        "unknown_type": "event lines of a type this version does not know",
        "truncated": "event streams that are cut off at the end",
    }
    for column, title in titles.items():
        rows = tables.coverage.filter(pl.col(column) > 0)
        if rows.height:
            kinds = rows["unknown_types"].explode().drop_nulls().unique().sort().to_list()
            types = f" ({', '.join(kinds)})" if column == "unknown_type" and kinds else ""
            cells = rows.select(_KEY).unique()
            text = f"{title}{types}: {rows[column].sum()} in {_count(cells)}"
            yield _warn(Severity.NOTE, f"events_{column}", text, cells=cells)


def _noted(tables: Tables) -> Iterator[ValidityWarning]:
    unfinished = tables.rounds.filter(pl.col("unfinished_tasks").list.len() > 0).select(_KEY).unique()
    if unfinished.height:
        text = f"background tasks were still running when {_count(unfinished)} ended"
        yield _warn(Severity.SUSPECT, "unfinished_tasks", text, cells=unfinished)
    notes = tables.cells.select(*_KEY, "notes").explode("notes").filter(pl.col("notes").is_not_null())
    for (note,), cells in notes.sort("notes").group_by("notes", maintain_order=True):
        yield _warn(Severity.NOTE, "noted", f"{_count(cells)} noted: {note}", cells=cells)


def _ungraded(plan: CampaignPlan) -> Iterator[ValidityWarning]:
    evals = sorted(planned.eval.id for planned in plan.evals if not planned.eval.assertions)
    if evals:
        text = f"evals without assertions are ungraded and take no part in any effect: {', '.join(evals)}"
        yield _warn(Severity.NOTE, "ungraded_evals", text)


def _by_condition(plan: CampaignPlan, cells: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    for condition in plan.conditions:
        rows = cells.filter(pl.col("condition") == condition.name)
        if rows.height:
            yield condition.name, rows


def _count(cells: pl.DataFrame) -> str:
    return f"{cells.height} cell{'' if cells.height == 1 else 's'}"


def _warn(
    severity: Severity,
    code: str,
    message: str,
    conditions: Sequence[str] = (),
    cells: pl.DataFrame | None = None,
) -> ValidityWarning:
    rows = [] if cells is None else cells.select(_KEY).unique().sort(_KEY).rows()
    return ValidityWarning(
        severity=severity,
        code=code,
        message=message,
        conditions=tuple(conditions),
        cells=tuple(cell_label(*row) for row in rows[:_SHOWN]),
        count=len(rows),
    )
