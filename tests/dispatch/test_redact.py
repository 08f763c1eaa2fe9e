"""No spelling of a secret gets through, however the stream is cut; everything else gets through unchanged."""

from __future__ import annotations

import itertools
import json

from hypothesis import given
from hypothesis import strategies as st

from skilltrial.tasks.dispatch.redact import MARK, StreamRedactor, scrub, secret_values

secrets = st.text(st.characters(exclude_categories=["Cs"]), min_size=8, max_size=24)
cuts = st.lists(st.integers(0, 400), max_size=12)


def _in_pieces(redactor: StreamRedactor, content: bytes, places: list[int]) -> bytes:
    edges = [0, *sorted(min(place, len(content)) for place in places), len(content)]
    pieces = [content[start:end] for start, end in itertools.pairwise(edges)]
    return b"".join([*(redactor.feed(piece) for piece in pieces), redactor.finish()])


@given(st.binary(max_size=40), secrets, st.binary(max_size=40), cuts)
def test_a_secret_is_found_wherever_the_stream_is_cut(
    before: bytes, secret: str, after: bytes, places: list[int]
) -> None:
    content = before + secret.encode() + after

    assert secret.encode() not in _in_pieces(StreamRedactor([secret]), content, places)


@given(secrets, cuts)
def test_a_secret_is_found_inside_json_and_inside_json_in_json(secret: str, places: list[int]) -> None:
    line = json.dumps({"a": secret, "b": json.dumps({"c": secret}), "d": 1}, ensure_ascii=False).encode()

    cleaned = json.loads(_in_pieces(StreamRedactor([secret]), line, places))

    assert cleaned["d"] == 1
    assert secret not in cleaned["a"]
    assert secret not in json.loads(cleaned["b"])["c"]


@given(st.binary(max_size=300), cuts)
def test_what_holds_no_secret_is_unchanged(content: bytes, places: list[int]) -> None:
    assert _in_pieces(StreamRedactor(["canary-canary"]), content, places) == content


@given(st.binary(max_size=300), cuts)
def test_without_secrets_nothing_is_held_back(content: bytes, places: list[int]) -> None:
    redactor = StreamRedactor([])

    assert redactor.feed(content) == content
    assert redactor.finish() == b""


def test_only_what_may_become_a_secret_is_held_back() -> None:
    redactor = StreamRedactor(["canary-canary"])

    assert redactor.feed(b"line one\ncana") == b"line one\n"
    assert redactor.feed(b"ble\n") == b"canable\n"
    assert redactor.feed(b"canary-canar") == b""
    assert redactor.feed(b"y!") == MARK + b"!"
    assert redactor.finish() == b""


def test_the_longer_of_two_secrets_wins_across_a_cut() -> None:
    redactor = StreamRedactor(["abcdefgh", "abcdefghijkl"])

    assert redactor.feed(b"abcdefgh") == b""
    assert redactor.feed(b"ijkl.") == MARK + b"."
    assert redactor.feed(b"abcdefgh.") == MARK + b"."


def test_short_values_are_no_secrets() -> None:
    assert secret_values(["on", "1234567", "12345678", "12345678"]) == ["12345678"]
    assert scrub("switched on, key 12345678", ["on", "12345678"]) == "switched on, key [redacted]"
