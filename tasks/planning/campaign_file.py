"""From what a person names (a campaign file, a skill, an evals.json) to a `CampaignSpec` with absolute paths."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from skilltrial.data.errors import InvalidInput, Problem
from skilltrial.data.problems import json_path, problems_of
from skilltrial.data.spec import CampaignSpec
from skilltrial.data.toml_text import read_toml
from skilltrial.tasks.planning.skill import CAMPAIGN_FILE, EVALS_FOLDER, SKILL_FILE

EVALS_FILE: Final = "evals.json"
_COMMAND_LINE: Final = "command line"


def spec_of_target(target: Path, **overrides: object) -> CampaignSpec:
    """The campaign meant by a campaign file, a skill's folder, its SKILL.md or its evals.json.

    `overrides` are fields of the spec, as from the command line; null means not given. Raises `InvalidInput`.
    """
    target = target.expanduser().absolute()
    return with_overrides(_spec_of(target), **overrides)


def read_spec(path: Path) -> CampaignSpec:
    """The campaign in a TOML file, its paths made absolute from the file's folder; `InvalidInput` lists all faults."""
    path = path.expanduser().absolute()
    file = str(path)
    document = read_toml(path)
    problems = [Problem(file, where, value, "is not a finite number") for where, value in _infinite(document, ())]
    try:
        # as JSON and strict: "3" is no number and true is no 1, while a text still is a path
        spec = CampaignSpec.model_validate_json(json.dumps(document, default=str), strict=True)
    except ValidationError as error:
        raise InvalidInput([*problems, *problems_of(error, file, model=CampaignSpec)]) from error
    if problems:
        raise InvalidInput(problems)
    return resolve(spec, path.parent)


def resolve(spec: CampaignSpec, base: Path) -> CampaignSpec:
    """The same spec with absolute paths; relative ones start at `base`. Links are kept as they are named."""

    def absolute(path: Path) -> Path:
        named = base.absolute() / path.expanduser()
        return named.resolve() if ".." in named.parts else named

    conditions = tuple(
        condition.model_copy(
            update={
                "treatment": tuple(
                    skill.model_copy(update={"path": absolute(skill.path)}) for skill in condition.treatment
                )
            }
        )
        for condition in spec.conditions
    )
    given: dict[str, object] = {
        "skill": absolute(spec.skill),
        "evals": absolute(spec.evals) if spec.evals else None,
        "conditions": conditions,
        "harness_inputs": {name: absolute(path) for name, path in spec.harness_inputs.items()},
        "binary": absolute(spec.binary) if spec.binary else None,
    }
    changed = {name: value for name, value in given.items() if value != getattr(spec, name)}
    return spec.model_copy(update=changed)


def with_overrides(spec: CampaignSpec, **given: object) -> CampaignSpec:
    """The spec with some fields replaced, and checked again; null and empty lists mean not given."""
    replaced = {name: value for name, value in given.items() if value is not None and value != ()}
    if not replaced:
        return spec
    if spec.conditions and not {"mode", "baseline_ref"}.isdisjoint(replaced):
        message = "has no effect: the campaign names its own conditions; take them out of the file"
        fields = sorted({"mode", "baseline_ref"} & set(replaced))
        raise InvalidInput([Problem(_COMMAND_LINE, name, replaced[name], message) for name in fields])
    try:
        return CampaignSpec.model_validate({**spec.model_dump(exclude_unset=True), **replaced})
    except ValidationError as error:
        raise InvalidInput(problems_of(error, _COMMAND_LINE, model=CampaignSpec)) from error


def evals_path(spec: CampaignSpec) -> Path:
    """Where the campaign's evals are."""
    return spec.evals or spec.skill / EVALS_FOLDER / EVALS_FILE


def _spec_of(target: Path) -> CampaignSpec:
    if target.is_dir():
        if (target / CAMPAIGN_FILE).is_file():
            return read_spec(target / CAMPAIGN_FILE)
        if target.name == EVALS_FOLDER and (target / EVALS_FILE).is_file():
            return _spec_of(target / EVALS_FILE)
        return CampaignSpec(skill=target)
    if target.name == SKILL_FILE:
        return CampaignSpec(skill=target.parent)
    if target.suffix == ".json":
        return CampaignSpec(skill=skill_of_evals(target), evals=target)
    if target.suffix == ".toml" or not target.exists():
        return read_spec(target)
    allowed = "a campaign file (*.toml), a skill's folder, its SKILL.md or its evals.json"
    raise InvalidInput([Problem(str(target), "", None, "names no campaign", allowed)])


def skill_of_evals(path: Path) -> Path:
    """The skill that an evals.json belongs to: the nearest folder above it with a SKILL.md, at most two up."""
    return next((folder for folder in path.parents[:2] if (folder / SKILL_FILE).is_file()), path.parent.parent)


def _infinite(value: object, path: tuple[str | int, ...]) -> Iterator[tuple[str, object]]:
    if isinstance(value, float) and not math.isfinite(value):
        yield json_path(path), value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _infinite(inner, (*path, name))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _infinite(inner, (*path, index))
