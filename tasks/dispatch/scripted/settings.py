"""Settings files: hooks and permission rules, read anew for every call as the CLI does (measured)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final, NamedTuple

from .permissions import Rule, rules
from .stream import Json

_TYPES: Final = {"command": "command", "http": "url", "mcp_tool": "tool", "prompt": "prompt", "agent": "prompt"}
_PLAIN_MATCHER: Final = re.compile(r"^[A-Za-z0-9_|]+$")


class Hook(NamedTuple):
    """One hook. `target` is its command or its address."""

    type: str
    target: str
    timeout_s: float
    blocks_on_failure: bool
    headers: dict[str, str]
    environment_names: tuple[str, ...]  # variables that its headers may hold


class Settings:
    """The settings of a session: `--settings` (never read again), local, project, user, in falling order."""

    def __init__(self, cwd: Path, config: Path, given: Json) -> None:
        self._given = given
        project = cwd / ".claude"
        self._files = [project / "settings.local.json", project / "settings.json", config / "settings.json"]

    def hooks(self, event: str, tool: str) -> list[Hook]:
        """The hooks of an event that look at a tool, each once; none when the highest layer to speak disables them."""
        layers = self._layers()
        if next((layer["disableAllHooks"] for layer in layers if "disableAllHooks" in layer), False):
            return []
        found: list[Hook] = []
        for layer in layers:
            found += [hook for hook in _hooks_of(layer, event, tool) if hook not in found]
        return found

    def permission_rules(self, kind: str) -> list[Rule]:
        """The rules `allow` or `deny` of all files."""
        found: list[str] = []
        for layer in self._layers():
            permissions = layer.get("permissions")
            entries = permissions.get(kind, []) if isinstance(permissions, dict) else []
            found += [entry for entry in entries if isinstance(entry, str)] if isinstance(entries, list) else []
        return rules(found)

    def _layers(self) -> list[Json]:
        return [self._given, *(_read(path) for path in self._files)]


def parse_given(text: str) -> Json | None:
    """The value of `--settings`: JSON, or the path of a file that holds it; null when it is neither."""
    try:
        value = json.loads(text) if text.lstrip().startswith("{") else json.loads(Path(text).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _read(path: Path) -> Json:
    """A settings file; one that is missing or broken counts as empty."""
    try:
        value = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _hooks_of(layer: Json, event: str, tool: str) -> list[Hook]:
    """The hooks of one file; a single invalid entry discards all of them, silently (measured)."""
    groups = layer.get("hooks", {})
    if not isinstance(groups, dict) or not all(map(_is_valid, groups.values())):
        return []
    chosen = [group for group in groups.get(event, []) if _looks_at(group.get("matcher", ""), tool)]
    return [_hook(entry) for group in chosen for entry in group["hooks"]]


def _is_valid(groups: object) -> bool:
    if not isinstance(groups, list):
        return False
    for group in groups:
        if not isinstance(group, dict) or not isinstance(group.get("matcher", ""), str):
            return False
        entries = group.get("hooks")
        if not isinstance(entries, list) or not all(map(_is_valid_entry, entries)):
            return False
    return True


def _is_valid_entry(entry: object) -> bool:
    if not isinstance(entry, dict):
        return False
    kind = entry.get("type")
    timeout = entry.get("timeout", 1)
    return (
        kind in _TYPES and isinstance(entry.get(_TYPES[kind]), str) and isinstance(timeout, int | float) and timeout > 0
    )


def _looks_at(matcher: str, tool: str) -> bool:
    if matcher in ("", "*"):
        return True
    if _PLAIN_MATCHER.match(matcher):
        return tool in matcher.split("|")
    try:
        return re.search(matcher, tool) is not None
    except re.error:
        return False


def _hook(entry: Json) -> Hook:
    headers = {str(key): str(value) for key, value in (entry.get("headers") or {}).items()}
    names = tuple(map(str, entry.get("allowedEnvVars") or ()))
    blocks = entry.get("onFailure") == "block"
    return Hook(entry["type"], entry[_TYPES[entry["type"]]], entry.get("timeout", 60), blocks, headers, names)
