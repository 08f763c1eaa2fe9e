"""Names that people chose, turned into names of files and folders."""

from __future__ import annotations

import re
import unicodedata


def slug_of(text: str, *, punctuation: str = "._") -> str:
    """Lower-case ASCII letters, digits, single hyphens and the given punctuation; "" when nothing is left.

    `Zoom-MCP/White board` becomes `zoom-mcp-white-board`.
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    hyphenated = re.sub(rf"[^a-z0-9{re.escape(punctuation)}]+", "-", plain)
    return hyphenated.strip("-" + punctuation)[:100].rstrip("-" + punctuation)
