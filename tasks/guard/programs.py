"""Commands whose arguments are a language of their own: what they write, and which commands they start."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final, Protocol

from skilltrial.tasks.guard.arguments import Argument, Grammar, read
from skilltrial.tasks.guard.commands import MODELS, targets_of
from skilltrial.tasks.guard.scripts import awk_targets, sed_targets
from skilltrial.tasks.guard.state import State, Untold

_GIT_WRITES: Final = frozenset(
    {"apply", "am", "checkout", "switch", "restore", "reset", "clean", "stash", "pull", "merge", "rebase", "revert"}
    | {"cherry-pick", "clone", "init", "mv", "rm", "worktree", "submodule", "archive", "bundle", "format-patch"}
)


class Follower(Protocol):
    """Whoever follows a command."""

    def write(self, target: Argument, state: State) -> None:
        """Note a file that is written."""

    def run(self, arguments: list[Argument], state: State) -> State:
        """Follow one command with its arguments."""


def _sed(walk: Follower, rest: list[Argument], state: State) -> None:
    # an empty argument behind -i is the suffix of BSD's sed
    words = [word for word in rest if word != ""]
    long = ("--expression", "--file", "--line-length")
    arguments = read(words, Grammar("efl", long, attached="i"))
    operands = list(arguments.operands)
    scripts = arguments.values("-e", "--expression")
    if arguments.has("-f", "--file"):
        raise Untold
    if not scripts and operands:
        scripts = [operands.pop(0)]
    for script in scripts:
        for target in [None] if script is None else sed_targets(script):
            walk.write(target, state)
    if not arguments.has("-i", "--in-place"):
        return
    suffix = next((value for value in arguments.values("-i", "--in-place") if value), "")
    for file in operands:
        walk.write(file, state)
        if suffix:
            walk.write(None if file is None or "*" in suffix or "/" in suffix else file + suffix, state)


def _awk(walk: Follower, rest: list[Argument], state: State) -> None:
    arguments = read(
        rest, Grammar("Fvfi", ("--field-separator", "--assign", "--file", "--include"), operands_last=True)
    )
    if arguments.has("-i", "--include"):
        raise Untold  # gawk's way to edit files in place
    if arguments.has("-f", "--file"):
        return
    program = arguments.operands[0] if arguments.operands else ""
    for target in [None] if program is None else awk_targets(program):
        walk.write(target, state)


def _dd(walk: Follower, rest: list[Argument], state: State) -> None:
    for word in rest:
        if word is None:
            raise Untold
        if word.startswith("of="):
            walk.write(word.removeprefix("of="), state)


def _find(walk: Follower, rest: list[Argument], state: State) -> None:
    words = list(rest)
    while words:
        word = words.pop(0)
        if word == "-delete":
            raise Untold
        if word in ("-fprint", "-fls", "-fprint0", "-fprintf"):
            walk.write(words.pop(0) if words else None, state)
        elif word in ("-exec", "-execdir", "-ok", "-okdir"):
            ends = [place for place, later in enumerate(words) if later in (";", "+")]
            end = ends[0] if ends else len(words)
            inner: list[Argument] = [None if later is None or "{}" in later else later for later in words[:end]]
            walk.run(inner, replace(state, folder=None if word.endswith("dir") else state.folder))
            words = words[end + 1 :]


def _xargs(walk: Follower, rest: list[Argument], state: State) -> None:
    arguments = read(
        rest,
        Grammar(
            "adEIiLlnPs",
            ("--arg-file", "--delimiter", "--max-args", "--max-procs", "--replace"),
            operands_last=True,
        ),
    )
    marks = [value for value in arguments.values("-I", "-i", "--replace") if value]
    command = [None if word is None or any(mark in word for mark in marks) else word for word in arguments.operands]
    walk.run([*command, *([] if marks else [None])] if command else [], replace(state, stdin=None))


def _git(_: Follower, rest: list[Argument], __: State) -> None:
    long = ("--git-dir", "--work-tree", "--namespace")
    operands = read(rest, Grammar("Cc", long, operands_last=True)).operands
    if not operands:
        return
    if operands[0] is None:
        raise Untold
    arguments = read(operands[1:], Grammar("mbBcCF", ("--output", "--message")))
    if arguments.has("--output", "-o"):
        raise Untold
    new_branch = operands[0] in ("checkout", "switch") and arguments.has("-b", "-B", "-c", "-C")
    shows = operands[0] in ("stash", "worktree", "submodule") and arguments.operands[:1] in (
        ("list",),
        ("show",),
        ("status",),
    )
    if operands[0] in _GIT_WRITES and not new_branch and not shows:
        raise Untold


def _tar(walk: Follower, rest: list[Argument], state: State) -> None:
    first = rest[0] if rest else ""
    words = [f"-{first}", *rest[1:]] if first is not None and first[:1] not in ("", "-") else list(rest)
    arguments = read(words, Grammar("fCTXI", ("--file", "--directory", "--files-from", "--exclude")))
    if arguments.has("-t", "--list"):
        return
    if not arguments.has("-c", "-r", "-u", "--create", "--append", "--update") or arguments.has("--remove-files"):
        raise Untold
    for target in arguments.values("-f", "--file"):
        walk.write(None if target is None else ("" if target == "-" else target), state)


def _curl(walk: Follower, rest: list[Argument], state: State) -> None:
    model = MODELS["curl"]
    arguments = read(rest, model.grammar)
    if arguments.has("--output-dir", "-K", "--config", "-J", "--remote-header-name", "--remote-name-all"):
        raise Untold
    for target in targets_of(model, arguments):
        walk.write(target, state)
    if arguments.has("-O", "--remote-name"):
        for url in (*arguments.operands, *arguments.values("--url")):
            walk.write(
                None if url is None else posixpath.basename(url.partition("?")[0].partition("#")[0]) or None, state
            )


PROGRAMS: Final[Mapping[str, Callable[[Follower, list[Argument], State], None]]] = MappingProxyType(
    {
        "sed": _sed,
        "gsed": _sed,
        "awk": _awk,
        "gawk": _awk,
        "mawk": _awk,
        "nawk": _awk,
        "dd": _dd,
        "find": _find,
        "xargs": _xargs,
        "git": _git,
        "tar": _tar,
        "curl": _curl,
    }
)
"""Commands whose arguments are a language of their own."""
