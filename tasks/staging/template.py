"""Templates: one immutable repository for each (eval, condition), from which every attempt starts.

Both arms of an eval start from the same bytes, apart from the folders of the treatment's skills. The same inputs
always become the same commit. What an agent can read there, log included, says nothing of a trial.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path, PurePosixPath
from typing import Final

from skilltrial.data.errors import GitFailed
from skilltrial.data.git import DATE, EMAIL, EXACT_PATHS, IDENTITY, git, git_text
from skilltrial.data.plan import CampaignPlan, PlannedCodebase, PlannedCondition, PlannedEval, Template
from skilltrial.data.store import CampaignFolder, kept_model, replace_folder, scratch_path, write_model
from skilltrial.data.template import TEMPLATE_SCHEMA, TemplateRecord
from skilltrial.descriptors.model import of_plan
from skilltrial.tasks.planning.trees import copy_tree
from skilltrial.tasks.staging.codebase import BRANCH, checkout
from skilltrial.tasks.staging.layers import CannotStage, lay_over

BASELINE_REF: Final = "refs/skilltrial/baseline"
"""Kept in the template alone: an environment gets branches and tags, so that no agent ever sees this name."""

REPOSITORY: Final = "repository"
EXTRAS: Final = "extras"
RECORD: Final = "template.json"
MESSAGE: Final = "Start"
"""Message of the baseline commit: the agent can read the log."""

SUBMODULES: Final = "submodules_not_fetched"

SETTINGS: Final = (
    f"[user]\n\tname = {IDENTITY}\n\temail = {EMAIL}\n[commit]\n\tgpgSign = false\n[tag]\n\tgpgSign = false\n"
)
"""Configuration of every environment, so that the agent can commit."""


def build(plan: CampaignPlan, template: Template, folder: CampaignFolder) -> TemplateRecord:
    """The template's record, its repository built unless one with the same digest is there already.

    Reads the frozen sources alone. Raises `CannotStage` naming eval and condition, `CodebaseChanged`, `GitFailed`.
    """
    target = folder.template(template.eval_id, template.condition)
    existing = template_record(target)
    if existing is not None and existing.digest == template.digest:
        return existing
    scratch = scratch_path(target)
    scratch.mkdir(parents=True)
    try:
        record = _build_in(scratch, plan, template, folder)
        write_model(scratch / RECORD, record)
        replace_folder(scratch, target)
    except CannotStage as error:
        raise CannotStage(f"{template.eval_id}/{template.condition}: {error}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return record


def template_record(target: Path) -> TemplateRecord | None:
    """The record in a finished template's folder; null: there is none that this version can read."""
    record = kept_model(target / RECORD, TemplateRecord)
    return record if record is not None and record.schema_version == TEMPLATE_SCHEMA else None


def _build_in(scratch: Path, plan: CampaignPlan, template: Template, folder: CampaignFolder) -> TemplateRecord:
    planned = plan.planned_eval(template.eval_id)
    repository = scratch / REPOSITORY
    _start(repository, planned.codebase, folder)
    staged, replaced, paths = _stage_skills(repository, plan, plan.condition(template.condition), folder)
    paths += _lay_fixtures(repository, planned, folder, scratch / EXTRAS)
    files = _commit(repository, paths)
    found = _skill_folders(files, of_plan(plan).skills.folder) - staged
    return TemplateRecord(
        eval_id=template.eval_id,
        condition=template.condition,
        digest=template.digest,
        baseline=git_text("rev-parse", BASELINE_REF, cwd=repository),
        tree=git_text("rev-parse", f"{BASELINE_REF}^{{tree}}", cwd=repository),
        branch=git_text("symbolic-ref", "--short", "HEAD", cwd=repository),
        codebase_skills=tuple(sorted({PurePosixPath(name).name for name in found | replaced})),
        extras=(scratch / EXTRAS).exists(),
        notes=(SUBMODULES,) if ".gitmodules" in files else (),
    )


def _start(repository: Path, codebase: PlannedCodebase | None, folder: CampaignFolder) -> None:
    """The codebase at its commit, with its history and branch; a folder's files, or nothing, in a new repository."""
    if codebase is not None:
        checkout(codebase, folder.codebase(codebase.key))
    if codebase is None or codebase.revision is None:
        repository.mkdir()
        git("init", "--quiet", "--initial-branch", codebase.branch if codebase else BRANCH, ".", cwd=repository)
        if codebase is not None:
            copy_tree(folder.codebase(codebase.key), repository)
        return
    source = str(folder.codebase(codebase.key))
    git(*EXACT_PATHS, "clone", "--quiet", "--local", "--", source, str(repository), cwd=repository.parent)
    git("remote", "remove", "origin", cwd=repository)
    if codebase.branch != BRANCH:
        git("branch", "--quiet", "--move", "--", BRANCH, codebase.branch, cwd=repository)
    shutil.rmtree(repository / ".git" / "logs", ignore_errors=True)


def _stage_skills(
    repository: Path, plan: CampaignPlan, condition: PlannedCondition, folder: CampaignFolder
) -> tuple[set[str], set[str], list[str]]:
    """Folders staged, those among them that the codebase had already, and the files of all."""
    staged, replaced, files = set[str](), set[str](), list[str]()
    for skill in condition.skills:
        target = repository / of_plan(plan).skills.folder / skill.slug
        name = target.relative_to(repository).as_posix()
        if target.is_symlink():
            target.unlink()
            replaced.add(name)
        elif target.is_dir():
            shutil.rmtree(target)
            replaced.add(name)
        staged.add(name)
        files += lay_over(folder.source(skill.digest), target, root=repository)
    return staged, replaced, files


def _lay_fixtures(repository: Path, planned: PlannedEval, folder: CampaignFolder, extras: Path) -> list[str]:
    if not planned.eval.files:
        return []
    return lay_over(folder.source(planned.files_digest), repository, root=repository, extras=extras)


def _commit(repository: Path, forced: list[str]) -> set[str]:
    """Commit all that the project does not ignore and what was staged, ignored or not; returns the files' paths."""
    git(*EXACT_PATHS, "add", "--all", "--", ".", cwd=repository)
    if forced:
        names = "\0".join(forced).encode(errors="surrogateescape")
        given = ("--force", "--pathspec-from-file=-", "--pathspec-file-nul")
        git(*EXACT_PATHS, "add", *given, cwd=repository, stdin=names, env={"GIT_LITERAL_PATHSPECS": "1"})
    date = _date(repository)
    env = {"GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date}
    git("commit", "--quiet", "--allow-empty", "--no-verify", "--message", MESSAGE, cwd=repository, env=env)
    git("update-ref", BASELINE_REF, "HEAD", cwd=repository)
    _verify(repository)
    git("repack", "-d", "-n", "--quiet", cwd=repository)  # one pack is copied faster than many objects
    shutil.rmtree(repository / ".git" / "logs", ignore_errors=True)
    with (repository / ".git" / "config").open("a") as config:
        config.write(SETTINGS)
    listed = git("ls-files", "-z", cwd=repository).decode(errors="surrogateescape")
    return set(listed.split("\0")) - {""}


def _date(repository: Path) -> str:
    """The date of the last commit, so that the baseline does not stand out in the log; a fixed one without history."""
    try:
        return git_text("log", "-1", "--format=%cI", cwd=repository)
    except GitFailed:
        return DATE


def _verify(repository: Path) -> None:
    top = git_text("rev-parse", "--show-toplevel", cwd=repository)
    if Path(top).resolve() != repository.resolve():
        raise CannotStage(f"the repository's top level is {top}, not {repository}")
    if remotes := git_text("remote", cwd=repository):
        raise CannotStage(f"the repository still has the remotes {remotes.split()}")
    status = git("status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignore-submodules=all", cwd=repository)
    if status:
        shown = status.decode(errors="replace").replace("\0", "; ")[:500]
        raise CannotStage(f"the baseline does not hold what was staged: {shown}")


def _skill_folders(files: set[str], skills_folder: str) -> set[str]:
    """The folders of skills among a repository's files, in any project folder that the CLI may look at."""
    pattern = re.compile(rf"(?:.*/)?{re.escape(skills_folder)}/[^/]+/SKILL\.md", re.IGNORECASE | re.DOTALL)
    return {PurePosixPath(name).parent.as_posix() for name in files if pattern.fullmatch(name)}
