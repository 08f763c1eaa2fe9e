"""Prefect, made ready before it is first imported: quiet, private, and gone when we are.

With `PREFECT_API_URL` set (or an active profile that names a server) that server is used. Otherwise a
private one is started for this process. Prefect's own temporary server outlives a killed parent
(measured with 3.9.1), so ours runs below a guardian that ends it as soon as this process is gone.

A private server has a database of its own, copied from a template that is made once for each version of
Prefect: a kill in the middle of a migration would leave a database that no server starts on (measured),
and two campaigns at once would wait for each other's locks. What it showed goes with it; the store stays.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skilltrial.data.errors import Terminal, Transient

_START_LIMIT_S: Final = 120.0
_DATABASE: Final = "prefect.db"

CLIENT_SETTINGS: Final = {
    "DO_NOT_TRACK": "1",
    "PREFECT_LOGGING_LEVEL": "CRITICAL",  # what matters is shown by the command itself
    "PREFECT_LOGGING_INTERNAL_LEVEL": "CRITICAL",
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
}
"""What a client process is given unless the operator set it."""

SERVER_SETTINGS: Final = {
    "DO_NOT_TRACK": "1",
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_LOGGING_LEVEL": "ERROR",
    "PREFECT_LOGGING_LEVEL": "ERROR",
    "PREFECT_SERVER_UI_ENABLED": "false",
    "PREFECT_SERVER_REGISTER_BLOCKS_ON_START": "false",
    # one transaction per event is the default: bursts of cached cells then lose task runs and lock SQLite
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_READ_BATCH_SIZE": "100",
    "PREFECT_SERVER_SERVICES_TASK_RUN_RECORDER_FLUSH_INTERVAL": "1",
    "PREFECT_SERVER_SERVICES_EVENT_PERSISTER_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_TRIGGERS_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_SCHEDULER_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_LATE_RUNS_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_PAUSE_EXPIRATIONS_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_FOREMAN_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_CANCELLATION_CLEANUP_ENABLED": "false",
    "PREFECT_SERVER_SERVICES_REPOSSESSOR_ENABLED": "false",
}
"""What the private server runs with: it lives for one command, so nothing of it need run by the clock."""

# Ends its child when the pipe on stdin closes, which the kernel does for us however we end.
_GUARDIAN: Final = """
import os, signal, subprocess, sys, threading
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
def end_with_parent():
    while os.read(0, 4096):
        pass
    child.terminate()
    try:
        child.wait(5)
    except subprocess.TimeoutExpired:
        child.kill()
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, lambda *_: child.terminate())
threading.Thread(target=end_with_parent, daemon=True).start()
sys.exit(child.wait() & 255)
"""


class ServerFailed(Terminal):
    """The private Prefect server did not come up."""

    def __init__(self, url: str, detail: str) -> None:
        self.url, self.detail = url, detail
        super().__init__(url, detail)

    def __str__(self) -> str:
        return f"the private Prefect server at {self.url} did not start: {self.detail}"


class ServerLost(Transient):
    """The Prefect server could not be reached, at the start or any more."""

    def __init__(self, detail: str) -> None:
        self.detail = detail
        super().__init__(detail)

    def __str__(self) -> str:
        return (
            f"the Prefect server cannot be reached ({self.detail}); what was finished is kept. When it answers, or "
            "without PREFECT_API_URL, run the same command again to go on"
        )


@contextlib.contextmanager
def server_needed() -> Iterator[None]:
    """What happens inside ends in `ServerLost` when the server does not answer."""
    import httpx

    try:
        yield
    except httpx.TransportError as error:
        raise ServerLost(str(error)) from error
    except RuntimeError as error:
        if "Failed to reach API" not in str(error):  # prefect 3.9.1 has no type of its own for it
            raise
        raise ServerLost(str(error)) from error


@dataclass(slots=True)
class PrivateServer:
    """A Prefect server of this process alone."""

    url: str
    folder: Path  # its database and log
    template: Path  # the migrated database that later servers start from; made if it is not there
    _guardian: subprocess.Popen[bytes]

    @property
    def log(self) -> Path:
        """What the server printed."""
        return self.folder / "server.log"

    def wait_until_ready(self) -> None:
        """Return once the server answers; `ServerFailed` when it ends or two minutes pass."""
        import httpx

        limit = time.monotonic() + _START_LIMIT_S
        with httpx.Client(timeout=5.0, trust_env=False) as client:
            while time.monotonic() < limit:
                if self._guardian.poll() is not None:
                    raise ServerFailed(self.url, self._tail())
                with contextlib.suppress(httpx.TransportError):
                    if client.get(f"{self.url}/health").is_success:
                        _keep_template(self.folder / _DATABASE, self.template)
                        return
                time.sleep(0.05)
        raise ServerFailed(self.url, f"no answer within {_START_LIMIT_S:g} s; {self._tail()}")

    def stop(self) -> None:
        """End the server and drop its database."""
        stdin = self._guardian.stdin
        if stdin is not None:
            stdin.close()
        try:
            self._guardian.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._guardian.kill()
            self._guardian.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _tail(self) -> str:
        text = self.log.read_text("utf-8", errors="replace").strip() if self.log.exists() else ""
        return text[-2000:] or "it wrote nothing"


@contextlib.contextmanager
def prefect_for(home: Path) -> Iterator[Callable[[], None]]:
    """Prefect for one command: the operator's server, or a private one that starts in the background.

    Yields a function to call before any flow runs: it returns once the server answers. `home` is the store's
    home; the private server keeps its database below it, unless `PREFECT_HOME` is set.
    """
    for name, value in CLIENT_SETTINGS.items():
        os.environ.setdefault(name, value)
    if _has_own_server():
        yield lambda: None
        return
    os.environ.setdefault("PREFECT_HOME", str(home / "prefect"))
    server = start_private_server(Path(os.environ["PREFECT_HOME"]))

    with contextlib.ExitStack() as undo:
        undo.callback(server.stop)

        def ready() -> None:
            server.wait_until_ready()
            os.environ["PREFECT_API_URL"] = server.url
            undo.callback(os.environ.pop, "PREFECT_API_URL", None)
            if "prefect" in sys.modules:  # it read its settings when it was imported, before there was a URL
                from prefect.settings import PREFECT_API_URL, temporary_settings

                undo.enter_context(temporary_settings({PREFECT_API_URL: server.url}))

        yield ready


def start_private_server(prefect_home: Path) -> PrivateServer:
    """Start a server on a free loopback port; it is not ready yet."""
    from importlib.metadata import version

    private = prefect_home / "private"
    _remove_abandoned(private)
    folder, template = private / f"{os.getpid()}-{uuid.uuid4().hex[:8]}", private / f"prefect-{version('prefect')}.db"
    folder.mkdir(parents=True)
    migrated = _from_template(template, folder / _DATABASE)
    port = _free_port()
    environment = {
        **os.environ,
        **SERVER_SETTINGS,
        "PREFECT_HOME": str(folder),
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{folder / _DATABASE}",
        "PREFECT_SERVER_DATABASE_MIGRATE_ON_START": "false" if migrated else "true",
        # what Prefect sets for a temporary server of its own
        "PREFECT__SERVER_EPHEMERAL": "1",
        "PREFECT__SERVER_FINAL": "1",
    }
    environment.pop("PREFECT_API_URL", None)
    command = [sys.executable, "-m", "uvicorn", "--factory", "prefect.server.api.server:create_app"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--log-level", "error", "--lifespan", "on"]
    with (folder / "server.log").open("wb") as output:
        guardian = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _GUARDIAN, *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,  # a Ctrl-C at the terminal ends the flow first, then the server
        )
    return PrivateServer(f"http://127.0.0.1:{port}/api", folder, template, guardian)


def _from_template(template: Path, database: Path) -> bool:
    """Copy the template, if there is a sound one; a broken one is removed, so that the next database replaces it."""
    if not template.is_file():
        return False
    shutil.copyfile(template, database)
    try:
        with contextlib.closing(sqlite3.connect(database)) as copy:
            checks = {"PRAGMA quick_check": ("ok",), "SELECT count(*) FROM alembic_version": (1,)}
            sound = all(copy.execute(query).fetchone() == expected for query, expected in checks.items())
    except sqlite3.Error:
        sound = False
    if not sound:
        template.unlink(missing_ok=True)
        database.unlink()
    return sound


def _keep_template(database: Path, template: Path) -> None:
    """Copy a live, freshly migrated database to where later servers take theirs from, unless one is there."""
    if template.is_file():
        return
    scratch = template.with_name(f".{template.name}.{uuid.uuid4().hex[:8]}")
    with contextlib.closing(sqlite3.connect(database)) as source, contextlib.closing(sqlite3.connect(scratch)) as copy:
        source.backup(copy)
    scratch.replace(template)


def _remove_abandoned(private: Path) -> None:
    """Remove the folders of servers whose process was killed."""
    import psutil

    for folder in private.glob("*-*/"):
        owner = folder.name.partition("-")[0]
        if owner.isdigit() and not psutil.pid_exists(int(owner)):
            shutil.rmtree(folder, ignore_errors=True)


def _has_own_server() -> bool:
    """Whether the operator's environment, or active profile, names a Prefect API."""
    if os.environ.get("PREFECT_API_URL"):
        return True
    home = Path(os.environ.get("PREFECT_HOME", "~/.prefect")).expanduser()
    profiles = home / "profiles.toml"
    if not profiles.is_file():
        return False
    import tomllib

    try:
        content = tomllib.loads(profiles.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):
        return False
    active = os.environ.get("PREFECT_PROFILE") or content.get("active")
    profile = content.get("profiles", {}).get(active, {})
    return bool(profile.get("PREFECT_API_URL"))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
