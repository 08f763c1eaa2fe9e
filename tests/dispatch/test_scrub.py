"""What a CLI logged by itself is cleaned in place."""

from __future__ import annotations

from pathlib import Path

from skilltrial.tasks.dispatch.scrub import held_below, scrub_folder

CANARY = "sk-canary-0123456789"


def test_only_files_that_hold_a_secret_are_rewritten(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    dirty, clean, empty = tmp_path / "a" / "dirty.log", tmp_path / "clean.log", tmp_path / "empty.log"
    dirty.write_bytes(b"\0key " + CANARY.encode() + b"\xff end")
    dirty.chmod(0o640)
    clean.write_bytes(b"nothing")
    empty.touch()
    untouched = clean.stat()

    assert scrub_folder(tmp_path, [CANARY]) == 1

    assert dirty.read_bytes() == b"\0key [redacted]\xff end"
    assert dirty.stat().st_mode & 0o777 == 0o640
    assert (clean.stat().st_ino, clean.stat().st_mtime_ns) == (untouched.st_ino, untouched.st_mtime_ns)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "clean.log", "dirty.log", "empty.log"]


def test_links_are_neither_followed_nor_written_through(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    for folder in (outside, inside):
        folder.mkdir()
    (outside / "kept").write_text(CANARY)
    (outside / "target").write_text("precious")
    (inside / "link").symlink_to(outside / "kept")
    (inside / "folder").symlink_to(outside)
    (inside / "log").write_text(CANARY)
    (inside / ".log.scrubbed").symlink_to(outside / "target")

    assert scrub_folder(inside, [CANARY]) == 1

    assert (inside / "log").read_text() == "[redacted]"
    assert (outside / "kept").read_text() == CANARY
    assert (outside / "target").read_text() == "precious"


def test_without_secrets_nothing_is_read(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("short")

    assert scrub_folder(tmp_path, ["short"]) == 0
    assert (tmp_path / "log").read_text() == "short"


def test_names_links_and_closed_folders_keep_no_secret(tmp_path: Path) -> None:
    (tmp_path / CANARY).mkdir()
    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "log").write_text(CANARY)
    (closed / "log").chmod(0)
    closed.chmod(0)
    (tmp_path / "link").symlink_to(f"/nowhere/{CANARY}")
    (tmp_path / "[redacted]").mkdir()

    scrub_folder(tmp_path, [CANARY])

    assert closed.stat().st_mode & 0o777 == 0
    closed.chmod(0o700)
    assert (closed / "log").stat().st_mode & 0o777 == 0
    (closed / "log").chmod(0o600)
    assert (closed / "log").read_text() == "[redacted]"
    assert str((tmp_path / "link").readlink()) == "/nowhere/[redacted]"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["[redacted]", "[redacted]-2", "closed", "link"]


def test_public_values_are_left_alone_in_the_one_folder(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    for name in ("project/config", "log"):
        (tmp_path / name).write_text(f"model-name-4 {CANARY}")

    scrub_folder(tmp_path, [CANARY, "model-name-4"], public=["model-name-4"], within=tmp_path / "project")

    assert (tmp_path / "project/config").read_text() == "model-name-4 [redacted]"
    assert (tmp_path / "log").read_text() == "[redacted] [redacted]"
    assert held_below(tmp_path, ["model-name-4", CANARY]) == ["model-name-4"]
