"""The mark that every process of an attempt carries in its environment, by which it is found again.

It says nothing of a trial: the agent can see it. Equal beginnings tell that attempts belong to one campaign.
"""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path
from typing import Final

MARK_NAME: Final = "PROC_GROUP_ID"


def campaign_mark(campaign_folder: Path) -> str:
    """What the marks of all attempts of the campaign begin with; two stores never share it."""
    return hashlib.sha256(str(campaign_folder.resolve()).encode()).hexdigest()[:16]


def new_mark(campaign_folder: Path) -> str:
    """A mark for one attempt: 32 hex digits."""
    return campaign_mark(campaign_folder) + secrets.token_hex(8)
