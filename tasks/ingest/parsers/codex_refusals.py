"""The words of Codex for a refused call, on stderr and in what the model is told (codex-cli 0.171.0, measured).

`codex exec --json` leaves nearly every refusal out of its events: an approval for an MCP tool is the one
exception. stderr names the others, except a command that the OS sandbox makes fail within about 0.15 s,
which leaves no trace at all. So no count of refusals taken from a stream and stderr is ever complete.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from skilltrial.tasks.ingest.denials import GUARD_MARK

_ROUTER: Final = " ERROR codex_core::tools::router: error="
_BLOCKED: Final = re.compile(
    r"^Command blocked by PreToolUse hook: (?P<reason>.*?)(?:\. Command: (?P<command>.*))?$", re.DOTALL
)
_REJECTED: Final = re.compile(r'Rejected\(\\?"(?P<words>.*)"\)', re.DOTALL)
_NEVER: Final = "approval policy is Never; reject command"
_PATCH: Final = "patch rejected: "
_MCP: Final = "MCP tool call requires approval"


@dataclass(frozen=True, slots=True)
class Refusal:
    """One refused call: the kind of item that it would have been, who refused and in which words."""

    tool: str  # command_execution, file_change or mcp_tool_call
    source: str  # as in the table `denials`
    reason: str


def refusal_of(text: str) -> Refusal | None:
    """What a text says of a refusal; null: it is an ordinary answer or failure."""
    text = text.strip()
    blocked = _BLOCKED.match(text)
    if blocked is not None:
        command = blocked["command"] or ""
        patch = command.startswith(("*** Begin Patch", "apply_patch"))
        source = "guard" if blocked["reason"].startswith(GUARD_MARK) else "hook"
        return Refusal("file_change" if patch else "command_execution", source, blocked["reason"])
    if text.startswith(_PATCH):
        return Refusal("file_change", "sandbox", text.removeprefix(_PATCH))
    if text.startswith(_NEVER):
        return Refusal("command_execution", "permission", text)
    if text.startswith(_MCP):
        return Refusal("mcp_tool_call", "permission", text)
    rejected = _REJECTED.search(text)
    if rejected is not None:
        words = rejected["words"].replace('\\"', '"').removesuffix("\\")  # the log escapes quotes
        return Refusal("command_execution", "permission", words.rpartition(" rejected: ")[2])
    return None


def refusals_in_stderr(stderr: str) -> list[Refusal]:
    """Every refusal that stderr names, in order; never all that happened (see the module's words)."""
    lines = (line.partition(_ROUTER)[2] for line in stderr.splitlines() if _ROUTER in line)
    return [refusal for line in lines if (refusal := refusal_of(line)) is not None]
