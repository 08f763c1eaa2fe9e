"""Checking what a person wrote, whatever kind of file it is, without planning a campaign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from skilltrial.data.errors import InvalidInput, Problem, UnknownName
from skilltrial.descriptors import loading
from skilltrial.tasks.planning.campaign_file import EVALS_FILE, evals_path, read_spec
from skilltrial.tasks.planning.evals import examine
from skilltrial.tasks.planning.plan import SPEC, find_problems
from skilltrial.tasks.planning.skill import CAMPAIGN_FILE, EVALS_FOLDER, SKILL_FILE, read_skill
from skilltrial.tasks.planning.treatments import planned_treatments

Kind = Literal["campaign", "evals", "skill"]


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found at one path."""

    path: Path
    kind: Kind
    problems: tuple[Problem, ...]  # each keeps the path from being run
    notes: tuple[str, ...]  # worth knowing


def check(path: Path) -> Checked:
    """Check a campaign file, an evals.json, or a skill's folder with its evals. Never raises for their content."""
    path = path.expanduser().absolute()
    if path.name == SKILL_FILE:
        path = path.parent
    if path.suffix == ".toml":
        return _campaign(path)
    if not path.is_dir():
        reading = examine(path)
        return Checked(path, "evals", reading.problems, reading.notes)
    if not (path / SKILL_FILE).is_file():
        if (path / CAMPAIGN_FILE).is_file():
            return _campaign(path / CAMPAIGN_FILE)
        if path.name == EVALS_FOLDER and (path / EVALS_FILE).is_file():
            return check(path / EVALS_FILE)
    return _skill(path)


def _skill(folder: Path) -> Checked:
    problems: list[Problem] = []
    notes: list[str] = []
    try:
        notes += read_skill(folder).notes
    except InvalidInput as error:
        problems += error.problems
    evals = folder / EVALS_FOLDER / EVALS_FILE
    if evals.exists():
        reading = examine(evals)
        problems += reading.problems
        notes += [f"{evals} {note}" for note in reading.notes]
    elif not problems:
        message = f"does not exist; `skilltrial init {folder}` writes one to start from"
        problems.append(Problem(str(evals), "", None, message))
    if (folder / CAMPAIGN_FILE).is_file():
        campaign = _campaign(folder / CAMPAIGN_FILE)
        problems += [problem for problem in campaign.problems if problem not in problems]
        notes += campaign.notes
    return Checked(folder, "skill", tuple(problems), tuple(notes))


def _campaign(path: Path) -> Checked:
    try:
        spec = read_spec(path)
        descriptor = loading.descriptor(spec.harness)
    except InvalidInput as error:
        return Checked(path, "campaign", error.problems, ())
    except UnknownName as error:
        problem = Problem(str(path), "harness", error.given, "is not a known harness", ", ".join(error.known))
        return Checked(path, "campaign", (problem,), ())
    reading, treatments = examine(evals_path(spec)), planned_treatments(spec, str(path))
    problems = find_problems(spec, descriptor, reading, treatments)
    known = [entry.id for entry in reading.evals.evals] if reading.evals else []
    for index, name in enumerate(spec.only if reading.evals else ()):
        if name not in known:
            problems.append(Problem(str(path), f"only[{index}]", name, "is not the id of an eval", ", ".join(known)))
    notes = [*(f"{reading.path} {note}" for note in reading.notes), *treatments.warnings]
    return Checked(path, "campaign", _named(problems, str(path)), tuple(dict.fromkeys(notes)))


def _named(problems: Sequence[Problem], file: str) -> tuple[Problem, ...]:
    """The problems, those of the spec itself under the name of the file that it was read from."""
    return tuple(
        Problem(file, problem.where, problem.value, problem.message, problem.allowed)
        if problem.file == SPEC
        else problem
        for problem in problems
    )
