"""Was the skill under test there, and was it used? Read from what a session reports of itself."""

from __future__ import annotations

from dataclasses import dataclass

from skilltrial.data.outcomes import Outcome
from skilltrial.tasks.ingest.records import StreamSummary


@dataclass(frozen=True, slots=True)
class Activation:
    """What a session tells of one skill. Null: the session does not tell.

    `triggered` is null, not false, where the skill could not have been: it was not listed as a skill, or the
    run did not end by itself. Only a finished run shows that a skill was not wanted.
    """

    skill: str
    registered_as_skill: bool | None
    registered_as_command: bool | None
    triggered: bool | None
    calls: tuple[str, ...]  # names given to the skill tool, in order
    siblings: tuple[str, ...]  # other copies of the skill under test that the session lists
    triggered_sibling: str | None  # the first of them that was used instead

    @property
    def contaminated(self) -> bool:
        """Whether copies of other runs or conditions were in sight."""
        return bool(self.siblings)

    @property
    def valid(self) -> bool | None:
        """Whether the session can tell anything of the skill; null: it does not list its skills."""
        if self.registered_as_skill is None:
            return None
        return self.registered_as_skill and not self.contaminated


def activation(
    summary: StreamSummary, skill: str, *, outcome: Outcome | None = None, copies: tuple[str, ...] = ()
) -> Activation:
    """What a session's summary says of `skill`, by the name under which the CLI lists it.

    `outcome` is how the run ended; null: the stream's own word on its end is taken. `copies` are names of the
    same skill in other conditions or runs; without them, names that differ from it in their last part alone
    count (`report-x1` and `report-x2`).
    """
    listed = summary.skills
    commands = summary.surfaces.get("command")
    as_skill = None if listed is None else any(_is(name, skill) for name in listed)
    as_command = None if commands is None else any(_is(entry.get("name") or "", skill) for entry in commands.entries)
    siblings = tuple(name for name in listed or () if not _is(name, skill) and _is_copy(name, skill, copies))
    used = any(_is(name, skill) for name in summary.skill_calls)
    return Activation(
        skill,
        as_skill,
        as_command,
        _triggered(used, as_skill, _finished(summary, outcome)),
        tuple(summary.skill_calls),
        siblings,
        next((name for name in summary.skill_calls if name in siblings), None),
    )


def _triggered(used: bool, listed: bool | None, finished: bool) -> bool | None:
    if used and listed is not False:
        return True
    return False if listed and finished else None


def _finished(summary: StreamSummary, outcome: Outcome | None) -> bool:
    if outcome is not None:
        return outcome is Outcome.COMPLETED
    result = summary.last_result
    if result is not None:
        return result.is_error is not True and not (result.subtype or "").startswith("error")
    return summary.finished and summary.failed is None


def _is(name: str, skill: str) -> bool:
    """Whether a listed or called name is the skill; one that comes in a plugin has the plugin's name before it."""
    name = name.removeprefix("/")
    return name == skill or name.rpartition(":")[2] == skill


def _is_copy(name: str, skill: str, copies: tuple[str, ...]) -> bool:
    if copies:
        return any(_is(name, copy) for copy in copies)
    stem, dash, _ = skill.rpartition("-")
    other, _, _ = name.rpartition("-")
    return bool(dash) and len(stem) >= 3 and other == stem
