"""The real CLI, and an agent of it in folders of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real_cli.agent import Agent
from tests.real_cli.lane import lane


@pytest.fixture(scope="session")
def claude() -> Path:
    """The executable of the real CLI; skips, or fails where it is required."""
    found = lane()
    if found.binary is None:
        if found.required:
            pytest.fail(f"SKILLTRIAL_REQUIRE_CLAUDE=1, but the real CLI is missing: {found.missing}", pytrace=False)
        pytest.skip(f"real-CLI lane: {found.missing}")
    return found.binary


@pytest.fixture
def agent(claude: Path, tmp_path: Path) -> Agent:
    """An agent of the real CLI with an empty repository to work in."""
    return Agent.make(claude, tmp_path)
