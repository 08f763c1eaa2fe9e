"""Every table, declared once: the single source of its Parquet schema, its documentation and its checks.

`TABLES` maps each table's name to its declaration, in the order in which a reader meets them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from skilltrial.data.tables.cells import CELLS, ROUNDS
from skilltrial.data.tables.columns import Column, Table
from skilltrial.data.tables.grading import ASSERTIONS, DIFF_FILES
from skilltrial.data.tables.session import (
    DENIALS,
    MESSAGES,
    PARSE_COVERAGE,
    SESSION_SURFACE,
    TOOL_CALLS,
    USAGE,
)

TABLES: Final[Mapping[str, Table]] = MappingProxyType(
    {
        table.name: table
        for table in (
            CELLS,
            ROUNDS,
            TOOL_CALLS,
            DENIALS,
            USAGE,
            SESSION_SURFACE,
            MESSAGES,
            ASSERTIONS,
            DIFF_FILES,
            PARSE_COVERAGE,
        )
    }
)

__all__ = ["TABLES", "Column", "Table"]
