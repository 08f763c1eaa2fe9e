"""`skilltrial run` before anything runs."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from skilltrial.data.errors import PreflightRefused
from skilltrial.flows.cli import app
from tests.planning.building import evals, skill


def test_what_cannot_work_is_refused_before_anybody_is_asked_for_money(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    evals(skill(tmp_path / "tables"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # no agent CLI is there
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    with pytest.raises(PreflightRefused, match="Claude Code was not found") as refused:
        app(["run", str(tmp_path / "tables"), "--home", str(tmp_path / "home")])
    assert refused.value.exit_code == 4
    assert capsys.readouterr().err == ""
