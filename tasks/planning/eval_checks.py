"""What a model cannot know of an eval: files, regular expressions, collisions.

The checks read the raw JSON, not the model, so that a fault of the form hides none of the content: a person
who has made five mistakes learns of five.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from skilltrial.data.errors import Problem
from skilltrial.data.git import public_url
from skilltrial.tasks.grading.patterns import problem_of
from skilltrial.tasks.planning.paths import clean, component_fault, fault_of, overlap
from skilltrial.tasks.planning.skill_creator import SKILL_ROOT

Raw = Mapping[str, object]
Found = Iterator[tuple[str, object, str]]
"""(JSON path below the eval, the value, what is wrong) of each fault."""


def eval_problems(entry: Raw, place: str, evals_file: Path, *, skill_relative: bool) -> Iterator[Problem]:
    """Every fault of one eval's content; `place` is its JSON path, such as `evals[2]`.

    `skill_relative`: files may be relative to the skill, as in the skill-creator form.
    """
    for check in (_prompt, _conversation, _assertions):
        yield from _at(check(entry), place, evals_file)
    yield from _at(_files(entry, evals_file, skill_relative), place, evals_file)
    yield from _at(_setup_files(entry, evals_file.parent), place, evals_file)
    yield from codebase_problems(entry.get("codebase"), f"{place}.codebase", evals_file)


def codebase_problems(codebase: object, place: str, evals_file: Path) -> Iterator[Problem]:
    """Every fault of a codebase that the model cannot see."""
    if isinstance(codebase, dict):
        yield from _at(_codebase(codebase, evals_file.parent), place, evals_file)


def _at(found: Found, place: str, evals_file: Path) -> Iterator[Problem]:
    for where, value, message in found:
        yield Problem(str(evals_file), f"{place}.{where}" if where else place, value, message)


def _codebase(codebase: Raw, folder: Path) -> Found:
    for name in ("url", "ref", "path"):
        value = codebase.get(name)
        if isinstance(value, str) and value and not value.strip():
            yield name, value, "is blank"
    url, ref, path = codebase.get("url"), codebase.get("ref"), codebase.get("path")
    if url is not None and path is not None:
        yield "", None, "has both url and path; a codebase is one of them"
    if url is None and path is None:
        yield "", None, "needs url and ref, or path"
    if url is not None and ref is None:
        yield "", None, "has a url but no ref; without one the codebase would move under the campaign"
    if path is not None and ref is not None and url is None:
        yield "ref", ref, "goes with a url; a path is taken at its current commit"
    if isinstance(url, str) and public_url(url) != url:
        yield "url", public_url(url), "holds credentials, which would be kept on disk; use ssh or ~/.netrc"
    if isinstance(path, str) and path.strip() and ("\0" in path or not (folder / path).is_dir()):
        yield "path", path, f"is not a folder (looked for {_plain(folder / path)})"


def _prompt(entry: Raw) -> Found:
    prompt = entry.get("prompt")
    if isinstance(prompt, str) and prompt and not prompt.strip():
        yield "prompt", prompt, "is blank"


def _conversation(entry: Raw) -> Found:
    turns = _list(entry.get("turns"))
    if "turns" in entry and entry["turns"] == []:
        yield "turns", None, "is empty; leave it out"
    if turns and entry.get("responder") is not None:
        yield "responder", None, "cannot be combined with turns: follow-ups are either written or derived"
    for index, turn in enumerate(turns):
        if not isinstance(turn, dict):
            continue
        prompt, pattern = turn.get("prompt"), turn.get("agent_response_matches")
        if isinstance(prompt, str) and prompt and not prompt.strip():
            yield f"turns[{index}].prompt", prompt, "is blank"
        if pattern is not None and turn.get("deliver_when") == "always":
            yield f"turns[{index}].agent_response_matches", pattern, "goes only with deliver_when 'agent_asks'"
        yield from _pattern(f"turns[{index}].agent_response_matches", pattern)


def _pattern(where: str, pattern: object) -> Found:
    reason = problem_of(pattern) if isinstance(pattern, str) and pattern else None
    if reason is not None:
        yield where, pattern, f"is not a regular expression of Rust's dialect: {reason}"


def _files(entry: Raw, evals_file: Path, skill_relative: bool) -> Found:
    folder, root = evals_file.parent, entry.get("files_root")
    base = folder
    if isinstance(root, str) and root:
        fault = None if skill_relative and root == SKILL_ROOT else fault_of(root, git_allowed=True)
        if fault is not None:
            yield "files_root", root, fault
            return
        base = folder / root
    for index, name in enumerate(_list(entry.get("files"))):
        if not isinstance(name, str) or not name:
            continue
        where, fault = f"files[{index}]", fault_of(name)
        if fault is not None:
            yield where, name, fault
        elif not (base / name).exists():
            yield where, name, f"does not exist (looked for {_plain(base / name)})"
        elif evals_file.resolve().is_relative_to((base / name).resolve()):
            yield where, name, f"brings {evals_file.name} along: the agent could read what it is graded by"


def _setup_files(entry: Raw, folder: Path) -> Found:
    visible = [name for name in _list(entry.get("files")) if isinstance(name, str) and fault_of(name) is None]
    for number, assertion in enumerate(_list(entry.get("assertions"))):
        listed = assertion.get("setup_files") if isinstance(assertion, dict) else None
        for index, name in enumerate(_list(listed)):
            if not isinstance(name, str) or not name:
                continue
            where, fault = f"assertions[{number}].setup_files[{index}]", fault_of(name)
            if fault is not None:
                yield where, name, fault
                continue
            if not (folder / name).exists():
                yield where, name, f"does not exist (looked for {_plain(folder / name)})"
            seen = next((other for other in visible if overlap(name, other)), None)
            if seen is not None:
                yield where, name, f"overlaps {clean(seen)!r} of files: what is held out must not be visible"


def _assertions(entry: Raw) -> Found:
    seen: dict[str, int] = {}
    for index, assertion in enumerate(_list(entry.get("assertions"))):
        if not isinstance(assertion, dict):
            continue
        place, name = f"assertions[{index}]", assertion.get("id")
        if isinstance(name, str) and name:
            yield from _assertion_id(f"{place}.id", name, seen)
            seen.setdefault(name, index)
        yield from _pattern(f"{place}.pattern", assertion.get("pattern"))
        yield from _pattern(f"{place}.expect_stdout", assertion.get("expect_stdout"))
        for field in ("rubric", "command"):
            text = assertion.get(field)
            if isinstance(text, str) and text and not text.strip():
                yield f"{place}.{field}", text, "is blank"
        if assertion.get("type") == "command_check":
            yield from _command(place, assertion)
        limits = ("max_files_touched", "max_lines_changed")
        if assertion.get("type") == "diff_scope" and all(assertion.get(limit) is None for limit in limits):
            yield place, None, f"limits nothing; set {' or '.join(limits)}"


def _assertion_id(where: str, name: str, seen: Mapping[str, int]) -> Found:
    if name in seen:
        yield where, name, f"is the id of assertions[{seen[name]}] already"
    fault = component_fault(name)
    if fault is not None:
        yield where, name, fault
    if name.startswith("__"):
        yield where, name, "starts with '__', which is kept for checks that every eval has"


def _command(place: str, assertion: Raw) -> Found:
    command = assertion.get("command")
    if isinstance(command, str) and "\0" in command:
        yield f"{place}.command", command, "holds a NUL, which no command can"
    env, matrix = assertion.get("env"), assertion.get("matrix")
    for name, value in (env if isinstance(env, dict) else {}).items():
        yield from _variable(f"{place}.env", name)
        if isinstance(value, str) and "\0" in value:
            yield f"{place}.env.{name}", value, "holds a NUL, which no variable can"
    for name, values in (matrix if isinstance(matrix, dict) else {}).items():
        yield from _variable(f"{place}.matrix", name)
        if isinstance(env, dict) and name in env:
            yield f"{place}.matrix.{name}", None, "is set in env as well; which one is meant?"
        yield from _matrix_values(f"{place}.matrix.{name}", _list(values))
        if values == []:
            yield f"{place}.matrix.{name}", None, "has no values, so the command would never run"


def _matrix_values(where: str, values: list[object]) -> Found:
    for index, value in enumerate(values):
        if not isinstance(value, str):
            continue
        if not value.strip():
            yield f"{where}[{index}]", value, "is blank"
        if "\0" in value:
            yield f"{where}[{index}]", value, "holds a NUL, which no variable can"
        if value in values[:index]:
            yield f"{where}[{index}]", value, "is given twice"


def _variable(where: str, name: str) -> Found:
    if not name or "=" in name or "\0" in name:
        yield where, name, "is not a name for a variable: it must not be empty and hold neither '=' nor NUL"


def _plain(path: Path) -> str:
    return os.path.normpath(path)


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
