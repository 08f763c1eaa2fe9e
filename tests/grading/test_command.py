"""Command checks: real commands in real copies of an environment."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skilltrial.data.evals import CommandCheck
from skilltrial.data.grading import Verdict
from skilltrial.tasks.dispatch import process
from skilltrial.tasks.grading.command import HeldOutMissing, check, file_name, matrix_cells
from skilltrial.tasks.grading.shell import CheckCancelled
from tests.grading.conftest import Ground
from tests.staging.building import tree_of, write_files


def run(ground: Ground, command: str, heldout: Path | None = None, **fields: Any) -> Verdict:
    assertion = CommandCheck(id="c", type="command_check", command=command, **fields)
    return check(assertion, heldout or ground.sources / "none", ground.attempt)


def output(ground: Ground, name: str = "output.stdout", assertion: str = "c") -> str:
    return (ground.attempt.grading / "commands" / assertion / name).read_text()


def living(pids: Path) -> list[int]:
    """Those of the processes listed in a file that still run; a dead one may wait for its new parent to notice."""
    found = []
    for pid in map(int, pids.read_text().split()):
        with contextlib.suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
    return found


def test_a_command_sees_the_environment_as_the_agent_left_it_with_its_repository(ground: Ground) -> None:
    write_files(ground.project, {"new.txt": "x\n"})

    verdict = run(ground, "git status --porcelain && ./run.sh && VAR=y sh -c 'echo $VAR'")

    assert verdict == Verdict(
        passed=True,
        evidence="exit code 0 as expected",
        artifacts=("grading/commands/c/output.stdout", "grading/commands/c/output.stderr"),
    )
    assert output(ground) == "?? new.txt\nrun\ny\n"


def test_another_exit_code_fails_and_shows_what_was_said(ground: Ground) -> None:
    assert run(ground, "echo out; echo oops >&2; exit 3").evidence == "exit code 3, expected 0: oops"
    assert run(ground, "echo out; exit 3").evidence == "exit code 3, expected 0: out"
    assert run(ground, "exit 3", expect_exit_code=3).passed is True
    assert run(ground, "kill -TERM $$").evidence == "ended by signal 15"


def test_the_pattern_is_searched_in_all_of_stdout(ground: Ground) -> None:
    assert run(ground, "echo out", expect_stdout="^out\n$").passed is True
    assert run(ground, "echo out", expect_stdout="err").evidence == (
        "exit code 0 as expected; stdout does not match /err/: out"
    )
    long = "head -c 300000 /dev/zero | tr '\\0' a; echo NEEDLE; head -c 300000 /dev/zero | tr '\\0' b"
    assert run(ground, long, expect_stdout="aNEEDLE\nb").passed is True
    assert "NEEDLE" not in output(ground)
    assert len(output(ground)) == 65536 + len("\n[… 534471 bytes left out …]\n")


def test_an_output_too_long_to_search_leaves_no_verdict_unless_its_end_matches(ground: Ground) -> None:
    endless = "head -c 9000000 /dev/zero; echo DONE"

    assert run(ground, endless, expect_stdout="DONE\n$").passed is True
    verdict = run(ground, endless, expect_stdout="MISSING")
    assert verdict.passed is None
    assert verdict.error == "stdout has 9000005 bytes, and /MISSING/ is not in the first 8388608 or at the end"


def test_a_command_that_takes_too_long_fails_with_all_its_processes_ended(ground: Ground, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    begun = time.monotonic()

    verdict = run(ground, f"setsid sleep 987 & echo $! >> {pids}; echo $$ >> {pids}; echo busy; sleep 987", timeout_s=2)

    assert verdict.passed is False
    assert verdict.evidence == "timed out after 2 s: busy"
    assert time.monotonic() - begun < 10
    assert living(pids) == []


def test_background_processes_neither_delay_a_check_nor_outlive_it(ground: Ground, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    begun = time.monotonic()

    verdict = run(ground, f"sleep 986 & echo $! >> {pids}; setsid sleep 986 & echo $! >> {pids}; echo started")

    assert verdict.passed is True
    assert time.monotonic() - begun < 10
    assert len(pids.read_text().split()) == 2
    assert living(pids) == []


def test_held_out_files_are_there_in_the_copy_and_never_in_the_environment(ground: Ground, tmp_path: Path) -> None:
    heldout = write_files(tmp_path / "heldout", {"tests/check.sh": "echo held", "tests/data/x": "1", "other": "no"})
    before = tree_of(ground.project)

    verdict = run(
        ground,
        "./tests/check.sh; ls tests/data; test -e other; echo $?",
        heldout,
        setup_files=["tests/check.sh", "./tests/data"],
    )

    assert verdict.passed is True
    assert output(ground) == "held\nx\n1\n"
    assert tree_of(ground.project) == before


@pytest.mark.parametrize("obstacle", ["file", "link out", "dangling link", "own version"])
def test_held_out_files_take_the_place_of_whatever_the_agent_put_there(
    ground: Ground, tmp_path: Path, obstacle: str
) -> None:
    heldout = write_files(tmp_path / "heldout", {"tests/check.sh": "echo held"})
    outside = tmp_path / "outside"
    outside.mkdir()
    tests = ground.project / "tests"
    if obstacle == "file":
        tests.write_text("x")
    elif obstacle == "own version":
        write_files(ground.project, {"tests/check.sh": "echo cheat"})
    else:
        tests.symlink_to(outside if obstacle == "link out" else "nowhere")

    run(ground, "sh tests/check.sh", heldout, setup_files=["tests/check.sh"])

    assert output(ground) == "held\n"
    assert list(outside.iterdir()) == []


def test_a_missing_held_out_file_is_an_error_not_a_failure(ground: Ground, tmp_path: Path) -> None:
    with pytest.raises(HeldOutMissing, match=r"held-out file tests/x is not in"):
        run(ground, "true", tmp_path, setup_files=["tests/x"])


def test_checks_and_matrix_cells_do_not_see_what_another_one_left(ground: Ground) -> None:
    command = "test ! -e left && touch left && touch $HOME/left && echo $A"

    assert run(ground, command).passed is True
    verdict = run(ground, command, matrix={"A": ["1", "2"]})

    assert verdict.evidence == "2 of 2 matrix cells passed"
    assert not (ground.project / "left").exists()
    assert output(ground, "2-A=2.stdout") == "2\n"


def test_the_matrix_overrides_the_environment_and_names_the_cells_that_failed(ground: Ground) -> None:
    verdict = run(ground, 'test "$A$B$C" = y2c', env={"A": "a", "C": "c"}, matrix={"B": ("1", "2"), "A": ("x", "y")})

    failed = "; ".join(f"{label} (exit code 1, expected 0)" for label in ("A=x,B=1", "A=x,B=2", "A=y,B=1"))
    assert verdict.passed is False
    assert verdict.evidence == f"1 of 4 matrix cells passed; {failed}"
    assert len(verdict.artifacts) == 8


def test_cells_stand_in_sorted_order_of_names_and_declared_order_of_values() -> None:
    assert matrix_cells({"b": ("2", "1"), "a": ("x",)}) == [{"a": "x", "b": "2"}, {"a": "x", "b": "1"}]
    assert matrix_cells({}) == [{}]


def test_a_check_gets_no_variable_but_the_allowed_ones(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "canary-secret")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("LANG", "C.UTF-8")

    run(ground, "env | cut -d= -f1 | sort; echo $LANG; git rev-parse --is-inside-work-tree", env={"MINE": "1"})

    names = output(ground).splitlines()
    allowed = {"PATH", "LANG", "LC_ALL", "TZ", "HOME", "TMPDIR", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES"}
    assert set(names[:-2]) <= allowed | {"MINE", "CHECK_RUN", "PWD", "OLDPWD", "SHLVL", "_"}
    assert "MINE" in names
    assert names[-2:] == ["C.UTF-8", "true"]


def test_stdin_is_empty_and_a_repository_that_is_gone_is_not_looked_for_above(ground: Ground) -> None:
    (ground.project / ".git").rename(ground.sources / "gone")
    (ground.attempt.root / ".git").mkdir()

    verdict = run(ground, "cat; git rev-parse --show-toplevel")

    assert verdict.passed is False
    assert "not a git repository" in verdict.evidence


def test_odd_files_of_the_environment_do_not_stop_a_check(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ground.project)
    os.mkfifo("pipe")
    (ground.project / "dangling").symlink_to("nowhere")
    (ground.project / "loop").symlink_to(".")
    closed = ground.project / "closed"
    closed.mkdir()
    (closed / "f").write_text("x")
    closed.chmod(0o555)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        verdict = run(ground, "test -L dangling && test -L loop && cat closed/f")

    assert verdict.passed is True
    assert verdict.evidence == "exit code 0 as expected [special_files_left_out]"


def test_nothing_of_a_check_stays_but_its_output(ground: Ground) -> None:
    run(ground, "mkdir -p a/b && chmod 500 a && touch $TMPDIR/x; pwd; echo $TMPDIR")

    assert [path.name for path in ground.attempt.grading.iterdir()] == ["commands"]
    assert [Path(line).exists() for line in output(ground).splitlines()] == [False, False]


@given(st.lists(st.text(min_size=1, max_size=300), min_size=2, max_size=8, unique=True))
def test_every_assertion_gets_a_file_name_of_its_own(texts: list[str]) -> None:
    names = [file_name(text) for text in texts]

    assert len(set(names)) == len(texts)
    assert all(0 < len(name) <= 100 and "/" not in name and not name.startswith(".") for name in names)


HOLDER = """
import os, sys
from pathlib import Path
from skilltrial.tasks.grading.shell import run_shell
run_shell(sys.argv[1], cwd=Path.cwd(), env={"PATH": os.environ["PATH"]}, timeout_s=600)
"""


def test_nothing_of_a_command_survives_the_process_that_wanted_it(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    command = f"(setsid sleep 600 & echo $! >> {pids}); echo $$ >> {pids}; sleep 600"
    with subprocess.Popen([sys.executable, "-c", HOLDER, command], cwd=tmp_path) as holder:
        limit = time.monotonic() + 20
        while (not pids.exists() or pids.read_text().count("\n") < 2) and time.monotonic() < limit:
            time.sleep(0.02)
        assert len(living(pids)) == 2
        holder.kill()
    limit = time.monotonic() + 10
    while living(pids) and time.monotonic() < limit:
        time.sleep(0.02)
    assert living(pids) == []


def test_ending_everything_cancels_a_check_at_once_and_later_ones_do_not_start(ground: Ground) -> None:
    assertion = CommandCheck(id="c", type="command_check", command="echo begun > ../begun; sleep 600", timeout_s=600)
    ticket = process.ticket()
    with ThreadPoolExecutor(1) as pool:
        cancelled = pool.submit(check, assertion, ground.sources / "none", ground.attempt, ticket=ticket)
        limit = time.monotonic() + 20
        while not list(ground.attempt.grading.glob(".work-*/begun")) and time.monotonic() < limit:
            time.sleep(0.02)
        process.end_all()
        with pytest.raises(CheckCancelled):
            cancelled.result(timeout=20)
    with pytest.raises(CheckCancelled):
        check(assertion, ground.sources / "none", ground.attempt, ticket=ticket)
    assert list(ground.attempt.grading.glob(".work-*")) == []
