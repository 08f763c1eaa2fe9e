"""Joined trees: the digest that is planned is the digest of what is copied."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skilltrial.data.digests import tree_digest
from skilltrial.data.errors import Terminal
from skilltrial.tasks.planning.trees import copy_joined, copy_tree, joined_digest
from tests.planning.building import write

NAMES = st.sampled_from(["a", "b", "a.txt", "a-b", "B"])
TREES = st.dictionaries(
    st.lists(NAMES, min_size=1, max_size=3).map("/".join), st.tuples(st.binary(max_size=3), st.booleans()), max_size=6
)


def materialise(root: Path, tree: dict[str, tuple[bytes, bool]]) -> None:
    root.mkdir(parents=True, exist_ok=True)
    for name, (content, executable) in tree.items():
        path = root / name
        if any((root / parent).is_file() for parent in Path(name).parents) or path.is_dir():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o755 if executable else 0o644)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(tree=TREES)
def test_the_planned_digest_is_the_digest_of_the_copy(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[str, tuple[bytes, bool]]
) -> None:
    root = tmp_path_factory.mktemp("joined")
    materialise(root / "source", tree)
    files = {f"x/{entry.name}": entry for entry in (root / "source").iterdir()}
    files |= {"whole": root / "source", "x": root / "source"}
    copy_joined(files, root / "copy")
    assert joined_digest(files) == tree_digest(root / "copy")


def test_only_destinations_bytes_and_executable_bits_count(tmp_path: Path) -> None:
    first, second = write(tmp_path / "one.txt", "x"), write(tmp_path / "two" / "other.txt", "x")
    assert joined_digest({"a": first}) == joined_digest({"a": second})
    assert joined_digest({"a": first}) != joined_digest({"b": first})
    second.chmod(0o755)
    assert joined_digest({"a": first}) != joined_digest({"a": second})


def test_no_files_are_an_empty_folder(tmp_path: Path) -> None:
    copy_joined({}, tmp_path / "copy")
    assert joined_digest({}) == tree_digest(tmp_path / "copy")
    (tmp_path / "empty").mkdir()
    files = {"kept": tmp_path / "empty"}
    copy_joined(files, tmp_path / "other")
    assert joined_digest(files) == tree_digest(tmp_path / "other") != joined_digest({})


def test_links_are_followed_and_dangling_or_circular_ones_stay_links(tmp_path: Path) -> None:
    write(tmp_path / "outside.txt", "x")
    source = tmp_path / "source"
    source.mkdir()
    (source / "file").symlink_to("../outside.txt")
    (source / "dangling").symlink_to("nowhere")
    (source / "circle").symlink_to(".")
    copy_tree(source, tmp_path / "copy")
    copied = {path.name: path.is_symlink() for path in (tmp_path / "copy").iterdir()}
    assert copied == {"file": False, "dangling": True, "circle": True}
    assert tree_digest(source) == tree_digest(tmp_path / "copy")


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    os.mkfifo(tmp_path / "source" / "pipe")
    with pytest.raises(Terminal, match="pipe is neither a file"):
        copy_tree(tmp_path / "source", tmp_path / "copy")


def test_what_tools_leave_in_a_folder_is_neither_copied_nor_counted(tmp_path: Path) -> None:
    write(tmp_path / "checks" / "check.py", "x")
    before = joined_digest({"checks": tmp_path / "checks"})
    write(tmp_path / "checks" / "__pycache__" / "check.pyc", "x")
    write(tmp_path / "checks" / "inner" / ".DS_Store", "x")
    (tmp_path / "checks" / "inner" / ".DS_Store").rename(tmp_path / "checks" / ".DS_Store")
    (tmp_path / "checks" / "inner").rmdir()
    assert joined_digest({"checks": tmp_path / "checks"}) == before
    copy_joined({"checks": tmp_path / "checks"}, tmp_path / "copy")
    assert [path.name for path in (tmp_path / "copy" / "checks").iterdir()] == ["check.py"]
