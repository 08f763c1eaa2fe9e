"""A campaign that is killed again and again ends in the tables of one that was left alone."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import psutil
import pytest

from skilltrial.data.store import Store
from skilltrial.data.tables import TABLES
from tests.flows.building import WRITE, Files, evals, script

KILLS = 10
SKILLTRIAL = str(Path(sys.executable).with_name("skilltrial"))
VARYING = {"attempt", "session_id", "session_ids", "tool_use_id", "message_id", "folder", "worker", "duration_ms"}
VARYING |= {"api_duration_ms", "leftover_processes", "bytes", "longest_line_bytes"}
AGENT = script(
    {"say": "Looking around.", "tool": {"name": "Bash", "input": {"command": "sleep 0.2; ls"}}},
    {**WRITE, "when": {"skill": "finisher"}},
    {"tool": {"name": "Read", "input": {"file_path": "{cwd}/done.txt"}}},
    {"say": "Finished."},
)


def environment(home: Path) -> dict[str, str]:
    """The operator's environment with a mark by which this test finds what is left of it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    return kept | {"SKILLTRIAL_HOME": str(home), "CRASH_TEST": str(home)}


def living(home: Path) -> list[str]:
    """Command lines of the processes that came from runs in this home."""
    found = []
    for process in psutil.process_iter():
        try:
            inherited = process.environ()
            ours = inherited.get("CRASH_TEST") == str(home) or inherited.get("HOME", "").startswith(str(home))
            if ours and process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return found


def gone(home: Path, limit_s: float = 15.0) -> list[str]:
    """What is still alive once everything has had time to end."""
    end = time.monotonic() + limit_s
    while (left := living(home)) and time.monotonic() < end:
        time.sleep(0.1)
    return left


def attempts(store: Store) -> int:
    """How many attempts were begun."""
    return len(list((store.home / "campaigns/small/cells").glob("*/*/*/attempt-*")))


def wait_for_attempts(store: Store, number: int, process: subprocess.Popen[bytes]) -> None:
    """Return once that many attempts were begun, or the run has ended."""
    while attempts(store) < number and process.poll() is None:
        time.sleep(0.01)


def comparable(store: Store, name: str) -> pl.DataFrame:
    """A table without what differs between any two runs: time, identifiers and folders."""
    frame = pl.read_parquet(store.tables / name / "**/*.parquet")
    kept = [column.name for column in TABLES[name].columns if column.name not in VARYING and column.unit != "UTC"]
    frame = frame.select(kept).with_columns(
        pl.col(pl.String).str.replace_all(re.escape(str(store.workspaces)) + "/[0-9a-f]+", "<workspace>")
    )
    sizes = [name for name in frame.columns if name.endswith("_bytes")]  # of texts that hold such a folder's name
    return frame.drop(sizes).sort(pl.all())


@pytest.mark.server
def test_killed_at_random_moments_the_tables_equal_those_of_an_undisturbed_campaign(tmp_path: Path) -> None:
    files = Files(tmp_path / "files", {"repetitions": 2, "jobs": 2})
    files.write(AGENT, evals(*(f"Finish number {number}." for number in range(1, 6))))
    command = [SKILLTRIAL, "run", str(files.campaign)]
    calm, killed = Store.open(tmp_path / "calm"), Store.open(tmp_path / "killed")
    subprocess.run(command, env=environment(calm.home), check=True, capture_output=True)

    chance = random.Random(20)
    for number in range(KILLS):
        process = subprocess.Popen(
            command, env=environment(killed.home), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        if number % 3:
            wait_for_attempts(killed, attempts(killed) + chance.randint(1, 3), process)
            time.sleep(chance.uniform(0.0, 0.4))
        else:
            time.sleep(chance.uniform(0.1, 4.0))  # while it starts, plans or stages
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, "the run had ended before it was killed"
        assert gone(killed.home) == []

    subprocess.run(command, env=environment(killed.home), check=True, capture_output=True)
    assert gone(killed.home) == []
    assert gone(calm.home) == []
    assert comparable(calm, "cells").height == 20
    for name in TABLES:
        expected, found = comparable(calm, name), comparable(killed, name)
        assert found.equals(expected), f"table {name}:\n{found}\n{expected}"


@pytest.mark.server
@pytest.mark.parametrize("stage", ["dispatch", "grade"])
def test_ctrl_c_ends_agents_and_checks_within_seconds_and_says_what_is_kept(tmp_path: Path, stage: str) -> None:
    slow = {"tool": {"name": "Bash", "input": {"command": "sleep 300 > begun"}}}
    check = {"id": "slow", "type": "command_check", "command": "(setsid sleep 300 &); sleep 300", "timeout_s": 300}
    files = Files(tmp_path / "files", {"repetitions": 2, "jobs": 2, "permission_mode": "bypassPermissions"})
    files.write(script(slow if stage == "dispatch" else WRITE), evals("Finish.", assertions=[check]))
    store = Store.open(tmp_path / "home")
    begun = (
        "workspaces/*/project/begun" if stage == "dispatch" else "campaigns/small/cells/*/*/*/*/grading/.work-*/home"
    )
    command = [SKILLTRIAL, "run", str(files.campaign)]
    with subprocess.Popen(
        command, env=environment(store.home), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as run:
        while not list(store.home.glob(begun)) and run.poll() is None:
            time.sleep(0.05)
        run.send_signal(signal.SIGINT)
        interrupted = time.monotonic()
        _, said = run.communicate(timeout=60)
    assert time.monotonic() - interrupted < 15  # about two on an idle machine
    assert (run.returncode, said.decode()) == (
        130,
        "interrupted; what was finished is kept, run the same command again to go on\n",
    )
    assert gone(store.home) == []
