"""The one family of exceptions, told apart by what a retry could do about them.

`Terminal`: doing the same again fails the same way. `Transient`: worth another try.
Every class keeps its constructor's arguments in `args`, so that an error survives pickling
(Prefect ships exceptions between processes), and builds its message in `__str__`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar


class SkilltrialError(Exception):
    """Anything that skilltrial reports to the person at the terminal."""

    exit_code: ClassVar[int] = 1


class Terminal(SkilltrialError):
    """Another try would fail the same way: somebody has to change something first."""


class Transient(SkilltrialError):
    """Another try may succeed without any change."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of one written file: where it stands, what is there, and what would be right."""

    file: str
    where: str  # a JSON path such as `evals[2].files[0]`, or "" for the file itself
    value: object
    message: str
    allowed: str = ""

    def __str__(self) -> str:
        place = f"{self.file}: {self.where}" if self.where else self.file
        shown = "" if self.value is None else f" (found {_shorten(self.value)})"
        hint = f"; allowed: {self.allowed}" if self.allowed else ""
        return f"{place}: {self.message}{shown}{hint}"


class InvalidInput(Terminal):
    """A file that a person wrote cannot be used; carries every problem found, not just the first."""

    exit_code: ClassVar[int] = 2

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


class UnknownName(Terminal):
    """A name was given that does not exist; lists the ones that do."""

    exit_code: ClassVar[int] = 2

    def __init__(self, kind: str, given: str, known: Iterable[str]) -> None:
        self.kind, self.given, self.known = kind, given, tuple(known)
        super().__init__(kind, given, self.known)

    def __str__(self) -> str:
        return f"there is no {self.kind} {self.given!r}; known: {', '.join(self.known) or '(none)'}"


class NotBuiltYet(Terminal):
    """A valid request that needs a part of skilltrial which does not exist yet."""

    exit_code: ClassVar[int] = 2

    def __init__(self, what: str, needs: str) -> None:
        self.what, self.needs = what, needs
        super().__init__(what, needs)

    def __str__(self) -> str:
        return f"{self.what} needs {self.needs}, not yet built"


class GitFailed(Terminal):
    """A git command that a stage depends on did not succeed."""

    def __init__(self, arguments: tuple[str, ...], folder: str, exit_code: int, stderr: str) -> None:
        self.arguments, self.folder, self.status, self.stderr = arguments, folder, exit_code, stderr
        super().__init__(arguments, folder, exit_code, stderr)

    def __str__(self) -> str:
        return f"git {' '.join(self.arguments)} failed in {self.folder} ({self.status}): {self.stderr.strip()}"


class PreflightRefused(Terminal):
    """The machine or the templates are not fit for the campaign; nothing was dispatched."""

    exit_code: ClassVar[int] = 4

    def __init__(self, campaign: str, reasons: Iterable[str]) -> None:
        self.campaign, self.reasons = campaign, tuple(reasons)
        super().__init__(campaign, self.reasons)

    def __str__(self) -> str:
        listed = "\n".join(f"  - {reason}" for reason in self.reasons)
        return f"campaign {self.campaign!r} was refused before anything was dispatched:\n{listed}"


class StoreConflict(Terminal):
    """Two uses of one place in the store exclude each other."""


class AttemptUnsettled(Transient):
    """An attempt ended in an outcome that leaves its cell to be tried again."""

    def __init__(self, cell: str, attempt: int, outcome: str, reason: str, folder: str) -> None:
        self.cell, self.attempt, self.outcome, self.reason, self.folder = (
            cell,
            attempt,
            outcome,
            reason,
            folder,
        )
        super().__init__(cell, attempt, outcome, reason, folder)

    def __str__(self) -> str:
        return f"{self.cell}: attempt {self.attempt} ended as {self.outcome} ({self.reason}); see {self.folder}"


class CampaignStopped(Terminal):
    """An outcome that every further cell would share (bad key, no credit, no CLI) ended the dispatch."""

    exit_code: ClassVar[int] = 3

    def __init__(self, cell: str, outcome: str, reason: str) -> None:
        self.cell, self.outcome, self.reason = cell, outcome, reason
        super().__init__(cell, outcome, reason)

    def __str__(self) -> str:
        return f"dispatch stopped after {self.cell}: {self.outcome} ({self.reason}); no further cell was started"


def _shorten(value: object, limit: int = 120) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
