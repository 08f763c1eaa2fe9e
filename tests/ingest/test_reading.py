"""Every line of a stream is accounted for, whatever the bytes."""

from __future__ import annotations

import codecs
import io
import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skilltrial.tasks.ingest import reading
from skilltrial.tasks.ingest.reading import BLOCK_BYTES, read_records
from skilltrial.tasks.ingest.records import Coverage

ONE, TWO = {"type": "a", "text": "é\n"}, {"type": "b", "n": [1, {"x": "}]\\"}]}
FIRST, SECOND = json.dumps(ONE, ensure_ascii=False).encode(), json.dumps(TWO).encode()


def read(content: bytes) -> tuple[list[dict[str, Any]], Coverage]:
    coverage = Coverage()
    records = list(read_records(io.BytesIO(content), coverage))
    total = coverage.parsed + coverage.malformed + coverage.blank + coverage.truncated
    assert coverage.lines == total
    assert coverage.bytes == len(content)
    return records, coverage


@pytest.mark.parametrize(
    "content",
    [
        FIRST + b"\n" + SECOND + b"\n",
        FIRST + b"\n" + SECOND,
        FIRST + b"\r\n" + SECOND + b"\r\n",
        codecs.BOM_UTF8 + FIRST + b"\n" + SECOND + b"\n",
        codecs.BOM_UTF16_LE + (FIRST + b"\n" + SECOND + b"\n").decode().encode("utf-16-le"),
        b"[" + FIRST + b"," + SECOND + b"]",
        b"[\n  " + FIRST + b",\n  " + SECOND + b"\n]\n",
        json.dumps([ONE, TWO], indent=2).encode(),
        (json.dumps(ONE, indent=2) + "\n" + json.dumps(TWO, indent=2)).encode(),
        b"2026-01-01T00:00:00.1234567Z " + FIRST + b"\n2026-01-01T00:00:01.0Z " + SECOND + b"\n",
        b"agent-1  | " + FIRST + b"\nagent-1  | " + SECOND + b"\n",
        b"\x1b[32m" + FIRST + b"\x1b[0m\n\x1b]0;title\x07" + SECOND + b"\n",
        FIRST + SECOND + b"\n",
        FIRST + b"\n" + codecs.BOM_UTF8 + SECOND + b"\n",
        b'{"timestamp":1752984276.5,"raw":' + FIRST + b'}\n{"timestamp":1,"raw":' + SECOND + b"}\n",
    ],
    ids=[
        "lines",
        "no final line feed",
        "CRLF",
        "BOM",
        "UTF-16",
        "array",
        "array of lines",
        "pretty array",
        "pretty objects",
        "CI prefix",
        "compose prefix",
        "colours",
        "glued",
        "BOM inside",
        "wrapped",
    ],
)
def test_both_records_are_read_from_every_form(content: bytes) -> None:
    records, coverage = read(content)
    assert [record["type"] for record in records] == ["a", "b"]
    assert [record.get("text") for record in records] == ["é\n", None]
    assert records[1]["n"] == TWO["n"]
    assert (coverage.lines, coverage.parsed) == (2, 2)


def test_what_is_no_record_is_counted_by_kind() -> None:
    lines = [FIRST, b"warning: slow", b"", b"  ", b"[]", b'"text"', b"12", b"null", b"\0\0\0", b'{"type": "c"']
    records, coverage = read(b"\n".join(lines))
    assert records == [ONE]
    assert (coverage.parsed, coverage.malformed, coverage.blank, coverage.truncated) == (1, 5, 3, 1)
    assert coverage.nul_bytes == 3


def test_nuls_in_front_of_a_record_are_skipped() -> None:
    records, coverage = read(FIRST + b"\n" + b"\0" * 5000 + SECOND + b"\n")
    assert records == [ONE, TWO]
    assert coverage.nul_bytes == 5000


def test_bytes_that_are_not_utf8_are_replaced_and_the_record_kept() -> None:
    records, coverage = read(b'{"type":"a","text":"caf\xc3"}\n')
    assert records == [{"type": "a", "text": "caf\ufffd"}]
    assert coverage.replaced_bytes is True


def test_half_a_surrogate_pair_is_replaced() -> None:
    records, coverage = read(b'{"type":"a","text":"x\\ud83d"}\n')
    assert records == [{"type": "a", "text": "x?"}]
    assert coverage.replaced_bytes is True


def test_a_broken_line_does_not_make_a_record_of_its_inner_objects() -> None:
    records, coverage = read(
        b'"content":[{"type":"text","text":"x"}]}}\n{"type":"a","m":{"type":"b"}\n' + FIRST + b"\n"
    )
    assert records == [ONE]
    assert coverage.malformed == 2


def test_a_log_line_with_an_object_that_is_no_record_is_malformed() -> None:
    records, coverage = read(b'[16:29:14.606] handler {"method":"permission"}\n')
    assert (records, coverage.malformed) == ([], 1)


@pytest.mark.parametrize("value", [b"NaN", b"-Infinity", b"[" * 5000 + b"]" * 5000, b"1e999"])
def test_what_json_cannot_hold_makes_its_line_malformed(value: bytes) -> None:
    records, coverage = read(
        b'{"type":"c","n":' + value + b"}\n" + b'x: {"type":"c","n":' + value + b"}\n" + FIRST + b"\n"
    )
    assert records[-1] == ONE
    assert coverage.lines == 3


@pytest.mark.parametrize("content", [b"[" + FIRST + b", " + SECOND[:9], b"[\n" + FIRST + b",\n"])
def test_a_cut_array_is_truncated(content: bytes) -> None:
    records, coverage = read(content)
    assert records == [ONE]
    assert (coverage.lines, coverage.truncated) == (2, 1)


def test_elements_that_are_no_objects_are_malformed() -> None:
    records, coverage = read(b"[" + FIRST + b', 1, "x, ]", null, [2], ' + SECOND + b"]")
    assert records == [ONE, TWO]
    assert coverage.malformed == 4


def test_long_lines_and_elements_cross_blocks() -> None:
    long = {"type": "a", "text": '[{\\"é' * BLOCK_BYTES}
    line = json.dumps(long, ensure_ascii=False).encode()
    for content in (line + b"\n" + FIRST + b"\n", b"[" + line + b"," + FIRST + b"]"):
        records, coverage = read(content)
        assert records == [long, ONE]
        assert coverage.longest_line_bytes == len(line)


def test_a_line_beyond_the_limit_is_malformed_and_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LINE_LIMIT", BLOCK_BYTES)
    records, coverage = read(FIRST + b"\n" + b'{"type":"' + b"x" * (3 * BLOCK_BYTES) + b'"}\n' + SECOND + b"\n")
    assert records == [ONE, TWO]
    assert (coverage.lines, coverage.malformed) == (3, 1)
    assert coverage.longest_line_bytes == 3 * BLOCK_BYTES + 11


class _Endless(io.RawIOBase):
    """A stream that is made while it is read."""

    def __init__(self, line: bytes, lines: int) -> None:
        self._left, self._line = lines, line

    def read(self, size: int = -1) -> bytes:
        count = min(self._left, max(size // len(self._line), 1))
        self._left -= count
        return self._line * count


@pytest.mark.parametrize("prefix", [b"", b"["], ids=["lines", "array"])
def test_memory_does_not_grow_with_the_stream(prefix: bytes) -> None:
    line = json.dumps({"type": "a", "text": "x" * 2000}).encode() + (b",\n" if prefix else b"\n")
    handle = _Endless(line, 8_000)  # 16 MB
    first = [prefix]

    def chunk(size: int = -1) -> bytes:
        return first.pop() if first and prefix else handle.read(size)

    source = type("Source", (), {"read": staticmethod(chunk)})()
    tracemalloc.start()
    count = sum(1 for _ in read_records(source, Coverage()))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 8_000
    assert peak < 8 * BLOCK_BYTES


def _chunks() -> st.SearchStrategy[bytes]:
    pieces = [
        FIRST,
        SECOND,
        b"\n",
        b"\r\n",
        b"[",
        b"]",
        b",",
        b"{",
        b"}",
        b'"',
        b"\\",
        b"\0",
        b"\x1b[0m",
        b"\xff",
        b"x: ",
    ]
    return st.lists(st.one_of(st.sampled_from(pieces), st.binary(max_size=4)), max_size=24).map(b"".join)


@given(_chunks())
def test_any_bytes_are_accounted_for_and_never_raise(content: bytes) -> None:
    records, coverage = read(content)
    assert len(records) == coverage.parsed


def _cuts(content: bytes) -> Iterator[bytes]:
    for end in range(len(content) + 1):
        yield content[:end]


@pytest.mark.parametrize(
    "content",
    [FIRST + b"\n" + SECOND + b"\n", b"[" + FIRST + b",\n" + SECOND + b"]", json.dumps(ONE, indent=1).encode()],
)
def test_a_cut_at_any_byte_gives_only_whole_records(content: bytes) -> None:
    for cut in _cuts(content):
        records, _ = read(cut)
        assert all(record in (ONE, TWO) for record in records)
