"""Git, run so that nothing of the operator's configuration can change what it does.

Every stage uses this one runner. No system, user or environment configuration is read, no hook runs, no template
is copied into a new repository, nothing asks a question, and commits carry a fixed identity and date, so that
the same content always becomes the same commit.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from skilltrial.data.errors import GitFailed

IDENTITY: Final = "Developer"
EMAIL: Final = "developer@localhost"
DATE: Final = "2000-01-01T00:00:00Z"

ENVIRONMENT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TEMPLATE_DIR": "",  # `init` and `clone` make neither sample hooks nor `info/`
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",  # `status` must not rewrite the index of a repository that is only read
        "GIT_AUTHOR_NAME": IDENTITY,
        "GIT_AUTHOR_EMAIL": EMAIL,
        "GIT_AUTHOR_DATE": DATE,
        "GIT_COMMITTER_NAME": IDENTITY,
        "GIT_COMMITTER_EMAIL": EMAIL,
        "GIT_COMMITTER_DATE": DATE,
        "LC_ALL": "C",
    }
)
"""Set for every git process; what the caller gives comes last."""

EXACT_PATHS: Final = ("-c", "core.protectNTFS=false", "-c", "core.protectHFS=false")
"""Arguments that let git keep names which only other file systems mind."""

_TRANSPORT: Final = frozenset({"GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"})
"""The only variables of git that are taken over: how a URL is reached, not what is done there."""

_OPTIONS: Final = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    # without any configuration file git still reads ~/.config/git/{ignore,attributes}
    "core.excludesFile=/dev/null",
    "core.attributesFile=/dev/null",
    "core.autocrlf=false",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "init.defaultBranch=work",
    "advice.detachedHead=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "safe.directory=*",  # the operator named the folder; hooks and fsmonitor, the danger in it, are off
)
_CREDENTIALS: Final = re.compile(r"(?<=://)[^/\s]*:[^/\s]*@|(?<=https://)[^/\s]+@|(?<=http://)[^/\s]+@")
"""`user:password@` of any URL, and a token that stands alone; `ssh://git@host` names no secret."""


def git(
    *arguments: str,
    cwd: Path,
    env: Mapping[str, str] = MappingProxyType({}),
    stdin: bytes | None = None,
    timeout_s: float = 120,
) -> bytes:
    """What `git <arguments>` prints, as bytes. `GitFailed` tells how it ended otherwise; its texts hold no password."""
    options = [part for option in _OPTIONS for part in ("-c", option)]
    try:
        done = subprocess.run(
            ["git", *options, *arguments],
            cwd=cwd,
            env={**_inherited(), **ENVIRONMENT, **env},
            input=b"" if stdin is None else stdin,
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )
    except FileNotFoundError as error:
        why = f"there is no folder {cwd}" if not cwd.is_dir() else "there is no git on PATH; install it"
        raise GitFailed(_public(arguments), str(cwd), 127, why) from error
    except NotADirectoryError as error:
        raise GitFailed(_public(arguments), str(cwd), 127, f"{cwd} is not a folder") from error
    except subprocess.TimeoutExpired as error:
        raise GitFailed(_public(arguments), str(cwd), -1, f"no end after {timeout_s:g} s") from error
    if done.returncode != 0:
        stderr = public_url(done.stderr.decode(errors="replace"))
        raise GitFailed(_public(arguments), str(cwd), done.returncode, stderr)
    return done.stdout


def git_text(
    *arguments: str,
    cwd: Path,
    env: Mapping[str, str] = MappingProxyType({}),
    stdin: bytes | None = None,
    timeout_s: float = 120,
) -> str:
    """What `git <arguments>` prints, as text without the final newline."""
    return git(*arguments, cwd=cwd, env=env, stdin=stdin, timeout_s=timeout_s).decode(errors="replace").rstrip("\n")


def public_url(text: str) -> str:
    """A text with the credentials of every URL in it removed: `https://user:secret@host/x` → `https://host/x`."""
    return _CREDENTIALS.sub("", text)


def _inherited() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _TRANSPORT}


def _public(arguments: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(public_url(argument) for argument in arguments)
