"""Finding an agent CLI and asking its version, with executables of our own."""

from __future__ import annotations

import os
import select
import sys
from pathlib import Path

import pytest

from skilltrial.data.spec import CampaignSpec
from skilltrial.descriptors.loading import descriptor
from skilltrial.descriptors.model import HarnessDescriptor
from skilltrial.tasks.planning.harness import find_binary, input_problems, planned_harness, probe_version
from tests.planning.building import write

CLAUDE = descriptor("claude-code")


def executable(path: Path, body: str) -> Path:
    write(path, f"#!/bin/sh\n{body}\n").chmod(0o755)
    return path


def test_the_given_executable_comes_before_the_one_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_path = executable(tmp_path / "bin/claude", "true")
    given = executable(tmp_path / "mine/agent", "true")
    monkeypatch.setenv("PATH", str(on_path.parent))
    assert find_binary(None, CLAUDE) == str(on_path)
    assert find_binary(given, CLAUDE) == str(given)
    assert find_binary(tmp_path / "gone", CLAUDE) is None
    assert find_binary(write(tmp_path / "plain", ""), CLAUDE) is None


def test_a_link_on_path_stays_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable(tmp_path / "lib/cli.sh", "true")
    (tmp_path / "claude").symlink_to("lib/cli.sh")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_binary(None, CLAUDE) == str(tmp_path / "claude")


def test_the_interpreter_is_a_slot() -> None:
    assert find_binary(None, descriptor("scripted")) == os.path.abspath(sys.executable)  # noqa: PTH100


def test_a_missing_cli_has_neither_path_nor_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    found = planned_harness(CampaignSpec(skill=Path("/x")), CLAUDE)
    assert (found.binary, found.cli_version) == (None, None)
    assert HarnessDescriptor.model_validate(found.descriptor) == CLAUDE


@pytest.mark.parametrize(
    ("body", "version"),
    [
        ("echo '2.1.332 (Claude Code)'", "2.1.332"),
        ("echo 'warning: x'; echo '2.1.332 (Claude Code)'", "2.1.332"),
        ("echo none", None),
        ("echo 2.1.332; exit 1", None),
        ("echo 2.1.332 >&2", None),
    ],
)
def test_the_version_is_what_a_successful_run_prints(tmp_path: Path, body: str, version: str | None) -> None:
    assert probe_version(str(executable(tmp_path / "claude", body)), CLAUDE) == version


def test_a_file_that_cannot_be_started_tells_no_version(tmp_path: Path) -> None:
    path = write(tmp_path / "claude", "not a program")
    path.chmod(0o755)
    assert probe_version(str(path), CLAUDE) is None


def test_a_cli_that_does_not_end_is_ended_with_its_children(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with open(os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as pipe:  # noqa: PTH123
        body = f"(echo started; exec sleep 600) > {tmp_path}/pipe & echo 2.1.332; wait"
        assert probe_version(str(executable(tmp_path / "claude", body)), CLAUDE, limit_s=3.0) is None
        assert pipe.read() == b"started\n"
        # the end of the pipe comes when nobody can write there any more
        assert select.select([pipe], [], [], 30.0)[0] == [pipe]
        assert pipe.read() == b""


def test_the_probe_sees_nothing_of_the_operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", "/operator")
    path = executable(tmp_path / "claude", f"env > {tmp_path}/seen; echo 1.2.3")
    assert probe_version(str(path), CLAUDE) == "1.2.3"
    seen = dict(line.split("=", 1) for line in (tmp_path / "seen").read_text().splitlines() if "=" in line)
    assert "ANTHROPIC_API_KEY" not in seen
    assert seen["HOME"] == seen["CLAUDE_CONFIG_DIR"] != os.environ["HOME"]
    assert not Path(seen["HOME"]).exists()


def test_inputs_must_be_known_given_and_files(tmp_path: Path) -> None:
    scripted = descriptor("scripted")
    spec = CampaignSpec(skill=tmp_path, harness_inputs={"other": tmp_path})
    found = [(problem.where, problem.allowed) for problem in input_problems(spec, scripted, "campaign")]
    assert found == [("harness_inputs.other", "script"), ("harness_inputs.script", "")]
    spec = CampaignSpec(skill=tmp_path, harness_inputs={"script": tmp_path})
    assert [problem.message for problem in input_problems(spec, scripted, "campaign")] == ["is not a file"]
