"""A sink for looking at rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class MemorySink:
    """Keeps every row, by table."""

    def __init__(self) -> None:
        self.rows: dict[str, list[dict[str, Any]]] = {}

    def add(self, table: str, row: Mapping[str, Any]) -> None:
        """Take one row."""
        self.rows.setdefault(table, []).append(dict(row))
