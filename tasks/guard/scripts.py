"""What a sed or awk script writes: both can, and most do not.

A null among the targets: the script writes something, or may, whose name it does not fix.
"""

from __future__ import annotations

import re
from typing import Final

_SED_ADDRESS: Final = re.compile(r"(?:\d+(?:~\d+)?|\$|[+~]\d+|/(?:\\.|[^/\\\n])*/[IM]*|\\(.)(?:\\.|(?!\1).)*?\1[IM]*)")
_SED_SIMPLE: Final = frozenset("{}=dDgGhHlnNpPxzFqQ")
_SED_LABEL: Final = re.compile(r"[:btTv][ \t]*[^;\n}]*")
_SED_TEXT: Final = re.compile(r"[aic](?:\\.|[^\\\n])*", re.DOTALL)
_SED_FILE: Final = re.compile(r"([wWrR])[ \t]*([^\n]*)")
_SED_FLAGS: Final = re.compile(r"[gpIiMm0-9]*")

_AWK_TOKEN: Final = re.compile(
    r'(?P<space>[ \t\r]+)|(?P<line>\n)|(?P<string>"(?:\\.|[^"\\\n])*")|(?P<comment>#[^\n]*)|(?P<name>[A-Za-z_]\w*)'
    r"|(?P<number>[\d.]+)|(?P<append>>>)|(?P<operator>[<>=!~&|+\-*/%^]=|&&|\|\||\|&|\+\+|--|.)",
    re.DOTALL,
)
_AWK_REGEX: Final = re.compile(r"/(?:\\.|\[(?:\\.|[^\]\n])*\]|[^/\\\n])+/")


def sed_targets(script: str) -> list[str | None]:
    """Files that a sed script writes by `w`, in order; one null when it runs commands or is not understood."""
    targets: list[str | None] = []
    at = 0
    while at < len(script):
        if script[at] in " \t\n;,!":
            at += 1
            continue
        found = (
            (_SED_ADDRESS.match(script, at) if script[at] in "0123456789$+~/\\" else None)
            or (re.compile(r"#[^\n]*").match(script, at))
            or (_SED_FILE.match(script, at) if script[at] in "wWrR" else None)
            or (_SED_LABEL.match(script, at) if script[at] in ":btTv" else None)
            or (_SED_TEXT.match(script, at) if script[at] in "aic" else None)
        )
        if found is not None:
            if script[at] in "wW":
                targets.append(_sed_file(found[2]))
            at = max(found.end(), at + 1)
        elif script[at] in _SED_SIMPLE:
            at += 1
        elif script[at] in "sy":
            end = _sed_substitution(script, at, targets)
            if end is None:
                return [*_files(targets), None]
            at = end
        else:
            return [*_files(targets), None]  # `e` runs a command; anything else is not sed as we know it
    return _files(targets)


def _files(targets: list[str | None]) -> list[str | None]:
    """Without what is no file: the standard streams, and a `w` that names none."""
    return [target for target in targets if target != ""]


def _sed_substitution(script: str, at: int, targets: list[str | None]) -> int | None:
    """The end of `s/…/…/flags` or `y/…/…/`; null: it has none, or runs what it makes."""
    if at + 1 >= len(script) or script[at + 1] in "\\\n":
        return None
    delimiter = re.escape(script[at + 1])
    section = rf"(?:\\.|\[\^?\]?[^\]\n]*\]|(?!{delimiter}).)*?{delimiter}"
    plain = rf"(?:\\.|(?!{delimiter}).)*?{delimiter}"
    body = re.compile(rf".{delimiter}(?:{section}|{plain}){plain}", re.DOTALL).match(script, at)
    if body is None:
        return None
    if script[at] == "y":
        return body.end()
    flags = _SED_FLAGS.match(script, body.end())
    end = flags.end() if flags else body.end()
    if end < len(script) and script[end] == "e":
        return None
    written = re.compile(r"[gpIiMm0-9]*w[ \t]*([^\n]*)").match(script, body.end())
    if written is not None:
        targets.append(_sed_file(written[1]))
        return written.end()
    return end


def _sed_file(name: str) -> str:
    return "" if name in ("/dev/stdout", "/dev/stderr") else name


def awk_targets(program: str) -> list[str | None]:
    """Files that an awk program writes by `print >`; a null when it runs commands or makes the name up.

    `>` compares everywhere but behind `print` and `printf`, outside of parentheses.
    """
    targets: list[str | None] = []
    tokens = _awk_tokens(program)
    printing, depth = False, 0
    for place, (kind, text) in enumerate(tokens):
        following = tokens[place + 1] if place + 1 < len(tokens) else ("", "")
        behind = tokens[place + 2] if place + 2 < len(tokens) else ("line", "\n")
        if kind == "name":
            if text == "system" and following[1] == "(":
                targets.append(None)
            elif text in ("print", "printf"):
                printing, depth = True, 0
        elif text in ("(", "["):
            depth += 1
        elif text in (")", "]"):
            depth -= 1
        elif kind == "line" or text in (";", "{", "}"):
            printing = False
        elif printing and depth <= 0 and (kind == "append" or text == ">"):
            fixed = following[0] == "string" and (behind[0] == "line" or behind[1] in (";", "}"))
            targets.append(_awk_string(following[1]) if fixed else None)
        elif text in ("|", "|&"):
            targets.append(None)
    return [target for target in targets if target not in ("/dev/stdout", "/dev/stderr", "/dev/null")]


def _awk_tokens(program: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    at = 0
    while at < len(program):
        regex = _AWK_REGEX.match(program, at)
        operand = bool(tokens) and (tokens[-1][0] in ("number", "string") or tokens[-1][1] in (")", "]"))
        name_before = bool(tokens) and tokens[-1][0] == "name" and tokens[-1][1] not in ("print", "return", "in")
        if regex is not None and not operand and not name_before:
            tokens.append(("regex", regex[0]))
            at = regex.end()
            continue
        found = _AWK_TOKEN.match(program, at)
        if found is None:
            at += 1
            continue
        at = found.end()
        kind = str(found.lastgroup)
        if kind not in ("space", "comment"):
            tokens.append((kind, found[0]))
    return tokens


def _awk_string(literal: str) -> str | None:
    inner = literal[1:-1]
    return None if "\\" in inner else inner
