"""Anthropic's skill-creator form of `evals.json`, turned into ours.

There ids are integers, assertions (once called `expectations`) are plain sentences for a judge, `files` are
relative to the skill instead of to its `evals/`, and every author adds fields of their own.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from skilltrial.data.errors import Problem
from skilltrial.data.evals import Eval, EvalsFile
from skilltrial.tasks.planning.paths import fault_of
from skilltrial.tasks.planning.slugs import slug_of

SKILL_ROOT: Final = ".."
"""`files_root` of an eval whose files are relative to the skill: seen from `evals/`, one folder up."""

_RUBRIC_FIELDS: Final = ("rubric", "text", "description", "expectation", "name")
_OWN_FOLDER: Final = "evals/"


@dataclass(slots=True)
class Conversion:
    """A document in our form, with what was wrong already, and what a person should know about the reading."""

    document: dict[str, object]
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def is_skill_creator(document: object) -> bool:
    """Whether an `evals.json` is written in the skill-creator form: one sign in one eval is enough."""
    evals = document.get("evals") if isinstance(document, dict) else None
    return isinstance(evals, list) and any(_has_sign(entry) for entry in evals)


def convert(document: dict[str, object], path: Path) -> Conversion:
    """A skill-creator document in our form; `path` is its file.

    What cannot be turned stays as it is, for the schema to refuse.
    """
    file = str(path)
    result = Conversion({name: value for name, value in document.items() if name in EvalsFile.model_fields})
    ignored = Counter(f"{name} (of the file)" for name in document if name not in EvalsFile.model_fields)
    entries = document["evals"]
    assert isinstance(entries, list)
    ids: list[str] = []
    evals: list[object] = []
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict):
            evals.append(entry)
            continue
        known = {*Eval.model_fields, "expectations", "should_trigger"}
        ignored.update(name for name in entry if name not in known)
        converted = {**_eval(entry, f"evals[{index}]", file, result.problems), **_files(entry, path.parent)}
        evals.append(converted)
        if isinstance(entry.get("id"), str) and converted.get("id") != entry["id"]:
            ids.append(f"{entry['id']} → {converted['id']}")
    result.document["evals"] = evals
    result.notes.append(
        "is in the skill-creator form: plain assertions are rubrics for a judge, integer ids n are eval-n"
    )
    if ids:
        result.notes.append(f"ids are read as {', '.join(ids)}")
    if ignored:
        listed = ", ".join(f"{name} ×{count}" if count > 1 else name for name, count in sorted(ignored.items()))
        result.notes.append(f"ignored fields: {listed}")
    return result


def _has_sign(entry: object) -> bool:
    if not isinstance(entry, dict):
        return False
    assertions = entry.get("assertions")
    listed = assertions if isinstance(assertions, list) else []
    return (
        (isinstance(entry.get("id"), int) and not isinstance(entry["id"], bool))
        or "expectations" in entry
        or any(isinstance(item, str) or (isinstance(item, dict) and "type" not in item) for item in listed)
    )


def _eval(entry: dict[str, object], place: str, file: str, problems: list[Problem]) -> dict[str, object]:
    converted = {name: value for name, value in entry.items() if name in Eval.model_fields and value is not None}
    identifier = entry.get("id")
    if isinstance(identifier, int) and not isinstance(identifier, bool):
        converted["id"] = f"eval-{identifier}"
    elif isinstance(identifier, str) and identifier.strip():
        converted["id"] = slug_of(identifier, punctuation="") or identifier
    if "should_trigger" in entry and "skill_should_trigger" not in entry:
        converted["skill_should_trigger"] = entry["should_trigger"]
    converted["assertions"] = _assertions(entry, place, file, problems)
    return converted


def _assertions(entry: dict[str, object], place: str, file: str, problems: list[Problem]) -> list[object]:
    """Ours stay as they are; sentences become judge assertions a1, a2, … by their position."""
    found: list[object] = []
    for name in ("assertions", "expectations"):
        listed = entry.get(name)
        if listed is None:
            continue
        if not isinstance(listed, list):
            problems.append(Problem(file, f"{place}.{name}", listed, "is not a list"))
            continue
        for index, item in enumerate(listed):
            if isinstance(item, dict) and "type" in item:
                found.append(item)
                continue
            rubric = _rubric(item)
            if rubric is None:
                allowed = f"a sentence, or an object with one of {', '.join(_RUBRIC_FIELDS)}"
                problems.append(Problem(file, f"{place}.{name}[{index}]", item, "says nothing to judge by", allowed))
                rubric = "?"
            found.append({"id": f"a{len(found) + 1}", "type": "llm_judge", "rubric": rubric})
    return found


def _rubric(item: object) -> str | None:
    candidates = [item.get(name) for name in _RUBRIC_FIELDS] if isinstance(item, dict) else [item]
    return next((text for text in candidates if isinstance(text, str) and text.strip()), None)


def _files(entry: dict[str, object], folder: Path) -> dict[str, object]:
    """`files` and `files_root` in our sense; `folder` holds `evals.json`.

    Files below the skill's `evals/` lose that prefix, also as destinations, unless the prompt names them by
    it: an agent that reads it in a path knows that it is being tested.
    """
    files = entry.get("files")
    if not isinstance(files, list) or entry.get("files_root") is not None:
        return {}
    names = [name.removeprefix("./") if isinstance(name, str) else name for name in files]
    texts = [name for name in names if isinstance(name, str)]
    below_evals = len(texts) == len(names) and all(name.startswith(_OWN_FOLDER) for name in texts)
    if below_evals and not any(name in str(entry.get("prompt")) for name in texts):
        return {"files": [name.removeprefix(_OWN_FOLDER) for name in texts]}
    if texts and all(fault_of(name) is None and (folder / name).exists() for name in texts):
        return {"files": names}
    return {"files": names, "files_root": SKILL_ROOT} if names else {}
