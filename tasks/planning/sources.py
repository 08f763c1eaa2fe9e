"""Where skills and codebases come from, pinned to a state that can be found again.

A skill is read from a folder, or from a folder at a git ref. A codebase is a repository at a commit (by URL
and ref, or a folder that is one), or a plain folder, which is known by the digest of what lies in it. A
folder *inside* a repository is such a plain folder: it has no history of its own to clone.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from skilltrial.data.digests import tree_digest
from skilltrial.data.errors import GitFailed, InvalidInput, Problem
from skilltrial.data.evals import Codebase
from skilltrial.data.git import git_text, public_url
from skilltrial.data.plan import PlannedCodebase, Provenance
from skilltrial.data.spec import SkillRef
from skilltrial.tasks.planning.export import export
from skilltrial.tasks.planning.repository import Repository, repository_of
from skilltrial.tasks.planning.skill import EVALS_FOLDER, Skill, read_skill
from skilltrial.tasks.planning.trees import left_by_tools

DEFAULT_BRANCH: Final = "work"
_FULL_ID: Final = re.compile(r"[0-9a-f]{40}")
_LS_REMOTE_LIMIT_S: Final = 60.0


@contextlib.contextmanager
def opened_skill(reference: SkillRef) -> Iterator[tuple[Skill, Provenance]]:
    """A skill and where it comes from, its files there for as long as the context lasts.

    Raises `InvalidInput` for a folder that is no skill and for a ref that does not have it.
    """
    if reference.ref is None:
        yield read_skill(reference.path), folder_provenance(reference.path)
        return
    with tempfile.TemporaryDirectory(prefix="skill-") as scratch:
        repository, relative = _locate(reference)
        revision = repository.commit(reference.ref)
        if revision is None:
            raise _fault(reference, f"lies in the git repository {repository.root}, which has no commit of that name")
        folder = export(repository, revision, relative, Path(scratch))
        if folder is None:
            raise _fault(reference, "is not there at that commit")
        provenance = Provenance(
            kind="git",
            path=str(reference.path),
            ref=reference.ref,
            revision=revision,
            dirty=False,
            origin=repository.origin,
        )
        yield read_skill(folder, folder_name=reference.path.name), provenance


def folder_provenance(folder: Path) -> Provenance:
    """Where a skill's folder stands in its repository, if it is in one; its evals do not make it dirty."""
    resolved = folder.resolve()
    repository = repository_of(resolved)
    revision = repository.revision if repository else None
    return Provenance(
        kind="folder",
        path=str(resolved),
        revision=revision,
        dirty=repository.dirty(resolved, except_for=[EVALS_FOLDER]) if repository and revision else None,
        origin=repository.origin if repository else None,
    )


def not_in_codebase(relative: str) -> bool:
    """Whether a path below a plain codebase folder stays out of environments: git's own files, and what tools left."""
    return relative.rsplit("/", 1)[-1] == ".git" or left_by_tools(relative)


def planned_codebase(declared: Codebase, evals_folder: Path) -> PlannedCodebase:
    """A codebase at its present state. `ValueError` says why it has none, for the place where it is declared."""
    if declared.path is not None:
        return _folder_codebase((evals_folder / declared.path).resolve())
    assert declared.url is not None
    assert declared.ref is not None
    return _url_codebase(declared.url, declared.ref, evals_folder)


def _folder_codebase(folder: Path) -> PlannedCodebase:
    repository = repository_of(folder)
    revision = repository.revision if repository and repository.root.resolve() == folder else None
    if repository is None or revision is None:
        digest = tree_digest(folder, skip=not_in_codebase)
        provenance = Provenance(kind="folder", path=str(folder))
        return PlannedCodebase(key=f"tree-{digest}", revision=None, branch=DEFAULT_BRANCH, provenance=provenance)
    provenance = Provenance(
        kind="folder",
        path=str(folder),
        revision=revision,
        dirty=repository.dirty(folder),
        origin=repository.origin,
    )
    branch = repository.branch or DEFAULT_BRANCH
    return PlannedCodebase(key=revision, revision=revision, branch=branch, provenance=provenance)


def _url_codebase(url: str, ref: str, evals_folder: Path) -> PlannedCodebase:
    local = evals_folder / url
    source = str(local.resolve()) if "://" not in url and local.is_dir() else url
    refs, default = _remote_refs(source, evals_folder)
    revision, branch = refs.get(f"refs/heads/{ref}"), ref
    if revision is None:
        branch = default or DEFAULT_BRANCH
        revision = refs.get(f"refs/tags/{ref}^{{}}") or refs.get(f"refs/tags/{ref}")
    if revision is None and _FULL_ID.fullmatch(ref):
        revision = ref
    if revision is None:
        known = sorted(name.split("/", 2)[2] for name in refs if re.match(r"refs/(heads|tags)/.*(?<!\^\{\})$", name))
        shown = ", ".join(known[:20]) + (", …" if len(known) > 20 else "")
        raise ValueError(
            f"{public_url(url)} has no branch or tag {ref!r} (a commit needs all 40 digits); it has {shown}"
        )
    provenance = Provenance(kind="git", path=source, ref=ref, revision=revision, origin=public_url(source))
    return PlannedCodebase(key=revision, revision=revision, branch=branch, provenance=provenance)


def _remote_refs(source: str, folder: Path) -> tuple[dict[str, str], str | None]:
    """(ref name → commit id, default branch) of a repository anywhere."""
    try:
        listed = git_text("ls-remote", "--symref", "--", source, cwd=folder, timeout_s=_LS_REMOTE_LIMIT_S)
    except GitFailed as error:
        raise ValueError(f"could not be read: {error.stderr.strip()}") from error
    refs: dict[str, str] = {}
    default = None
    for line in listed.splitlines():
        value, _, name = line.partition("\t")
        if value.startswith("ref: refs/heads/") and name == "HEAD":
            default = value.removeprefix("ref: refs/heads/")
        elif not value.startswith("ref: "):
            refs[name] = value
    return refs, default


def _locate(reference: SkillRef) -> tuple[Repository, str]:
    """The repository a skill's folder is in, and the folder relative to its root. It may be gone from the work tree."""
    parent = reference.path.parent
    existing = next(folder for folder in (parent, *parent.parents) if folder.is_dir())
    repository = repository_of(existing)
    if reference.path.is_dir() and (inner := repository_of(reference.path)) and inner.root == reference.path.resolve():
        return inner, ""
    if repository is None:
        raise _fault(reference, "does not lie in a git repository")
    inside = existing.resolve() / parent.relative_to(existing) / reference.path.name
    relative = inside.relative_to(repository.root.resolve()).as_posix()
    return repository, "" if relative == "." else relative


def _fault(reference: SkillRef, message: str) -> InvalidInput:
    return InvalidInput([Problem(f"skill {reference.path}", "", reference.ref, message)])
