"""What becomes of a workspace once nothing of its agent is alive: whole again, and without secrets."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Sequence
from pathlib import Path

from skilltrial.data.store import CampaignFolder, Store, Workspace
from skilltrial.tasks.dispatch.scrub import held_below, scrub_folder


def tidy(workspace: Workspace, secrets: Sequence[str], template: Path) -> bool:
    """Make a workspace fit to be read, without what nobody reads again; false: the agent had destroyed its project.

    An agent may remove its project, or put a file or a link to elsewhere in its place. An empty folder is put there
    then: what was done to the environment is measured like any other change, and no stranger's folder is taken
    for it. Secrets are taken out of all that it left, for it may have written its environment anywhere; but a value
    that stands in the template already, such as a model's name, stays in the project, where it would be a change.
    """
    sound = [_is_own_folder(folder) for folder in (workspace.root, workspace.project)]
    for folder in (workspace.root, workspace.project, workspace.home, workspace.config):
        _own_folder(folder)
    for folder in (workspace.tmp, workspace.home / ".cache"):
        if _is_own_folder(folder):
            shutil.rmtree(folder, ignore_errors=True)
    scrub_folder(workspace.root, secrets, public=held_below(template, secrets), within=workspace.project)
    return all(sound)


def remove_abandoned(folder: CampaignFolder, store: Store) -> int:
    """Remove the workspaces of attempts that a killed run never finished, which nobody scrubbed; returns their number.

    Only for whoever holds the campaign's lock.
    """
    removed = 0
    for link in folder.root.glob("cells/*/*/*/attempt-*/env"):
        if (link.parent / "attempt.json").exists() or not link.is_symlink():
            continue
        workspace = (link.parent / link.readlink()).parent.resolve()
        if workspace.parent == store.workspaces and workspace.is_dir():
            shutil.rmtree(workspace, ignore_errors=True)
            removed += 1
    return removed


def _is_own_folder(folder: Path) -> bool:
    return folder.is_dir() and not folder.is_symlink()


def _own_folder(folder: Path) -> None:
    """A folder that is there, is no link, and can be entered."""
    if not _is_own_folder(folder):
        with contextlib.suppress(FileNotFoundError):
            folder.unlink()
        folder.mkdir(mode=0o700, parents=True)
    folder.chmod(0o700)
