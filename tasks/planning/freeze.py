"""Copy what a plan names into its campaign, once: later stages never read the live folders again."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import orjson
from pydantic import ValidationError

from skilltrial.data.digests import digest, file_digest, tree_digest
from skilltrial.data.errors import StoreConflict, Terminal
from skilltrial.data.plan import CampaignPlan, PlannedSkill
from skilltrial.data.spec import SkillRef
from skilltrial.data.store import CampaignFolder, read_model, scratch_path, write_model
from skilltrial.tasks.planning.campaign_file import evals_path
from skilltrial.tasks.planning.evals import fixtures, heldout
from skilltrial.tasks.planning.skill import not_staged
from skilltrial.tasks.planning.sources import opened_skill
from skilltrial.tasks.planning.trees import copy_joined, copy_tree


class SourceChanged(Terminal):
    """A folder is not, or not any more, what was planned."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(what)

    def __str__(self) -> str:
        return (
            f"{self.what} changed while it was copied into the campaign, or holds links that lead out of it; "
            "run the same command again when nothing writes there"
        )


def freeze(plan: CampaignPlan, folder: CampaignFolder) -> None:
    """Copy skills, fixtures, held-out files and harness inputs to `folder.source(digest)`; write `plan.json` last.

    Doing it again does nothing. A plan that differs from the kept one replaces it, and the kept one goes to
    `plans/`. Raises `StoreConflict` when the campaign's name is taken by another trial, `SourceChanged` when
    something is not what was planned.
    """
    kept = _kept_plan(folder)
    if kept is not None:
        _require_same_trial(plan, kept, folder)
    for condition in plan.conditions:
        for skill in condition.skills:
            _freeze_skill(skill, folder)
    evals_folder = evals_path(plan.spec).parent
    for planned in plan.evals:
        visible, hidden = fixtures(planned.eval, evals_folder), heldout(planned.eval, evals_folder)
        _freeze_files(visible, planned.files_digest, f"a file of eval {planned.eval.id!r}", folder)
        _freeze_files(hidden, planned.heldout_digest, f"a setup file of eval {planned.eval.id!r}", folder)
    for name, expected in plan.harness.inputs.items():
        _freeze_input(plan.spec.harness_inputs[name], expected, folder)
    if kept is not None and kept != plan:
        write_model(folder.root / "plans" / f"{digest(kept)[:12]}.json", kept)
    if kept != plan:
        write_model(folder.plan_path, plan)


def _kept_plan(folder: CampaignFolder) -> CampaignPlan | None:
    try:
        return read_model(folder.plan_path, CampaignPlan)
    except FileNotFoundError:
        return None
    except (ValidationError, orjson.JSONDecodeError) as error:
        raise StoreConflict(
            f"campaign {folder.name!r} has a plan that this version cannot read ({folder.plan_path}); "
            "give the new campaign another name with --name"
        ) from error


def _require_same_trial(plan: CampaignPlan, kept: CampaignPlan, folder: CampaignFolder) -> None:
    """The same skill under the same mode: anything else may change, and costs only the cells it concerns."""
    for what, asked, taken in (
        ("skill", plan.spec.skill.resolve(), kept.spec.skill.resolve()),
        ("mode", plan.spec.mode, kept.spec.mode),
    ):
        if asked != taken:
            raise StoreConflict(
                f"campaign {folder.name!r} in {folder.root} is a trial of {what} {taken}, not {asked}; "
                "give this one another name with --name"
            )


def _freeze_skill(skill: PlannedSkill, folder: CampaignFolder) -> None:
    provenance = skill.provenance
    reference = SkillRef(path=Path(provenance.path), ref=provenance.revision if provenance.kind == "git" else None)

    def fill(scratch: Path) -> None:
        with opened_skill(reference) as (found, _):
            copy_tree(found.folder, scratch, skip=not_staged)

    _freeze(folder, skill.digest, f"skill {provenance.path}", fill, tree_digest)


def _freeze_files(files: dict[str, Path], expected: str, what: str, folder: CampaignFolder) -> None:
    _freeze(folder, expected, what, lambda scratch: copy_joined(files, scratch), tree_digest)


def _freeze_input(path: Path, expected: str, folder: CampaignFolder) -> None:
    _freeze(folder, expected, str(path), lambda scratch: copy_tree(path, scratch), file_digest)


def _freeze(
    folder: CampaignFolder,
    expected: str,
    what: str,
    fill: Callable[[Path], None],
    digest_of: Callable[[Path], str],
) -> None:
    """Make the frozen copy unless it stands already; it appears at once, whole and checked, or not at all."""
    target = folder.source(expected)
    if target.exists():
        return
    scratch = scratch_path(target)
    scratch.parent.mkdir(parents=True, exist_ok=True)
    try:
        fill(scratch)
        if digest_of(scratch) != expected:
            raise SourceChanged(what)
        scratch.rename(target)
    except FileNotFoundError as error:
        raise SourceChanged(what) from error
    finally:
        if scratch.is_dir():
            shutil.rmtree(scratch, ignore_errors=True)
        else:
            scratch.unlink(missing_ok=True)
