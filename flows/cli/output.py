"""How commands speak: one JSON document, or text for a person; errors on stderr with what to do."""

from __future__ import annotations

import sys


def emit_json(value: object) -> None:
    """Print one JSON document, indented, keys in the order given."""
    import orjson

    sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS) + b"\n")
    sys.stdout.buffer.flush()


def complain(message: str) -> None:
    """Print a message on stderr."""
    print(message, file=sys.stderr)
