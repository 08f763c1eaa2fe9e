"""What commands write, declared: one row for each command that writes what its arguments name.

A command without a row writes no file that its arguments name. What programs do on their own account
(make, test runners, package managers) is not told by the command line, and so not told here.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from skilltrial.tasks.guard.arguments import Argument, Arguments, Grammar


class Operands(StrEnum):
    """Which operands of a command are written."""

    NONE = "none"
    ALL = "all"
    LAST = "last"
    AFTER_FIRST = "after_first"  # the first is a mode, an owner or a pattern
    COPY = "copy"  # the last, or the sources' names inside it
    MOVE = "move"  # the same, and the sources are gone
    LINK = "link"  # as a copy; a single operand makes a link of its own name
    UNTOLD = "untold"  # it writes, and the line does not fix what


_PLAIN: Final = Grammar()


@dataclass(frozen=True, slots=True)
class Model:
    """How to read one command. `outputs`: options whose value is written; `unless`: options that turn writing off."""

    operands: Operands = Operands.NONE
    grammar: Grammar = _PLAIN
    outputs: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    untold_with: tuple[str, ...] = ()  # with one of these, the line does not fix what is written


def _g(short: str = "", *long: str, attached: str = "") -> Grammar:
    return Grammar(short, tuple(f"--{name}" for name in long), attached)


_COPY: Final = _g("tSZm", "target-directory", "suffix", "mode", "owner", "group")
_CURL: Final = _g(
    "oDcTuHXdbeAFmrxUKCEYyzwQP",
    *("output", "dump-header", "cookie-jar", "upload-file", "user", "header", "request", "data", "cookie", "url"),
    *("data-raw", "data-binary", "data-urlencode", "form", "user-agent", "referer", "max-time", "proxy", "config"),
    *("output-dir", "write-out", "trace", "trace-ascii", "stderr", "connect-timeout", "retry", "cacert", "cert", "key"),
    *("etag-save", "libcurl", "json"),
)

MODELS: Final[Mapping[str, Model]] = MappingProxyType(
    {
        "touch": Model(Operands.ALL, _g("drt", "date", "reference")),
        "mkdir": Model(Operands.ALL, _g("mZ", "mode")),
        "rmdir": Model(Operands.ALL),
        "rm": Model(Operands.ALL),
        "unlink": Model(Operands.ALL),
        "shred": Model(Operands.ALL, _g("ns", "iterations", "size", "random-source")),
        "truncate": Model(Operands.ALL, _g("sr", "size", "reference")),
        "mkfifo": Model(Operands.ALL, _g("mZ", "mode")),
        "tee": Model(Operands.ALL),
        "sponge": Model(Operands.ALL),
        "fallocate": Model(Operands.ALL, _g("lo", "length", "offset")),
        "chmod": Model(Operands.AFTER_FIRST, _g("", "reference")),
        "chown": Model(Operands.AFTER_FIRST, _g("", "reference", "from")),
        "chgrp": Model(Operands.AFTER_FIRST, _g("", "reference")),
        "cp": Model(Operands.COPY, _COPY),
        "mv": Model(Operands.MOVE, _COPY),
        "install": Model(Operands.COPY, _g("tSZmog", "target-directory", "suffix", "mode", "owner", "group")),
        "ln": Model(Operands.LINK, _g("tS", "target-directory", "suffix")),
        "rsync": Model(Operands.LAST, _g("ef", "rsh", "exclude", "include", "filter"), unless=("-n", "--dry-run")),
        "scp": Model(Operands.LAST, _g("cFiJloPS")),
        "curl": Model(grammar=_CURL, outputs=("-o", "--output", "-D", "--dump-header", "-c", "--cookie-jar", "--trace",
                      "--trace-ascii", "--stderr", "--etag-save", "--libcurl")),
        "wget": Model(
            Operands.UNTOLD,
            _g("OoaPUtTwQeiB", "output-document", "output-file", "append-output", "directory-prefix", "header"),
            outputs=("-O", "--output-document", "-o", "--output-file", "-a", "--append-output"),
            unless=("-O", "--output-document", "--spider", "--version", "--help"),
        ),
        "sort": Model(grammar=_g("oktST", "output", "key", "field-separator"), outputs=("-o", "--output")),
        "tree": Model(grammar=_g("oLPI"), outputs=("-o",)),
        "gcc": Model(grammar=_g("oIDLlx"), outputs=("-o",)),
        "cc": Model(grammar=_g("oIDLlx"), outputs=("-o",)),
        "g++": Model(grammar=_g("oIDLlx"), outputs=("-o",)),
        "clang": Model(grammar=_g("oIDLlx"), outputs=("-o",)),
        "pandoc": Model(grammar=_g("oftc", "output", "from", "to"), outputs=("-o", "--output")),
        "gzip": Model(Operands.UNTOLD, unless=("-c", "--stdout", "-l", "--list", "-t", "--test")),
        "gunzip": Model(Operands.UNTOLD, unless=("-c", "--stdout", "-l", "--list", "-t", "--test")),
        "bzip2": Model(Operands.UNTOLD, unless=("-c", "--stdout", "-t", "--test")),
        "xz": Model(Operands.UNTOLD, unless=("-c", "--stdout", "-l", "--list", "-t", "--test")),
        "zstd": Model(Operands.UNTOLD, unless=("-c", "--stdout", "-l", "--list", "-t", "--test")),
        "unzip": Model(Operands.UNTOLD, unless=("-l", "-p", "-t", "-v", "-Z")),
        "zip": Model(Operands.UNTOLD),
        "patch": Model(Operands.UNTOLD, unless=("--dry-run",)),
        "split": Model(Operands.UNTOLD),
        "csplit": Model(Operands.UNTOLD),
        "mktemp": Model(Operands.UNTOLD, unless=("-u", "--dry-run")),
        "ed": Model(Operands.UNTOLD),
        "ex": Model(Operands.UNTOLD),
        "vi": Model(Operands.UNTOLD),
        "vim": Model(Operands.UNTOLD),
        "nano": Model(Operands.UNTOLD),
        "cpio": Model(Operands.UNTOLD, unless=("-t", "--list")),
        "7z": Model(Operands.UNTOLD),
        "parallel": Model(Operands.UNTOLD),
        "chroot": Model(Operands.UNTOLD),
        "yq": Model(untold_with=("-i", "--inplace")),
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A command that runs the command behind its options and, first, some operands of its own."""

    grammar: Grammar = _PLAIN
    operands: int = 0
    assignments: bool = False  # `NAME=value` may stand before the command
    nothing_with: tuple[str, ...] = ()  # with one of these it only tells something


def _w(
    short: str = "", *long: str, operands: int = 0, assignments: bool = False, nothing_with: tuple[str, ...] = ()
) -> Wrapper:
    grammar = Grammar(short, tuple(f"--{name}" for name in long), operands_last=True)
    return Wrapper(grammar, operands, assignments, nothing_with)


WRAPPERS: Final[Mapping[str, Wrapper]] = MappingProxyType(
    {
        "sudo": _w("ugpCThrDRU", "user", "group", "prompt", assignments=True, nothing_with=("-l", "-v", "-V")),
        "doas": _w("uC"),
        "env": _w("u", "unset", assignments=True),
        "nohup": _w(),
        "setsid": _w(),
        "nice": _w("n", "adjustment"),
        "ionice": _w("cnp", "class", "classdata"),
        "stdbuf": _w("ioe", "input", "output", "error"),
        "timeout": _w("ks", "kill-after", "signal", operands=1),
        "gtimeout": _w("ks", "kill-after", "signal", operands=1),
        "time": _w("f", "format"),
        "command": _w(nothing_with=("-v", "-V")),
        "builtin": _w(),
        "exec": _w("a"),
        "busybox": _w(),
        "unbuffer": _w(),
        "caffeinate": _w("tw"),
        "xvfb-run": _w("ns", "server-args", "server-num"),
    }
)

SHELLS: Final = frozenset({"bash", "sh", "dash", "zsh", "ksh", "ash"})
"""Programs whose code is read like the line itself."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A program that runs code of its own language: `inline` options hold it, `module` ones name a file of it."""

    inline: str
    inline_long: tuple[str, ...] = ()
    module: str = ""
    values: str = ""


INTERPRETERS: Final[Mapping[str, Interpreter]] = MappingProxyType(
    {
        "python": Interpreter("c", module="m", values="WX"),
        "pypy": Interpreter("c", module="m", values="WX"),
        "ipython": Interpreter("c", module="m"),
        "node": Interpreter("ep", ("--eval", "--print"), values="rC"),
        "bun": Interpreter("ep", ("--eval", "--print")),
        "ts-node": Interpreter("ep", ("--eval", "--print")),
        "perl": Interpreter("eE", values="IM"),
        "ruby": Interpreter("e", values="IrC"),
        "php": Interpreter("rBE", ("--run",), values="dc"),
        "lua": Interpreter("e", values="l"),
        "Rscript": Interpreter("e"),
        "osascript": Interpreter("e"),
        "pwsh": Interpreter("c", ("--command",)),
        "sqlite3": Interpreter(""),
    }
)


def interpreter(name: str) -> Interpreter | None:
    """The interpreter of that name; versions such as `python3.12` count as the program."""
    return INTERPRETERS.get(name) or INTERPRETERS.get(name.rstrip("0123456789."))


def targets_of(model: Model, arguments: Arguments) -> list[Argument]:
    """What a command writes by its model; null: something that the line does not fix."""
    if model.untold_with and arguments.has(*model.untold_with):
        return [None]
    found = [value for value in arguments.values(*model.outputs) if value != "-"] if model.outputs else []
    if model.unless and arguments.has(*model.unless):
        return found
    operands = arguments.operands
    kind = model.operands
    if kind is Operands.UNTOLD:
        return [*found, None]
    if kind is Operands.ALL:
        return [*found, *operands]
    if kind is Operands.LAST:
        return [*found, *(place for place in operands[-1:] if place is None or not _remote(place))]
    if kind is Operands.AFTER_FIRST:
        return [*found, *operands[0 if arguments.has("--reference") else 1 :]]
    if kind in (Operands.COPY, Operands.MOVE, Operands.LINK):
        return [*found, *_copied(kind, arguments)]
    return found


def _copied(kind: Operands, arguments: Arguments) -> list[Argument]:
    """The destinations of cp, mv, ln and install; mv also takes its sources away."""
    folders = arguments.values("-t", "--target-directory")
    operands = arguments.operands
    if (
        arguments.has("-d", "--directory")
        and kind is Operands.COPY
        and not folders
        and not arguments.has("-R", "-r", "-p")
    ):
        return list(operands)  # install -d makes folders
    if folders:
        sources, into = operands, folders[-1]
    elif len(operands) == 1 and kind is Operands.LINK:
        return [None if operands[0] is None else posixpath.basename(operands[0].rstrip("/"))]
    elif len(operands) < 2:
        return []
    else:
        sources, into = operands[:-1], operands[-1]
    gone = list(sources) if kind is Operands.MOVE else []
    inside = bool(folders) or len(sources) > 1 or (into is not None and (into.endswith("/") or into in (".", "..")))
    if into is None or not inside:
        return [*gone, into]
    return [
        *gone,
        *(None if name is None else posixpath.join(into, posixpath.basename(name.rstrip("/"))) for name in sources),
    ]


def _remote(place: str) -> bool:
    """Whether a place is on another machine: `host:path`."""
    head, colon, _ = place.partition(":")
    return bool(colon) and "/" not in head
