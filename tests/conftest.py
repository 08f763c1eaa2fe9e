"""Prefect is isolated before its first import; its server starts only for tests that ask for it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

_scratch = tempfile.TemporaryDirectory(prefix="prefect-of-tests-")
for _name in [name for name in os.environ if name.startswith(("PREFECT_", "GIT_"))]:
    del os.environ[_name]
os.environ |= {"PREFECT_HOME": _scratch.name, "DO_NOT_TRACK": "1", "PREFECT_LOGGING_LEVEL": "CRITICAL"}

import hypothesis  # noqa: E402
import pytest  # noqa: E402

from skilltrial.data.store import Store  # noqa: E402
from tests.real_cli.lane import pytest_report_header, pytest_terminal_summary  # noqa: E402, F401  (hooks of pytest)

# a loaded machine is no failure of a property
hypothesis.settings.register_profile("any-machine", deadline=None)
hypothesis.settings.load_profile("any-machine")


@pytest.fixture(scope="session")
def prefect_server() -> Iterator[str]:
    """The API URL of a private Prefect server that this process's flows use."""
    from skilltrial.flows.runtime import prefect_for

    with prefect_for(Path(_scratch.name)) as ready:
        ready()
        yield os.environ["PREFECT_API_URL"]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store of this test."""
    return Store((tmp_path / "home").resolve(), (tmp_path / "work").resolve())
