"""From bytes to JSON objects, with every line accounted for.

A stream is JSON lines, one JSON array, or pretty-printed objects one after the other; it may carry a byte
order mark, NUL runs, bytes that are not UTF-8, colour codes, a log prefix before each object, two objects
on one line, foreign lines, and a last line that is cut. Memory is bounded by the longest line or element.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

import orjson

from skilltrial.tasks.ingest.records import Coverage
from skilltrial.tasks.ingest.values import moment

BLOCK_BYTES: Final = 1 << 18
"""Bytes read at once."""

LINE_LIMIT: Final = 1 << 28
"""Bytes of one line or element beyond which it is not kept in memory and counts as malformed."""

Record = dict[str, Any]

_ANSI: Final = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_PREFIXED: Final = re.compile(r'\{\s*"')
_ARRAY: Final = re.compile(rb"\[\s*(?:[{\]]|$)")
_SPACE: Final = re.compile(rb"[\s,]*")
_TOKEN: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|["{}\[\]]', re.DOTALL)
_SCALAR: Final = re.compile(rb'(?:"(?:[^"\\]++|\\.)*+"|[^\s,\]"]++)(?=[\s,\]])', re.DOTALL)
_DECODER: Final = json.JSONDecoder()


def read_records(handle: BinaryIO, coverage: Coverage) -> Iterator[Record]:
    """The JSON objects of a stream in order; `coverage` is complete when the iterator ends.

    Objects count as `parsed` here; whoever reads them moves those of unknown types to `unknown_type`.
    """
    blocks = _utf8_blocks(handle, coverage)
    start = next(blocks, b"")
    while start and not start.strip() and len(start) < LINE_LIMIT:
        more = next(blocks, None)
        if more is None:
            break
        start += more
    begin = start.lstrip()
    if _ARRAY.match(begin) or begin.partition(b"\n")[0].rstrip() == b"{":
        yield from _Values(start, blocks, coverage).records()
    else:
        yield from _lines(start, blocks, coverage)


def _utf8_blocks(handle: BinaryIO, coverage: Coverage) -> Iterator[bytes]:
    """The stream in blocks, without byte order mark and NULs, transcoded when its mark says UTF-16."""
    block = handle.read(BLOCK_BYTES)
    coverage.bytes += len(block)
    decode = None
    if block.startswith(codecs.BOM_UTF8):
        block = block[len(codecs.BOM_UTF8) :]
    elif block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        decode = codecs.getincrementaldecoder("utf-16")("replace").decode
    while block:
        if decode is not None:
            block = decode(block).encode("utf-8", "replace")
        if b"\0" in block:
            coverage.nul_bytes += block.count(0)
            block = block.replace(b"\0", b"")
        yield block
        block = handle.read(BLOCK_BYTES)
        coverage.bytes += len(block)


def _lines(start: bytes, blocks: Iterator[bytes], coverage: Coverage) -> Iterator[Record]:
    loads = orjson.loads
    for lines in _complete_lines(start, blocks, coverage):
        coverage.lines += len(lines)
        coverage.longest_line_bytes = max(coverage.longest_line_bytes, *map(len, lines))
        for line in lines:
            try:
                record = loads(line)
            except orjson.JSONDecodeError:
                yield from _rescue(line, coverage)
                continue
            if type(record) is not dict:
                coverage.malformed += 1
                continue
            coverage.parsed += 1
            yield record if "type" in record else _unwrap(record)


def _complete_lines(start: bytes, blocks: Iterator[bytes], coverage: Coverage) -> Iterator[list[bytes]]:
    """Lines, a block's worth at a time; a last line without its line feed is judged here unless it is whole."""
    pieces: list[bytes] = []
    held = 0
    block: bytes | None = start
    while block is not None:
        first, feed, rest = block.partition(b"\n")
        held += len(first)
        if held <= LINE_LIMIT:
            pieces.append(first)
        else:
            pieces.clear()
        if feed:
            lines = [] if held > LINE_LIMIT else [b"".join(pieces)]
            if held > LINE_LIMIT:
                _too_long(held, coverage)
            more = rest.split(b"\n")
            pieces = [more.pop()]
            held = len(pieces[0])
            lines += more
            if lines:
                yield lines
        block = next(blocks, None)
    if held > LINE_LIMIT:
        _too_long(held, coverage)
        return
    last = b"".join(pieces)
    if not last:
        return
    if b"{" in last and not _whole(last):
        coverage.lines += 1
        coverage.truncated += 1
        coverage.longest_line_bytes = max(coverage.longest_line_bytes, len(last))
    else:
        yield [last]


def _too_long(size: int, coverage: Coverage) -> None:
    coverage.lines += 1
    coverage.malformed += 1
    coverage.longest_line_bytes = max(coverage.longest_line_bytes, size)


def _whole(line: bytes) -> bool:
    trial = Coverage()
    return any(True for _ in _rescue(line, trial)) or _is_json(line)


def _is_json(line: bytes) -> bool:
    try:
        orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return True


def _rescue(line: bytes, coverage: Coverage) -> Iterator[Record]:
    """The objects of a line that is not plainly one; the line is counted, glued objects as lines of their own."""
    text = _decode(_ANSI.sub(b"", line) if b"\x1b" in line else line, coverage).strip().lstrip("\ufeff")
    if not text:
        coverage.blank += 1
        return
    found = _objects(text, coverage)
    coverage.parsed += len(found)
    coverage.lines += max(len(found) - 1, 0)
    if not found:
        coverage.malformed += 1
    for record in found:
        yield record if "type" in record else _unwrap(record)


def _decode(line: bytes, coverage: Coverage) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError:
        coverage.replaced_bytes = True
        return line.decode("utf-8", "replace")


def _objects(text: str, coverage: Coverage) -> list[Record]:
    """The objects in a line: one, several glued together, or those after a log prefix; none if it is no such line.

    Inside a broken line every nested object would look like one of those, so an object after a prefix must
    be a whole record: it has a type, and no JSON goes on behind it.
    """
    start = 0
    prefixed = not text.startswith("{")
    if prefixed:
        match = _PREFIXED.search(text)
        if match is None:
            return []
        start = match.start()
    found: list[Record] = []
    while start < len(text) and text[start] == "{":
        try:
            value, start = _DECODER.raw_decode(text, start)
            found.append(_without_surrogates(value, coverage))
        except (ValueError, RecursionError):
            return []
        while start < len(text) and text[start].isspace():
            start += 1
    broken = start < len(text) and text[start] in ']},:"'
    untyped = (prefixed or len(found) > 1) and not all("type" in record or "raw" in record for record in found)
    return [] if broken or untyped else found


def _without_surrogates(value: Record, coverage: Coverage) -> Record:
    """The record with lone surrogates replaced, which no UTF-8 can hold, and with numbers that JSON has."""
    try:
        encoded = json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except UnicodeEncodeError:
        coverage.replaced_bytes = True
        encoded = json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    record: Record = orjson.loads(encoded)
    return record


def _unwrap(record: Record) -> Record:
    """The event inside a recorder's envelope `{"timestamp": …, "raw": {…}}`, else the record itself."""
    raw = record.get("raw")
    if not isinstance(raw, dict) or "type" not in raw:
        return record
    if "timestamp" not in raw:
        at = moment(record.get("timestamp"))
        if at is not None:
            raw["timestamp"] = at.isoformat()
    return raw


class _Values:
    """Arrays element by element, and pretty-printed objects; each element counts as a line."""

    def __init__(self, start: bytes, blocks: Iterator[bytes], coverage: Coverage) -> None:
        self._buffer = start
        self._blocks = blocks
        self._coverage = coverage
        self._at = 0
        self._in_array = False

    def records(self) -> Iterator[Record]:
        """The objects; cut input and what is no object is counted."""
        while self._skip_space():
            opening = self._buffer[self._at : self._at + 1]
            if opening == b"[" and not self._in_array:
                self._in_array = True
                self._at += 1
            elif opening == b"]" and self._in_array:
                self._in_array = False
                self._at += 1
            else:
                element = self._element(opening)
                if element is None:
                    break
                yield from self._read(element)
        else:
            if self._in_array:
                self._cut(0)

    def _element(self, opening: bytes) -> bytes | None:
        """The next element; null: the input ends inside it, or it outgrew the limit, which is counted here."""
        seen, depth = self._at, 0
        while True:
            end: int | None
            if opening in (b"{", b"["):
                end, seen, depth = self._scan(seen, depth)
            elif self._in_array:
                match = _SCALAR.match(self._buffer, self._at)
                end = match.end() if match else None
            else:
                end = self._buffer.find(b"\n", self._at)
                end = None if end < 0 else end
            if end is not None:
                element = self._buffer[self._at : end]
                self._at = end
                return element
            size = len(self._buffer) - self._at
            if size > LINE_LIMIT:
                _too_long(size, self._coverage)
                for _ in self._blocks:
                    pass
                return None
            offset = seen - self._at
            if not self._more():
                if opening not in (b"{", b"[") and not self._in_array:
                    element = self._buffer[self._at :]
                    self._at = len(self._buffer)
                    return element
                self._cut(size)
                return None
            seen = self._at + offset

    def _scan(self, seen: int, depth: int) -> tuple[int | None, int, int]:
        """Where the balanced value ends, or where and how deep to go on when there is more input."""
        for token in _TOKEN.finditer(self._buffer, seen):
            mark = token.group()
            if mark in (b"{", b"["):
                depth += 1
            elif mark in (b"}", b"]"):
                depth -= 1
                if depth == 0:
                    return token.end(), token.end(), 0
            elif mark == b'"':  # a text that is not closed yet
                return None, token.start(), depth
            seen = token.end()
        return None, seen, depth

    def _read(self, element: bytes) -> Iterator[Record]:
        coverage = self._coverage
        coverage.lines += 1
        coverage.longest_line_bytes = max(coverage.longest_line_bytes, len(element))
        try:
            record = orjson.loads(element)
        except orjson.JSONDecodeError:
            yield from _rescue(element, coverage)
            return
        if isinstance(record, dict):
            coverage.parsed += 1
            yield record if "type" in record else _unwrap(record)
        else:
            coverage.malformed += 1

    def _cut(self, size: int) -> None:
        self._coverage.lines += 1
        self._coverage.truncated += 1
        self._coverage.longest_line_bytes = max(self._coverage.longest_line_bytes, size)

    def _skip_space(self) -> bool:
        """Move to the next thing that is neither space nor a comma; false at the end of the input."""
        while True:
            match = _SPACE.match(self._buffer, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._buffer):
                return True
            if not self._more():
                return False

    def _more(self) -> bool:
        """Drop what was read and take in more: as much again as is held, so that long elements stay cheap."""
        held = self._buffer[self._at :]
        pieces, wanted = [held], max(len(held), 1)
        for block in self._blocks:
            pieces.append(block)
            wanted -= len(block)
            if wanted <= 0:
                break
        self._buffer = b"".join(pieces)
        self._at = 0
        return len(pieces) > 1
