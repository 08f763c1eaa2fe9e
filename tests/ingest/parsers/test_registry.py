"""Parsers are found by the name that a descriptor gives."""

from __future__ import annotations

import pytest

from skilltrial.data.errors import UnknownName
from skilltrial.descriptors.loading import descriptor, labels
from skilltrial.tasks.ingest.parsers import NAMES, make_parser, parser_class, sniff
from skilltrial.tasks.ingest.sinks import NullSink


@pytest.mark.parametrize("name", NAMES)
def test_every_parser_tells_its_own_name_and_version(name: str) -> None:
    parser = make_parser(name, NullSink(), lambda _: "other")
    assert (parser.name, type(parser)) == (name, parser_class(name))
    assert parser.version >= 1
    summary = parser.finish()
    assert (summary.parser, summary.parser_version) == (name, parser.version)


def test_every_descriptor_names_a_parser() -> None:
    assert {descriptor(label).transcript.parser for label in labels()} <= set(NAMES)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UnknownName, match="no stream parser 'nope'; known: claude-stream-json"):
        make_parser("nope", NullSink(), lambda _: "other")


@pytest.mark.parametrize(
    ("record", "name"),
    [
        ({"type": "system", "subtype": "init", "tools": []}, "claude-stream-json"),
        ({"type": "thread.started", "thread_id": "t"}, "codex-items"),
        ({"type": "step_start", "sessionID": "ses_1", "part": {}}, "opencode-events"),
        ({"type": "run_start", "ts": "2026-01-01T00:00:00Z"}, "cline-json"),
        ({"type": "message", "role": "user"}, "unknown"),
        ({"type": ["system"]}, "unknown"),
    ],
)
def test_a_stream_is_told_by_its_first_records(record: dict[str, object], name: str) -> None:
    assert sniff([{"no": "type"}, record]) == name
