"""Real codebases, skills and fixtures in a campaign folder, and the plan that speaks of them."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from skilltrial.data.attempt import AttemptRecord
from skilltrial.data.digests import digest, tree_digest
from skilltrial.data.evals import Assertion, Eval
from skilltrial.data.git import git_text
from skilltrial.data.outcomes import Outcome
from skilltrial.data.plan import (
    CampaignPlan,
    Cell,
    PlannedCodebase,
    PlannedCondition,
    PlannedEval,
    PlannedHarness,
    PlannedSkill,
    Provenance,
    Template,
)
from skilltrial.data.spec import CampaignSpec, ContrastSpec
from skilltrial.data.store import AttemptFolder, CampaignFolder, Store
from skilltrial.descriptors.loading import descriptor
from skilltrial.tasks.planning.sources import not_in_codebase
from skilltrial.tasks.planning.trees import copy_tree

EVAL: Final = "tidy"
TREATMENT: Final = "with_skill"
CONTROL: Final = "without_skill"
SKILL_FILES: Final = {"SKILL.md": "---\nname: csv-tidy\n---\nTidy.\n", "scripts/run.sh": "#!/bin/sh\necho hi\n"}


def write_files(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Files by relative name below `root`; names that end in `.sh` are executable."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        if name.endswith(".sh"):
            path.chmod(0o755)
    return root


def commit_all(repository: Path, message: str) -> str:
    """Commit everything; the commit's id."""
    git_text("add", "--all", cwd=repository)
    git_text("commit", "--quiet", "--allow-empty", "-m", message, cwd=repository)
    return git_text("rev-parse", "HEAD", cwd=repository)


def make_repository(root: Path, files: Mapping[str, str | bytes], branch: str = "main") -> str:
    """A repository with one commit; the commit's id."""
    root.mkdir(parents=True)
    git_text("init", "--quiet", "--initial-branch", branch, cwd=root)
    write_files(root, files)
    return commit_all(root, "First")


def git_codebase(source: Path, revision: str, branch: str = "main") -> PlannedCodebase:
    """A repository at a commit, as it is planned."""
    where = Provenance(kind="folder", path=str(source), revision=revision)
    return PlannedCodebase(key=revision, revision=revision, branch=branch, provenance=where)


def folder_codebase(source: Path) -> PlannedCodebase:
    """A folder without history, as it is planned."""
    key = f"tree-{tree_digest(source, skip=not_in_codebase)}"
    return PlannedCodebase(
        key=key, revision=None, branch="work", provenance=Provenance(kind="folder", path=str(source))
    )


def freeze(folder: CampaignFolder, live: Path) -> str:
    """Copy a tree into the campaign's sources; its digest."""
    name = tree_digest(live)
    if not folder.source(name).exists():
        copy_tree(live, folder.source(name))
    return name


def frozen_skill(
    folder: CampaignFolder, live: Path, files: Mapping[str, str | bytes], slug: str = "csv-tidy"
) -> PlannedSkill:
    """A skill frozen in the campaign."""
    name = freeze(folder, write_files(live, files))
    where = Provenance(kind="folder", path=str(live))
    return PlannedSkill(name=slug, slug=slug, description="d", digest=name, provenance=where)


def make_plan(
    folder: CampaignFolder,
    *,
    skills: Sequence[PlannedSkill] = (),
    codebase: PlannedCodebase | None = None,
    fixtures: Path | None = None,
    heldout: Path | None = None,
    assertions: Sequence[Assertion] = (),
) -> CampaignPlan:
    """A plan of one eval and two arms: the given skills, and none."""
    files = () if fixtures is None else tuple(sorted(entry.name for entry in fixtures.iterdir()))
    heldout_digest = freeze(folder, heldout) if heldout else "none"
    planned = PlannedEval(
        eval=Eval(id=EVAL, prompt="Do it.", files=files, assertions=tuple(assertions)),
        repetitions=1,
        files_digest=freeze(folder, fixtures) if fixtures else "none",
        heldout_digest=heldout_digest,
        grading_digest=digest([list(assertions), heldout_digest]),
        codebase=codebase,
    )
    arms = {TREATMENT: tuple(skills), CONTROL: ()}
    templates = tuple(
        Template(
            eval_id=EVAL,
            condition=arm,
            digest=digest([arm, planned.files_digest, codebase.key if codebase else None, *staged]),
        )
        for arm, staged in arms.items()
    )
    return CampaignPlan(
        campaign=folder.name,
        skill_name="csv-tidy",
        spec=CampaignSpec(skill=Path("/skills/csv-tidy"), harness="scripted"),
        harness=PlannedHarness(
            label="scripted",
            descriptor=descriptor("scripted").model_dump(mode="json"),
            binary="/bin/x",
            cli_version="1.0.0",
        ),
        conditions=tuple(PlannedCondition(name=arm, skills=staged) for arm, staged in arms.items()),
        contrasts=(ContrastSpec(treatment=TREATMENT, control=CONTROL),),
        evals=(planned,),
        templates=templates,
        cells=tuple(Cell(eval_id=EVAL, condition=arm, repetition=1, block=0, digest=digest(arm)) for arm in arms),
    )


def make_record(folder: CampaignFolder, attempt: AttemptFolder, baseline: str, outcome: Outcome) -> AttemptRecord:
    """The record of an attempt at the treatment's cell."""
    return AttemptRecord(
        campaign=folder.name,
        eval_id=EVAL,
        condition=TREATMENT,
        repetition=1,
        attempt=attempt.number,
        cell_digest=digest(TREATMENT),
        outcome=outcome,
        reason="",
        started_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        duration_ms=1,
        workspace="w1",
        baseline=baseline,
        prompt_digest="p",
        harness="scripted",
        cli_version=None,
        model=None,
        permission_mode=None,
        session_id=None,
        worker="here",
        rounds=(),
    )


def campaign_of(store: Store) -> CampaignFolder:
    """A campaign's folder, there already."""
    folder = store.campaign("trial")
    folder.root.mkdir(parents=True)
    return folder


def tree_of(root: Path) -> dict[str, tuple[str, bytes]]:
    """Every file below `root` but git's own, with its kind and content."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if name.split("/")[0] == ".git" or (path.is_dir() and not path.is_symlink()):
            continue
        kind = "link" if path.is_symlink() else "executable" if path.stat().st_mode & 0o100 else "file"
        found[name] = (kind, str(path.readlink()).encode() if kind == "link" else path.read_bytes())
    return found


def plain_git(*arguments: str, cwd: Path, env: Mapping[str, str] | None = None) -> str:
    """Git as an agent runs it: with the environment's own configuration and nothing of ours."""
    surroundings = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "GIT_CONFIG_NOSYSTEM": "1", **(env or {})}
    done = subprocess.run(["git", *arguments], cwd=cwd, env=surroundings, capture_output=True, text=True, check=True)
    return done.stdout
