from __future__ import annotations

from pathlib import Path

import pytest

from tests.dispatch.scripted.agent import Agent


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(tmp_path / "workspace")
