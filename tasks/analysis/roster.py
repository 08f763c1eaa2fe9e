"""Which skills a session lists and uses, measured against the treatment that its arm should have."""

from __future__ import annotations

from typing import Final

import polars as pl

from skilltrial.data.plan import CampaignPlan, PlannedSkill
from skilltrial.data.tables.columns import CELL_KEY

_SKILLS: Final = {"condition": pl.String, "slug": pl.String, "name": pl.String}


def own_skills(plan: CampaignPlan) -> pl.DataFrame:
    """(condition, slug, name) of every staged skill."""
    rows = [(c.name, skill.slug, skill.name) for c in plan.conditions for skill in c.skills]
    return pl.DataFrame(rows, schema=_SKILLS, orient="row")


def foreign_skills(plan: CampaignPlan) -> pl.DataFrame:
    """(condition, slug, name) of the skills that a contrasted arm has and the condition must not have.

    A skill of the same slug or name in both arms (two versions of it) is foreign to neither.
    """
    rows = set()
    for contrast in plan.contrasts:
        for here, other in ((contrast.treatment, contrast.control), (contrast.control, contrast.treatment)):
            own = {word for skill in plan.condition(here).skills for word in _words(skill)}
            rows |= {
                (here, skill.slug, skill.name) for skill in plan.condition(other).skills if not own & _words(skill)
            }
    return pl.DataFrame(sorted(rows), schema=_SKILLS, orient="row")


def listed(rounds: pl.LazyFrame, surface: pl.LazyFrame, own: pl.DataFrame) -> pl.LazyFrame:
    """(cell, skill_listed): whether every round with a roster lists every skill of the cell's arm.

    Cells without a skill, or without a roster of skills, have no row. A copy under a plugin's name
    (`plugin:skill`) is not the staged skill.
    """
    key = [*CELL_KEY, "round"]
    rosters = rounds.filter(pl.col("surface_kinds").list.contains("skill")).select(key)
    names = surface.filter(pl.col("kind") == "skill").group_by(key).agg(pl.col("name").alias("names"))
    present = pl.col("names").list.contains(pl.col("slug")) | pl.col("names").list.contains(pl.col("name"))
    return (
        rosters.join(names, on=key, how="left")
        .join(own.lazy(), on="condition")
        .with_columns(present.fill_null(value=False).alias("present"))
        .group_by(CELL_KEY)
        .agg(pl.col("present").all().alias("skill_listed"))
    )


def foreign_listed(surface: pl.LazyFrame, foreign: pl.DataFrame) -> pl.LazyFrame:
    """(cell, names): cells that list a skill which only a contrasted arm should have, under any name of it."""
    entry, copies = pl.col("entry"), (pl.col("slug"), pl.col("name"))
    same = pl.any_horizontal(*(entry == word for word in copies))
    plugin = pl.any_horizontal(*(entry.str.ends_with(":" + word) for word in copies))
    return (
        surface.filter(pl.col("kind") == "skill")
        .rename({"name": "entry"})
        .join(foreign.lazy(), on="condition")
        .filter(same | plugin)
        .group_by(CELL_KEY)
        .agg(entry.unique().sort().alias("names"))
    )


def used(calls: pl.LazyFrame, own: pl.DataFrame, folder: str) -> pl.LazyFrame:
    """(cell,) of the cells in which a staged skill was invoked, or its SKILL.md read, without an error.

    `folder` is where the harness keeps a project's skills, relative to the project.
    """
    called = pl.col("skill").str.strip_prefix("/")  # the CLI takes a slash before the name
    by_name = (pl.col("role") == "skill") & pl.any_horizontal(called == pl.col("slug"), called == pl.col("name"))
    skill_file = pl.format('{}/{}/SKILL.md"', pl.lit(folder), pl.col("slug"))  # the end of a path in JSON
    by_file = (pl.col("role") == "read") & pl.col("input").str.contains(skill_file, literal=True)
    worked = pl.col("answered") & pl.col("is_error").not_().fill_null(value=True)
    allowed = pl.col("denied").not_().fill_null(value=True)
    return (
        calls.filter(worked & allowed & pl.col("role").is_in(["skill", "read"]))
        .join(own.lazy(), on="condition")
        .filter(by_name.fill_null(value=False) | by_file)
        .select(CELL_KEY)
        .unique()
    )


def _words(skill: PlannedSkill) -> set[str]:
    return {skill.slug, skill.name}
