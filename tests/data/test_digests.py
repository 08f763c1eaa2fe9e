"""Digests depend on content alone, and on all of it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skilltrial.data.digests import canonical_json, digest, file_digest, tree_digest, tree_entries, walk_files
from skilltrial.data.spec import ContrastSpec

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=12,
)


def tree(root: Path, **files: str) -> Path:
    for name, content in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def test_canonical_json_has_sorted_keys_and_no_white_space() -> None:
    assert (
        canonical_json({"b": [1, None], "a": {"d": True, "c": "é"}}) == '{"a":{"c":"é","d":true},"b":[1,null]}'.encode()
    )


def test_models_paths_and_sets_stand_for_their_plain_form() -> None:
    contrast = ContrastSpec(treatment="a", control="b")
    assert canonical_json({"m": contrast, "p": Path("x/y"), "s": {"b", "a"}, "t": (1,)}) == (
        b'{"m":{"control":"b","treatment":"a"},"p":"x/y","s":["a","b"],"t":[1]}'
    )


def test_a_value_without_canonical_form_is_refused() -> None:
    with pytest.raises(TypeError):
        digest(object())


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), JSON))
def test_the_order_of_keys_never_shows(value: dict[str, Any]) -> None:
    assert digest(value) == digest(dict(reversed(value.items())))


@given(JSON, JSON)
def test_other_values_have_other_digests(first: object, second: object) -> None:
    assert (digest(first) == digest(second)) == (canonical_json(first) == canonical_json(second))
    assert len(digest(first)) == 64


@given(st.binary(max_size=300))
def test_a_files_digest_is_the_sha_256_of_its_bytes(content: bytes) -> None:
    path = Path(os.environ["PREFECT_HOME"]) / f"digest-{os.getpid()}"
    path.write_bytes(content)
    assert file_digest(path) == hashlib.sha256(content).hexdigest()
    path.unlink()


def test_a_tree_digest_does_not_see_where_or_when_but_sees_names_bytes_and_the_executable_bit(tmp_path: Path) -> None:
    first = tree(tmp_path / "one", a="1", sub__b="2")
    second = tree(tmp_path / "two", sub__b="2", a="1")
    os.utime(second / "a", (0, 0))
    assert tree_digest(first) == tree_digest(second)
    (second / "a").chmod(0o755)
    executable = tree_digest(second)
    (second / "a").chmod(0o644)
    (second / "a").write_text("3")
    changed = tree_digest(second)
    (second / "a").rename(second / "c")
    assert len({tree_digest(first), executable, changed, tree_digest(second)}) == 4


def test_an_empty_folder_and_a_dangling_link_are_seen(tmp_path: Path) -> None:
    root = tree(tmp_path / "root", file="x")
    (root / "empty").mkdir()
    (root / "gone").symlink_to("nowhere")
    sha = hashlib.sha256(b"x").hexdigest()
    assert list(tree_entries(root)) == [
        ("empty", "folder", ""),
        ("file", "file", sha),
        ("gone", "link", "nowhere"),
    ]


def test_links_are_followed_but_never_round_in_a_circle(tmp_path: Path) -> None:
    root = tree(tmp_path / "root", real__file="x")
    (root / "copy").symlink_to("real")
    (root / "real" / "up").symlink_to("..")
    assert [(name, kind) for name, kind, _ in tree_entries(root)] == [
        ("copy/file", "file"),
        ("copy/up", "link"),
        ("real/file", "file"),
        ("real/up", "link"),
    ]


def test_what_is_skipped_is_not_entered(tmp_path: Path) -> None:
    root = tree(tmp_path / "root", keep="1", drop__inner="2")
    asked: list[str] = []

    def skip(name: str) -> bool:
        asked.append(name)
        return name == "drop"

    assert [path.name for path in walk_files(root, skip=skip)] == ["keep"]
    assert asked == ["drop", "keep"]
    assert tree_digest(root, skip=skip) == tree_digest(tree(tmp_path / "other", keep="1"))


def test_a_single_file_is_a_tree_without_a_name(tmp_path: Path) -> None:
    path = tree(tmp_path, one="1") / "one"
    assert list(tree_entries(path)) == [("", "file", file_digest(path))]
