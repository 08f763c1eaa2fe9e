"""The private Prefect server ends with the process that started it, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

from skilltrial.flows.runtime import _free_port as unused_port
from tests.flows.building import Files, evals, script

HOLDER = """
import os, sys, time
from pathlib import Path
from skilltrial.flows.runtime import prefect_for
with prefect_for(Path(sys.argv[1])) as ready:
    ready()
    print(os.environ["PREFECT_API_URL"], flush=True)
    time.sleep(600)
"""


def answers(url: str) -> bool:
    """Whether anything listens there."""
    try:
        return httpx.get(f"{url}/health", trust_env=False, timeout=2).is_success
    except httpx.TransportError:
        return False


@pytest.mark.server
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_private_server_ends_with_its_process(tmp_path: Path, by: signal.Signals) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], env=environment, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        url = holder.stdout.readline().strip()
        assert answers(url)
        holder.send_signal(by)
        holder.wait()
        limit = time.monotonic() + 10
        while answers(url) and time.monotonic() < limit:
            time.sleep(0.1)
    assert not answers(url)


@pytest.mark.server
def test_second_server_starts_from_the_migrated_template_and_leaves_no_folder(tmp_path: Path) -> None:
    from skilltrial.flows.runtime import start_private_server

    first = start_private_server(tmp_path)
    first.wait_until_ready()
    first.stop()
    left = [path.name for path in (tmp_path / "private").iterdir()]
    assert len(left) == 1, left
    assert left[0].endswith(".db")
    second = start_private_server(tmp_path)
    assert (second.folder / "prefect.db").stat().st_size > 100_000  # before any migration could have run
    second.wait_until_ready()
    second.stop()


@pytest.mark.server
@pytest.mark.parametrize("content", [b"", b"\xff not a database" * 100])
def test_broken_template_is_replaced_instead_of_breaking_every_later_server(tmp_path: Path, content: bytes) -> None:
    from importlib.metadata import version

    from skilltrial.flows.runtime import start_private_server

    template = tmp_path / "private" / f"prefect-{version('prefect')}.db"
    template.parent.mkdir()
    template.write_bytes(content)
    server = start_private_server(tmp_path)
    server.wait_until_ready()
    made = httpx.post(f"{server.url}/flows/", json={"name": "any"}, trust_env=False, timeout=10)
    server.stop()
    assert made.status_code == 201, made.text
    assert template.stat().st_size > 100_000


def test_servers_of_the_operator_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from skilltrial.flows.runtime import prefect_for

    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    with prefect_for(tmp_path) as ready:
        ready()
        assert os.environ["PREFECT_API_URL"] == "http://127.0.0.1:9/api"
    assert list(tmp_path.iterdir()) == []


def test_active_profile_with_a_server_counts_as_the_operators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from skilltrial.flows.runtime import prefect_for

    home = tmp_path / "profile-home"
    home.mkdir()
    (home / "profiles.toml").write_text(
        'active = "mine"\n[profiles.mine]\nPREFECT_API_URL = "http://127.0.0.1:9/api"\n'
    )
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    monkeypatch.setenv("PREFECT_HOME", str(home))
    with prefect_for(tmp_path / "store") as ready:
        ready()
        assert "PREFECT_API_URL" not in os.environ
    assert not (tmp_path / "store").exists()


def test_operators_server_that_does_not_answer_is_named_without_a_traceback(tmp_path: Path) -> None:
    files = Files(tmp_path / "files").write(script({"say": "Done."}), evals("Finish."))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    kept |= {"SKILLTRIAL_HOME": str(tmp_path / "home"), "PREFECT_API_URL": f"http://127.0.0.1:{unused_port()}/api"}
    command = [str(Path(sys.executable).with_name("skilltrial")), "run", str(files.campaign)]
    run = subprocess.run(command, env=kept, capture_output=True, text=True, check=False, timeout=120)
    assert run.returncode == 1
    assert run.stderr.startswith("the Prefect server cannot be reached (")
    assert kept["PREFECT_API_URL"] in run.stderr
    assert len(run.stderr.splitlines()) == 1, run.stderr


@pytest.mark.server
def test_server_that_goes_away_costs_no_result_and_no_endless_wait(tmp_path: Path) -> None:
    from skilltrial.flows.runtime import start_private_server

    agent = script({"tool": {"name": "Bash", "input": {"command": "sleep 3"}}})
    files = Files(tmp_path / "files", {"permission_mode": "bypassPermissions"}).write(agent, evals("Finish."))
    server = start_private_server(tmp_path / "server")
    server.wait_until_ready()
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    # how often a client repeats a request; with the default it gives up after minutes
    kept |= {"PREFECT_API_URL": server.url, "PREFECT_CLIENT_MAX_RETRIES": "0"}
    kept |= {"SKILLTRIAL_HOME": str(tmp_path / "home"), "PREFECT_API_REQUEST_TIMEOUT": "2"}
    command = [str(Path(sys.executable).with_name("skilltrial")), "run", str(files.campaign)]
    with subprocess.Popen(command, env=kept, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as run:
        while not list((tmp_path / "home").glob("campaigns/*/cells/*/*/*/*/round-1")) and run.poll() is None:
            time.sleep(0.05)
        server.stop()
        _, said = run.communicate(timeout=120)
    assert run.returncode == 1
    assert said.startswith("the Prefect server cannot be reached (")
    assert len(said.splitlines()) == 1, said
    outcomes = [path.read_text() for path in (tmp_path / "home").glob("campaigns/*/cells/*/*/*/*/attempt.json")]
    assert ['"outcome": "completed"' in text for text in outcomes] == [True, True]
