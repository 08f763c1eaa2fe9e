"""A store that flows find by their `home`."""

from __future__ import annotations

from pathlib import Path

import pytest

from skilltrial.data.store import Store
from tests.flows.building import Files


@pytest.fixture
def flow_store(tmp_path: Path) -> Store:
    """The store of `<tmp_path>/home`, as a flow opens it."""
    return Store.open(tmp_path / "home")


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """A campaign's files, not written yet."""
    return Files(tmp_path / "files")
