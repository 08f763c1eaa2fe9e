"""Expected plugins against loaded ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from skilltrial.data.errors import InvalidInput
from skilltrial.tasks.ingest.records import StreamSummary
from skilltrial.tasks.preflight.plugins import enabled_plugins, roster


def _summary(*plugins: dict[str, str | None], told: bool = True) -> StreamSummary:
    return StreamSummary("claude-code", "p", 1, plugins=list(plugins) if told else None)


def test_a_plugin_is_found_by_its_source_or_its_bare_name() -> None:
    summary = _summary({"name": "kit", "source": "kit@acme"}, {"name": "bare", "source": None})
    found = roster(["kit@acme", "bare@acme", "gone@acme"], summary)
    assert found.loaded == ("bare", "kit@acme")
    assert (found.missing, found.valid) == (("gone@acme",), False)


def test_the_same_name_of_another_marketplace_is_another_plugin() -> None:
    found = roster(["kit@acme"], _summary({"name": "kit", "source": "kit@other"}))
    assert found.missing == ("kit@acme",)


def test_a_session_that_lists_no_plugins_tells_nothing() -> None:
    found = roster(["kit@acme"], _summary(told=False))
    assert (found.loaded, found.missing, found.valid) == (None, None, None)


def test_settings_name_the_plugins_that_are_on(tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text('{"enabledPlugins":{"b@m":true,"a@m":true,"off@m":false}}')
    assert enabled_plugins(settings) == ("a@m", "b@m")
    assert enabled_plugins(tmp_path / "none.json") == ()


@pytest.mark.parametrize("content", ["{", "[]", '{"enabledPlugins":[]}'])
def test_settings_that_are_none_are_named(tmp_path: Path, content: str) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text(content)
    with pytest.raises(InvalidInput, match=r"settings\.json"):
        enabled_plugins(settings)
