"""Questions about a folder's place in a git repository. Nothing is changed there, no network is used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from skilltrial.data.errors import GitFailed
from skilltrial.data.git import git, git_text, public_url


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository as seen from one folder of it. `root` is the work tree, or the repository itself if it is bare."""

    root: Path
    bare: bool

    @property
    def revision(self) -> str | None:
        """Full commit id of HEAD; null: there is no commit yet."""
        return self.commit("HEAD")

    @property
    def branch(self) -> str | None:
        """The branch that is checked out; null: HEAD is detached."""
        return attempt("symbolic-ref", "--short", "--quiet", "HEAD", cwd=self.root)

    @property
    def origin(self) -> str | None:
        """URL of the remote `origin` without credentials; null: there is none."""
        url = attempt("config", "--get", "remote.origin.url", cwd=self.root)
        return public_url(url) if url else None

    def commit(self, ref: str) -> str | None:
        """Full commit id of a ref, tag or abbreviated id; null: it names no commit."""
        return attempt("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}", cwd=self.root)

    def dirty(self, folder: Path, *, except_for: Sequence[str] = ()) -> bool:
        """Whether the folder differs from HEAD, counting new files; `except_for` names entries not to look at."""
        if self.bare:
            return False
        pathspec = ["--", ".", *(f":(exclude){name}" for name in except_for)]
        if git("status", "--porcelain", "-z", "--untracked-files=all", *pathspec, cwd=folder):
            return True
        # a folder that is ignored as a whole has no status, and is in no commit
        entries = {entry.name for entry in folder.iterdir()} - {".git", *except_for}
        return bool(entries) and not git("ls-files", "-z", *pathspec, cwd=folder)


def repository_of(folder: Path) -> Repository | None:
    """The repository that a folder lies in; null: none."""
    bare = attempt("rev-parse", "--is-bare-repository", cwd=folder)
    if bare == "true":
        return Repository(folder.resolve(), bare=True)
    root = attempt("rev-parse", "--show-toplevel", cwd=folder)
    return Repository(Path(root), bare=False) if root else None


def attempt(*arguments: str, cwd: Path) -> str | None:
    """What a git command prints; null when it fails or prints nothing."""
    try:
        return git_text(*arguments, cwd=cwd) or None
    except GitFailed:
        return None
