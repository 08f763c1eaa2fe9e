"""The deployment of prefect.yaml, on a real server, run by a real process worker."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import polars as pl
import pytest

PREFECT = str(Path(sys.executable).with_name("prefect"))
PROJECT = Path(__file__).parents[2]
LIMIT_S = 240.0


def free_port() -> int:
    """A loopback port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment of an operator whose Prefect server runs."""
    port = free_port()
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    environment |= {
        "PREFECT_HOME": str(tmp_path / "prefect"),
        "PREFECT_API_URL": f"http://127.0.0.1:{port}/api",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "SKILLTRIAL_HOME": str(tmp_path / "home"),
        "PWD": str(tmp_path),  # as where a program that changed folders runs the commands
    }
    command = [PREFECT, "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    server = start(command, environment, tmp_path / "server.log")
    try:
        wait_until(lambda: healthy(environment["PREFECT_API_URL"]), "the server to answer")
        yield environment
    finally:
        end(server)


def start(command: list[str], environment: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    """Start a process of the operator's, in a session of its own, with its output in a file."""
    with log.open("wb") as output:
        return subprocess.Popen(
            command, cwd=PROJECT, env=environment, stdout=output, stderr=output, start_new_session=True
        )


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process and its session."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(timeout=15)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def healthy(url: str) -> bool:
    """Whether the server answers."""
    try:
        return httpx.get(f"{url}/health", trust_env=False).is_success
    except httpx.TransportError:
        return False


def wait_until(condition, what: str) -> None:  # type: ignore[no-untyped-def]
    """Return once the condition holds."""
    limit = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < limit, f"waited {LIMIT_S:g} s for {what}"
        time.sleep(0.2)


@pytest.mark.server
def test_worker_runs_the_example_deployment(operator: dict[str, str], tmp_path: Path) -> None:
    def prefect(*arguments: str) -> None:
        command = [PREFECT, "--no-prompt", *arguments]
        done = subprocess.run(command, cwd=PROJECT, env=operator, capture_output=True, text=True)
        assert done.returncode == 0, f"{' '.join(arguments)}\n{done.stdout}\n{done.stderr}"

    prefect("work-pool", "create", "agents", "--type", "process")
    prefect("deploy", "--name", "example")
    prefect("deployment", "run", "campaign/example")
    worker = start([PREFECT, "worker", "start", "--pool", "agents"], operator, tmp_path / "worker.log")
    try:
        with httpx.Client(base_url=operator["PREFECT_API_URL"], trust_env=False) as client:

            def state() -> str:
                return str(client.post("/flow_runs/filter", json={}).json()[0]["state_type"])

            wait_until(lambda: state() in {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}, "the flow run to end")
            run = client.post("/flow_runs/filter", json={}).json()[0]
            tasks = client.post("/task_runs/filter", json={}).json()
            artifacts = {row["key"] for row in client.post("/artifacts/filter", json={}).json()}
    finally:
        end(worker)
    assert (run["state_type"], run["name"]) == ("COMPLETED", "campaign example"), (tmp_path / "worker.log").read_text()
    assert "dispatch spelling/with_skill/r1" in {task["name"] for task in tasks}
    assert {"example-verdict", "example-effects"} <= artifacts
    cells = pl.read_parquet(tmp_path / "home/tables/cells/campaign=example/*.parquet")
    assert (cells.height, cells["settled"].all()) == (20, True)
