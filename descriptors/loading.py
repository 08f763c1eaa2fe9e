"""Reading descriptors from their TOML files."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path

from pydantic import ValidationError

from skilltrial.data.errors import InvalidInput, Problem, UnknownName
from skilltrial.data.problems import problems_of
from skilltrial.descriptors.model import HarnessDescriptor


def labels() -> list[str]:
    """Labels of the built-in descriptors, sorted."""
    found = resources.files("skilltrial.descriptors").iterdir()
    return sorted(entry.name.removesuffix(".toml") for entry in found if entry.name.endswith(".toml"))


def descriptor(label: str) -> HarnessDescriptor:
    """The descriptor of a harness; `UnknownName` lists the known labels."""
    if label not in labels():
        raise UnknownName("harness", label, labels())
    entry = resources.files("skilltrial.descriptors") / f"{label}.toml"
    return parse(entry.read_text("utf-8"), f"{label}.toml (built-in)")


def read(path: Path) -> HarnessDescriptor:
    """The descriptor in a file; `InvalidInput` names the file and every wrong field."""
    return parse(path.read_text("utf-8"), str(path))


def parse(text: str, file: str) -> HarnessDescriptor:
    """The descriptor in a TOML text; `file` is how messages name it."""
    try:
        return HarnessDescriptor.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput([Problem(file, "", None, f"is not TOML: {error}")]) from error
    except ValidationError as error:
        raise InvalidInput(problems_of(error, file)) from error
