"""What dead runs left behind is found by its mark, and nothing else is touched."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from skilltrial.tasks.dispatch.marks import MARK_NAME, campaign_mark, new_mark
from skilltrial.tasks.dispatch.sweep import sweep


@pytest.fixture
def started() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def _sleeper(stack: ExitStack, mark: str) -> subprocess.Popen[bytes]:
    """A process that has begun to run with the mark in its environment, and is gone after the test."""
    process = subprocess.Popen(
        ["/bin/sh", "-c", "echo; exec sleep 300"], env={MARK_NAME: mark}, stdout=subprocess.PIPE, start_new_session=True
    )
    stack.enter_context(process)
    stack.callback(process.kill)
    assert process.stdout is not None
    process.stdout.readline()
    return process


def test_a_campaign_is_swept_whole_and_alone(started: ExitStack, tmp_path: Path) -> None:
    ours, theirs = tmp_path / "campaigns" / "ours", tmp_path / "campaigns" / "theirs"
    mine = [_sleeper(started, new_mark(ours)) for _ in range(2)]
    other = _sleeper(started, new_mark(theirs))

    assert sweep(campaign_mark(ours)) == 2

    assert [process.poll() is None for process in mine] == [False, False]
    assert other.poll() is None


def test_nothing_left_is_nothing_ended(tmp_path: Path) -> None:
    assert sweep(campaign_mark(tmp_path)) == 0


def test_an_empty_mark_is_refused() -> None:
    with pytest.raises(ValueError, match="every run"):
        sweep("")


def test_marks_are_opaque_and_tell_stores_apart(tmp_path: Path) -> None:
    mark = new_mark(tmp_path / "a" / "my-skill")

    assert len(mark) == 32
    assert set(mark) <= set("0123456789abcdef")
    assert mark.startswith(campaign_mark(tmp_path / "a" / "my-skill"))
    assert campaign_mark(tmp_path / "a" / "my-skill") != campaign_mark(tmp_path / "b" / "my-skill")
    assert new_mark(tmp_path) != new_mark(tmp_path)
