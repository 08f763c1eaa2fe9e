"""What is known at one place of a command while it is followed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType


class Untold(Exception):
    """The line does not fix what is written."""


@dataclass(frozen=True, slots=True)
class State:
    """What is known while a command is followed. Null: not known."""

    folder: str | None
    variables: Mapping[str, str | None]
    stdin: str | None = ""  # the text that a command would read; null: something that only a run can tell


def merged(state: State, values: Mapping[str, str | None]) -> State:
    """The state with some variables set."""
    return replace(state, variables=MappingProxyType({**state.variables, **values})) if values else state


def either(first: State, second: State) -> State:
    """What is known behind either of two ways."""
    names = {**first.variables, **second.variables}
    same = {
        name: first.variables.get(name) if first.variables.get(name) == second.variables.get(name) else None
        for name in names
    }
    folder = first.folder if first.folder == second.folder else None
    return replace(first, folder=folder, variables=MappingProxyType(same))
