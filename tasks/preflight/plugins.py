"""Which plugins a session should have loaded, and which it did.

`claude -p` drops an enabled plugin without a word when its marketplace is not registered; its skills then answer
"Unknown skill", and the model improvises. So the session's own roster is compared with what was asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from skilltrial.data.errors import InvalidInput, Problem
from skilltrial.tasks.ingest.records import StreamSummary


@dataclass(frozen=True, slots=True)
class PluginRoster:
    """Plugins as `name@marketplace`, sorted. `loaded` null: the session does not list its plugins."""

    expected: tuple[str, ...]
    loaded: tuple[str, ...] | None

    @property
    def missing(self) -> tuple[str, ...] | None:
        """What was asked for and is not there; null: not known."""
        if self.loaded is None:
            return None
        names = {plugin.partition("@")[0] for plugin in self.loaded if "@" not in plugin}
        there = set(self.loaded)
        return tuple(name for name in self.expected if name not in there and name.partition("@")[0] not in names)

    @property
    def valid(self) -> bool | None:
        """Whether all that was asked for is there; null: not known."""
        return None if self.missing is None else not self.missing


def roster(expected: Iterable[str], summary: StreamSummary) -> PluginRoster:
    """Compare the plugins that were asked for with those that a session reports."""
    loaded = None
    if summary.plugins is not None:
        loaded = tuple(sorted({_label(plugin) for plugin in summary.plugins} - {""}))
    return PluginRoster(tuple(sorted(set(expected))), loaded)


def enabled_plugins(settings: Path) -> tuple[str, ...]:
    """The plugins that a `settings.json` of Claude Code turns on, sorted; none where there is no such file.

    Raises `InvalidInput` when it is not a JSON object, or the list is none.
    """
    try:
        content = settings.read_bytes()
    except FileNotFoundError:
        return ()
    try:
        value: Any = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise InvalidInput([Problem(str(settings), "", None, f"is not JSON: {error}")]) from error
    told = value.get("enabledPlugins", {}) if isinstance(value, dict) else value
    if not isinstance(told, Mapping):
        where = "enabledPlugins" if isinstance(value, dict) else ""
        raise InvalidInput([Problem(str(settings), where, told, "is not an object")])
    return tuple(sorted(name for name, on in told.items() if on is True))


def _label(plugin: Mapping[str, str | None]) -> str:
    """`name@marketplace`, which a session gives as the source; else the bare name."""
    source, name = plugin.get("source") or "", plugin.get("name") or ""
    return source if "@" in source else name
