"""The cells table: one row for each cell that was dispatched, from its record and its fragments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import polars as pl

from skilltrial.data.outcomes import Counting, policy
from skilltrial.data.plan import CampaignPlan
from skilltrial.data.tables import TABLES
from skilltrial.data.tables.columns import CELL_KEY
from skilltrial.descriptors.model import HarnessDescriptor, of_plan
from skilltrial.tasks.analysis import roster
from skilltrial.tasks.analysis.fragments import CellAttempt, DamagedFragments, damages

_KEY: Final = list(CELL_KEY)
_ROUND: Final = [*CELL_KEY, "round"]
_TOKENS: Final = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")
_SOURCES: Final = (
    "rounds",
    "parse_coverage",
    "usage",
    "tool_calls",
    "denials",
    "session_surface",
    "assertions",
    "diff_files",
)

Frames = Mapping[str, pl.LazyFrame]


def rows_of_attempts(plan: CampaignPlan, home: Path, attempts: Sequence[CellAttempt]) -> pl.DataFrame:
    """The cells table of these attempts, sorted by cell; `folder` becomes relative to `home`.

    Cells that were never dispatched have no row. Raises `DamagedFragments`.
    """
    descriptor = of_plan(plan)
    frames = {name: _scan(attempts, name) for name in _SOURCES}
    facts = _records(plan, home, attempts).lazy()
    for part in (
        _rounds(frames),
        _tokens(frames),
        _counts(frames),
        _skills(plan, descriptor, frames),
        _scores(plan, frames),
        _changes(frames),
    ):
        facts = facts.join(part, on=_KEY, how="left")
    table = TABLES["cells"]
    try:
        frame = _only_known(facts, descriptor).select(table.schema.names()).collect().sort(_KEY)
    except (pl.exceptions.PolarsError, OSError) as error:
        found = [damage for name in _SOURCES for damage in damages(attempts, TABLES[name])]
        if not found:
            raise
        raise DamagedFragments(plan.campaign, found) from error
    table.check(frame)
    return frame


def _scan(attempts: Sequence[CellAttempt], table: str) -> pl.LazyFrame:
    paths = [attempt.path(table) for attempt in attempts if attempt.has(table)]
    if not paths:
        return pl.LazyFrame(schema=TABLES[table].schema)
    return pl.scan_parquet(paths, schema=TABLES[table].schema, glob=False, hive_partitioning=False)


def _records(plan: CampaignPlan, home: Path, attempts: Sequence[CellAttempt]) -> pl.DataFrame:
    """What the attempts' records tell, and which fragments they have."""
    columns: dict[str, Any] = {name: dtype for name, dtype in TABLES["cells"].schema.items() if name in _RECORDED}
    columns |= {f"has_{name}": pl.Boolean for name in _SOURCES}
    columns |= {"planned_assertions": pl.Int64, "told_cost": pl.Float64}
    assertions = {planned.eval.id: len(planned.eval.assertions) for planned in plan.evals}
    rows = [
        {name: read(attempt) for name, read in _RECORDED.items()}
        | {f"has_{name}": attempt.has(name) for name in _SOURCES}
        | {"folder": attempt.folder.root.relative_to(home).as_posix()}
        | {"planned_assertions": assertions[attempt.cell.eval_id]}
        for attempt in attempts
    ]
    return pl.DataFrame(rows, schema=columns, orient="row")


_RECORDED: Final[Mapping[str, Callable[[CellAttempt], object]]] = {
    "eval_id": lambda a: a.cell.eval_id,
    "condition": lambda a: a.cell.condition,
    "repetition": lambda a: a.cell.repetition,
    "attempt": lambda a: a.record.attempt,
    "block": lambda a: a.cell.block,
    "cell_digest": lambda a: a.cell.digest,
    "outcome": lambda a: a.record.outcome.value,
    "reason": lambda a: a.record.reason,
    "settled": lambda a: a.record.settled,
    "counting": lambda a: policy(a.record.outcome).counting.value,
    "rounds": lambda a: len(a.record.rounds),
    "duration_ms": lambda a: a.record.duration_ms,
    "harness": lambda a: a.record.harness,
    "cli_version": lambda a: a.record.cli_version,
    "model": lambda a: a.record.model,
    "permission_mode": lambda a: a.record.permission_mode,
    "session_id": lambda a: a.record.session_id,
    "told_cost": lambda a: a.record.cost_usd,
    "prompt_digest": lambda a: a.record.prompt_digest,
    "notes": lambda a: list(a.record.notes),
    "worker": lambda a: a.record.worker,
    "started_at": lambda a: a.record.started_at,
    "folder": lambda a: a.folder.root.as_posix(),
}


def _rounds(frames: Frames) -> pl.LazyFrame:
    return (
        frames["rounds"]
        .sort(_ROUND)
        .group_by(_KEY)
        .agg(
            _all_known("cost_usd"),
            pl.col("final_text").last(),
            pl.col("notes").explode().alias("round_notes"),
            pl.col("surface_kinds").list.contains("skill").any().alias("has_roster"),
        )
    )


def _tokens(frames: Frames) -> pl.LazyFrame:
    """Tokens of the whole tree of agents; null as soon as one round does not tell, or only a lower bound.

    A harness without rows of scope `all` still tells the tree when no sub-agent was called: it is `main` then.
    """
    sub_agent = (pl.col("role") == "subagent") | pl.col("parent_tool_use_id").is_not_null()
    with_helpers = frames["tool_calls"].filter(sub_agent).select(_ROUND).unique()
    exact = frames["usage"].group_by([*_ROUND, "scope"]).agg(*map(_all_exact, _TOKENS))
    tree = exact.filter(pl.col("scope") == "all").drop("scope")
    main = (
        exact.filter(pl.col("scope") == "main")
        .drop("scope")
        .join(tree.select(_ROUND), on=_ROUND, how="anti")
        .join(with_helpers, on=_ROUND, how="anti")
    )
    every_round = frames["rounds"].select(_ROUND).join(pl.concat([tree, main]), on=_ROUND, how="left")
    return every_round.group_by(_KEY).agg(*map(_all_known, _TOKENS))


def _counts(frames: Frames) -> pl.LazyFrame:
    """Rows by cell: tool calls, denials, and the streams that were read."""
    titles = {"tool_calls": "tool_calls", "denials": "denials", "parse_coverage": "streams"}
    counted = [frames[table].select(*_KEY, pl.lit(title).alias("what")) for table, title in titles.items()]
    return (
        pl.concat(counted)
        .group_by(_KEY)
        .agg(*((pl.col("what") == title).sum().cast(pl.Int64).alias(title) for title in titles.values()))
    )


def _skills(plan: CampaignPlan, descriptor: HarnessDescriptor, frames: Frames) -> pl.LazyFrame:
    own = roster.own_skills(plan)
    listed = roster.listed(frames["rounds"], frames["session_surface"], own)
    used = roster.used(frames["tool_calls"], own, descriptor.skills.folder)
    treated = own.lazy().select("condition", pl.lit(value=True).alias("treated")).unique()
    cells = frames["rounds"].select(_KEY).unique().join(treated, on="condition")
    return cells.join(listed, on=_KEY, how="left").join(
        used.with_columns(pl.lit(value=True).alias("skill_used")), on=_KEY, how="left"
    )


def _scores(plan: CampaignPlan, frames: Frames) -> pl.LazyFrame:
    """Verdicts that still fit the plan's assertions: those of an earlier wording are as good as none."""
    digests = pl.LazyFrame(
        [(planned.eval.id, planned.grading_digest) for planned in plan.evals],
        schema={"eval_id": pl.String, "grading_digest": pl.String},
        orient="row",
    )
    passed = pl.col("passed")
    return (
        frames["assertions"]
        .join(digests, on=["eval_id", "grading_digest"], how="semi")
        .group_by(_KEY)
        .agg(
            passed.sum().cast(pl.Int64).alias("assertions_passed"),
            passed.count().cast(pl.Int64).alias("assertions_graded"),
        )
    )


def _changes(frames: Frames) -> pl.LazyFrame:
    return (
        frames["diff_files"]
        .group_by(_KEY)
        .agg(
            pl.len().cast(pl.Int64).alias("files_touched"),
            pl.col("lines_added").sum(),
            pl.col("lines_removed").sum(),
        )
    )


def _only_known(facts: pl.LazyFrame, descriptor: HarnessDescriptor) -> pl.LazyFrame:
    """Turn "no row" into 0 where the fragment exists, and leave or make everything else null."""
    gradable = (pl.col("counting") == Counting.SCORED.value) & (pl.col("planned_assertions") > 0)
    graded = gradable & (pl.col("assertions_graded") > 0)
    # a process that never started leaves no stream: of its calls nothing is known, which is not none
    read = (pl.col("rounds") > 0) & (pl.col("streams").fill_null(0) >= pl.col("rounds"))
    reports = pl.lit(descriptor.transcript.reports_denials) & read
    told = read & pl.col("has_roster").fill_null(value=False)
    return facts.with_columns(
        pl.coalesce("cost_usd", "told_cost").alias("cost_usd"),
        pl.when(graded).then(pl.col("assertions_passed") / pl.col("assertions_graded")).alias("score"),
        pl.when(graded).then("assertions_passed").alias("assertions_passed"),
        pl.when(graded).then("assertions_graded").alias("assertions_graded"),
        pl.when(gradable)
        .then(pl.col("planned_assertions") - pl.col("assertions_graded").fill_null(0))
        .alias("assertions_missing"),
        pl.when(read).then(pl.col("tool_calls").fill_null(0)).alias("tool_calls"),
        pl.when(reports).then(pl.col("denials").fill_null(0)).alias("denials"),
        reports.alias("denials_known"),
        *(
            pl.when("has_diff_files").then(pl.col(name).fill_null(0)).alias(name)
            for name in ("files_touched", "lines_added", "lines_removed")
        ),
        pl.when("treated")
        .then(pl.when("skill_used").then(pl.lit(value=True)).when(told).then(pl.lit(value=False)))
        .alias("skill_used"),
        pl.concat_list("notes", pl.col("round_notes").fill_null([])).list.unique(maintain_order=True).alias("notes"),
    )


def _all_known(name: str) -> pl.Expr:
    return pl.when(pl.col(name).null_count() == 0).then(pl.col(name).sum()).alias(name)


def _all_exact(name: str) -> pl.Expr:
    known = (pl.col(name).null_count() == 0) & pl.col("exact").all()
    return pl.when(known).then(pl.col(name).sum()).alias(name)
