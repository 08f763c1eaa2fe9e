"""Regular expressions of assertions, in the dialect of Rust's `regex` crate.

`evals.json` files are written for that dialect: no look-around, no back-references, and a search takes time
linear in the text, so that no pattern can hang a grading. Polars brings the very same engine.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from polars.exceptions import ComputeError


def problem_of(pattern: str) -> str | None:
    """Why a pattern cannot be used, as one line; null: it can."""
    try:
        search(pattern, "")
    except ComputeError as error:
        return _one_line(str(error))
    return None


def search(pattern: str, text: str) -> bool:
    """Whether the pattern matches anywhere in the text. A pattern with a problem raises polars' `ComputeError`."""
    return matches(pattern, [text])[0]


def matches(pattern: str, texts: Sequence[str]) -> list[bool]:
    """For each text, whether the pattern matches anywhere in it."""
    return pl.Series(texts, dtype=pl.String).str.contains(pattern, literal=False, strict=True).to_list()


def _one_line(message: str) -> str:
    """The reason alone: the engine draws the place under the pattern, and polars adds its own expression."""
    reasons = [line for line in message.splitlines() if line.startswith("error: ")]
    text = reasons[-1].removeprefix("error: ") if reasons else message.splitlines()[0].removeprefix("regex error: ")
    return text.rstrip(".")
