"""Reading descriptors from their TOML files."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from skilltrial.data.errors import InvalidInput, UnknownName
from skilltrial.data.problems import problems_of
from skilltrial.data.toml_text import parse_toml, read_toml
from skilltrial.descriptors.model import HarnessDescriptor


def labels() -> list[str]:
    """Labels of the built-in descriptors, sorted."""
    found = resources.files("skilltrial.descriptors").iterdir()
    return sorted(entry.name.removesuffix(".toml") for entry in found if entry.name.endswith(".toml"))


def descriptor(label: str) -> HarnessDescriptor:
    """The descriptor of a harness; `UnknownName` lists the known labels."""
    if label not in labels():
        raise UnknownName("harness", label, labels())
    name = f"{label}.toml"
    return _checked(parse_toml((resources.files("skilltrial.descriptors") / name).read_bytes(), name), name)


def read(path: Path) -> HarnessDescriptor:
    """The descriptor in a file; `InvalidInput` names the file and every wrong field."""
    return _checked(read_toml(path), str(path))


def _checked(document: dict[str, Any], file: str) -> HarnessDescriptor:
    try:
        return HarnessDescriptor.model_validate(document)
    except ValidationError as error:
        raise InvalidInput(problems_of(error, file, model=HarnessDescriptor)) from error
