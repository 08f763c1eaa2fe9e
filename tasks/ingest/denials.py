"""Refused tool calls: one denial for each call, merged from every place that reports it, and who refused.

Where a stream reports refusals itself (`permission_denials`, `tool_result_meta`, `permission_denied`), only
those reports count. Older streams report none; there, and only there, known texts of answers stand in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from skilltrial.tasks.ingest.records import RowSink
from skilltrial.tasks.ingest.values import clip

REASON_LIMIT: Final = 4096
GUARD_MARK: Final = "skilltrial guard: "
"""How the reason of every denial by skilltrial's own hook begins."""

_SUSPECT_LIMIT: Final = 5000
_HOOK_PREFIX: Final = re.compile(r"(?:PreToolUse|PermissionRequest)(?::\S+)? hook error: (?:\[[^\]\n]*\]: )?")
_HOOK: Final = re.compile(
    r"PreToolUse\S* hook error|Hook PreToolUse\S* denied|Execution (?:was )?(?:stopped|blocked) by PreToolUse"
)
_PLAN_MODE: Final = re.compile(r"Cannot write to .{1,4096}? while in plan mode\.", re.DOTALL)
_APPROVER: Final = re.compile(r"The permission prompt tool |The user doesn't want to (?:proceed|take this action)")
_PERMISSION: Final = re.compile(
    r"Claude requested permissions? to .{1,4096}? but you haven't granted it yet"
    r"|Claude requested permissions to (?:use|write|read|edit)"
    r"|This command requires approval"
    r"|This Bash command contains multiple operations\. The following parts? requires? approval"
    r"|Permission (?:to use|for this tool use)\b.{0,4096}? (?:has been|was) denied"
    r"|Execute skill: .{1,4096}? The user can add the allow rule"
    r"|Auto mode is unavailable"
    r"|.{1,4096}? was blocked\. For security, Claude Code may only",
    re.DOTALL,
)
_SANDBOX: Final = "<sandbox_violations>"


@dataclass(slots=True)
class Denial:
    """What is known of one refused call."""

    tool_use_id: str | None
    tool: str | None = None
    reason: str | None = None
    reason_type: str | None = None
    decided_by: str | None = None  # `source` of the CLI's permission decision
    evidence: list[str] = field(default_factory=list)
    input_keys: list[str] = field(default_factory=list)
    agent_id: str | None = None
    order: int | None = None  # of the call in the stream


class DenialLedger:
    """Collects evidence, one denial for each call."""

    def __init__(self) -> None:
        self.reported = False  # the stream has a report of its own, even one that says "none"
        self._found: dict[str, Denial] = {}
        self._suspects: dict[str, Denial] = {}
        self._nameless = 0

    def __len__(self) -> int:
        return len(self._found)

    def __contains__(self, tool_use_id: object) -> bool:
        return tool_use_id in self._found

    def add(self, tool_use_id: str | None, evidence: str, **known: Any) -> None:
        """Take one piece of evidence; `known` are fields of `Denial`, of which the first told value stays."""
        if tool_use_id is None:
            self._nameless += 1
        key = tool_use_id if tool_use_id is not None else f"\0{self._nameless}"
        denial = self._found.setdefault(key, Denial(tool_use_id))
        if evidence not in denial.evidence:
            denial.evidence.append(evidence)
        for name, value in known.items():
            if value is not None and getattr(denial, name) in (None, []):
                setattr(denial, name, clip(value, REASON_LIMIT) if name == "reason" else value)

    def suspect(self, tool_use_id: str, reason: str, **known: Any) -> None:
        """Take a failed answer that nothing is reported of: its text may be all the evidence there is."""
        if _source_of_text(reason) is not None and len(self._suspects) < _SUSPECT_LIMIT:
            self._suspects[tool_use_id] = Denial(tool_use_id, reason=clip(reason, REASON_LIMIT), **known)

    def settle(self) -> None:
        """At the end of the stream: texts count where nothing else could."""
        if not self.reported:
            for key, denial in self._suspects.items():
                denial.evidence.append("text")
                self._found.setdefault(key, denial)
        self._suspects.clear()

    def write(self, sink: RowSink) -> None:
        """The rows, in the order of the calls; those of calls outside the stream come last."""
        last = len(self._found) + (1 << 62)
        ordered = sorted(self._found.values(), key=lambda denial: last if denial.order is None else denial.order)
        for order, denial in enumerate(ordered):
            sink.add(
                "denials",
                {
                    "order": order,
                    "tool_use_id": denial.tool_use_id,
                    "tool": denial.tool or "",
                    "source": source_of(denial),
                    "reason": denial.reason,
                    "reason_type": denial.reason_type,
                    "evidence": denial.evidence,
                    "input_keys": sorted(denial.input_keys),
                    "agent_id": denial.agent_id,
                },
            )


def source_of(denial: Denial) -> str:
    """Who refused: guard, hook, approver, plan_mode, sandbox, permission or unknown."""
    reason = denial.reason or ""
    by_text = _source_of_text(reason)
    if denial.decided_by == "hook" or denial.reason_type == "hook" or by_text == "hook":
        return "guard" if _HOOK_PREFIX.sub("", reason, count=1).startswith(GUARD_MARK) else "hook"
    if denial.decided_by == "user_reject":
        return "approver"
    if by_text is not None:
        return by_text
    if denial.decided_by is not None or "event" in denial.evidence:
        return "permission"
    return "unknown"


def sandbox_refused(text: str) -> bool:
    """Whether the native sandbox says in an answer that it kept something from happening."""
    return _SANDBOX in text


def _source_of_text(text: str) -> str | None:
    text = text.removeprefix("<tool_use_error>").removeprefix("Error: ")
    for source, pattern in (
        ("plan_mode", _PLAN_MODE),
        ("hook", _HOOK),
        ("approver", _APPROVER),
        ("permission", _PERMISSION),
    ):
        if pattern.match(text):
            return source
    return "sandbox" if sandbox_refused(text) else None
