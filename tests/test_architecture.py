"""Arrows point one way: flows → tasks → descriptors → data; Prefect only at the thin edge."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
LAYERS = ["data", "descriptors", "tasks", "flows"]
FILES = [path for layer in LAYERS for path in sorted((PROJECT / layer).rglob("*.py")) if "examples" not in path.parts]
STANDARD_LIBRARY_ONLY = ["tasks/dispatch/supervisor.py", "tasks/dispatch/warden.py", "tasks/dispatch/scripted"]


def imported(path: Path, *, at_run_time: bool = False) -> Iterator[str]:
    """Every module that a file imports, wherever the import stands; or only what it imports when it runs."""
    tree = ast.parse(path.read_text("utf-8"))
    if at_run_time:
        tree.body = [node for node in tree.body if "TYPE_CHECKING" not in ast.unparse(node).partition(":")[0]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PROJECT)))
def test_module_imports_only_layers_below_and_prefect_only_at_the_edge(path: Path) -> None:
    place = path.relative_to(PROJECT)
    layer = LAYERS.index(place.parts[0])
    for module in imported(path):
        if found := re.match(r"skilltrial\.(\w+)", module):
            assert LAYERS.index(found[1]) <= layer, f"{place} imports {module} from a layer above"
        if module.split(".")[0] == "prefect":
            edge = place.parts[0] == "flows" or (place.parts[0] == "tasks" and place.name == "task.py")
            assert edge, f"{place} imports {module}"


@pytest.mark.parametrize("place", STANDARD_LIBRARY_ONLY)
def test_programs_that_run_apart_need_nothing_of_ours(place: str) -> None:
    target = PROJECT / place
    for path in [target] if target.is_file() else sorted(target.rglob("*.py")):
        assert not [module for module in imported(path, at_run_time=True) if module.startswith("skilltrial")], path


def test_bare_folder_names_are_never_imported() -> None:
    for path in FILES:
        assert not {module.split(".")[0] for module in imported(path)} & set(LAYERS), path


def test_every_package_is_in_the_distribution() -> None:
    listed = (PROJECT / "pyproject.toml").read_text("utf-8")
    for init in [path for path in FILES if path.name == "__init__.py"]:
        package = ".".join(("skilltrial", *init.parent.relative_to(PROJECT).parts))
        assert f'"{package}"' in listed, f"{package} is not among the packages of pyproject.toml"
