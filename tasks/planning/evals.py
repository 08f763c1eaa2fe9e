"""Reading `evals.json`: everything that is wrong with it at once, and what its files hold.

`files` of an eval lie below the folder of `evals.json` (or its `files_root`) and keep their names in the
environment; `setup_files` of command checks always lie below the folder of `evals.json`. An
`assistant_message_matches` check needs no follow-ups here: a conversation of one prompt has messages too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from skilltrial.data.errors import InvalidInput, Problem
from skilltrial.data.evals import CommandCheck, Eval, EvalsFile
from skilltrial.data.problems import problems_of
from skilltrial.tasks.planning.eval_checks import codebase_problems, eval_problems
from skilltrial.tasks.planning.json_text import read_json
from skilltrial.tasks.planning.paths import clean
from skilltrial.tasks.planning.skill_creator import convert, is_skill_creator


@dataclass(frozen=True, slots=True)
class Reading:
    """What was found in an `evals.json`. `evals` is there exactly when there are no problems."""

    path: Path
    evals: EvalsFile | None
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]  # how the file was read, where that is not plain


def examine(path: Path) -> Reading:
    """Read and check an `evals.json` of either form; never raises for what the file holds."""
    path = path.absolute()
    document, problems, notes = read_json(path)
    if document is None and problems:
        return Reading(path, None, tuple(problems), tuple(notes))
    wrong_top = _top_level(document, str(path))
    if wrong_top is not None or not isinstance(document, dict):
        return Reading(path, None, (*problems, *([wrong_top] if wrong_top else [])), tuple(notes))
    skill_creator = is_skill_creator(document)
    if skill_creator:
        conversion = convert(document, path)
        document = conversion.document
        problems += conversion.problems
        notes += conversion.notes
    problems += _content_problems(document, path, skill_creator)
    evals = None
    try:
        # as JSON and strict: "3" is no number, true is no 1, and a list is a tuple all the same
        evals = EvalsFile.model_validate_json(_without_surrogates(json.dumps(document)), strict=True)
    except ValidationError as error:
        problems += problems_of(error, str(path), model=EvalsFile)
    ordered = tuple(sorted(problems, key=lambda problem: _place_key(problem.where)))
    return Reading(path, None if ordered else evals, ordered, tuple(notes))


def problems(path: Path) -> list[Problem]:
    """Everything that is wrong with an `evals.json`, sorted by place; empty: it can be run."""
    return list(examine(path).problems)


def read_evals(path: Path) -> EvalsFile:
    """The evals of a file; `InvalidInput` carries every problem found."""
    reading = examine(path)
    if reading.evals is None:
        raise InvalidInput(reading.problems)
    return reading.evals


def fixtures(entry: Eval, evals_folder: Path) -> dict[str, Path]:
    """Destination in the environment → source of each of an eval's `files`."""
    base = evals_folder / entry.files_root if entry.files_root else evals_folder
    return {clean(name): base / name for name in entry.files}


def heldout(entry: Eval, evals_folder: Path) -> dict[str, Path]:
    """Destination → source of all setup files of an eval's command checks."""
    checks = [assertion for assertion in entry.assertions if isinstance(assertion, CommandCheck)]
    return {clean(name): evals_folder / name for check in checks for name in check.setup_files}


def _top_level(document: object, file: str) -> Problem | None:
    if not isinstance(document, dict):
        kind = {list: "a list", str: "a text", type(None): "null"}.get(type(document), "a number or truth value")
        return Problem(file, "", None, f"is {kind}, not an object", 'an object {"skill_name": …, "evals": […]}')
    if "evals" not in document:
        known = ", ".join(EvalsFile.model_fields)
        return Problem(file, "evals", None, f"is missing; the file has {', '.join(document) or 'nothing'}", known)
    return None


def _content_problems(document: dict[str, object], path: Path, skill_creator: bool) -> Iterator[Problem]:
    yield from codebase_problems(document.get("codebase"), "codebase", path)
    entries = document["evals"]
    seen: dict[object, int] = {}
    for index, entry in enumerate(entries if isinstance(entries, list) else []):
        if not isinstance(entry, dict):
            continue
        identifier = entry.get("id")
        if isinstance(identifier, str):
            if identifier in seen:
                message = f"is the id of evals[{seen[identifier]}] already"
                yield Problem(str(path), f"evals[{index}].id", identifier, message)
            seen.setdefault(identifier, index)
        yield from eval_problems(entry, f"evals[{index}]", path, skill_relative=skill_creator)


def _without_surrogates(text: str) -> str:
    """JSON without half surrogate pairs, which are a problem of their own and would hide all others."""
    return re.sub(r"\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f]{2})\\ud[c-f][0-9a-f]{2}", "?", text)


def _place_key(where: str) -> list[tuple[int, int, str]]:
    """Sorts `evals[2]` before `evals[10]`, and a whole before its parts."""
    parts = re.findall(r"\d+|[^\d\[\].]+", where)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]
