"""Small stores with real records and fragments."""

from __future__ import annotations

import pytest

from skilltrial.data.store import Store
from tests.analysis.trials import Trial, make_plan


@pytest.fixture
def trial(store: Store) -> Trial:
    """An empty campaign: two evals of two assertions, two arms, two repetitions."""
    return Trial(make_plan(), store)
