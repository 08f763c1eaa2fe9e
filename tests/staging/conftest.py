"""A campaign folder for the tests of staging."""

from __future__ import annotations

import pytest

from skilltrial.data.store import CampaignFolder, Store
from tests.staging.building import campaign_of


@pytest.fixture
def folder(store: Store) -> CampaignFolder:
    """A campaign's folder, there already."""
    return campaign_of(store)
