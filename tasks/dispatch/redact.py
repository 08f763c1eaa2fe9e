"""Taking secrets out of text before any of it reaches a disk.

Standard library only, and little of it: the supervisor, which runs without site-packages and has to start
quickly, loads this file too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

SHORTEST = 8
"""Characters that a value needs to count as a secret: shorter ones would mangle innocent text."""

MARK = b"[redacted]"


def secret_values(values: Iterable[str]) -> list[str]:
    """Those of the values that are long enough to be secrets, without repeats."""
    return sorted({value for value in values if len(value) >= SHORTEST})


def spellings(values: Iterable[str]) -> list[bytes]:
    """Every spelling of the secrets in an event stream, longest first.

    A value stands there as it is, inside a JSON string, or inside JSON text that is itself in a JSON string.
    """
    found: set[bytes] = set()
    for value in secret_values(values):
        for text in (value, value.strip()):
            for ascii_only in (True, False):
                once = json.dumps(text, ensure_ascii=ascii_only)[1:-1]
                twice = json.dumps(once, ensure_ascii=ascii_only)[1:-1]
                found |= {spelling.encode("utf-8", "surrogateescape") for spelling in (text, once, twice)}
    return sorted((spelling for spelling in found if len(spelling) >= SHORTEST), key=lambda s: (-len(s), s))


def scrub(text: str, values: Iterable[str]) -> str:
    """The text without any of the secrets."""
    redactor = StreamRedactor(values)
    content = redactor.feed(text.encode("utf-8", "surrogateescape")) + redactor.finish()
    return content.decode("utf-8", "surrogateescape")


class StreamRedactor:
    """Takes secrets out of a stream of bytes, also where one is cut in two between chunks.

    Of a chunk only an end that could be the beginning of a secret is held back, so whoever watches the
    output sees it without delay.
    """

    def __init__(self, values: Iterable[str]) -> None:
        self._secrets = spellings(values)
        self._pattern = re.compile(b"|".join(re.escape(secret) for secret in self._secrets)) if self._secrets else None
        self._held = b""

    def feed(self, chunk: bytes) -> bytes:
        """The next part of the output."""
        if self._pattern is None:
            return chunk
        data = self._held + chunk
        cut = len(data) - self._open_end(data)
        for match in self._pattern.finditer(data):
            if match.start() < cut < match.end():
                cut = match.end()
        self._held = data[cut:]
        return self._pattern.sub(MARK, data[:cut])

    def finish(self) -> bytes:
        """What is still held back. Called once, at the end of the stream."""
        rest, self._held = self._held, b""
        return self._pattern.sub(MARK, rest) if self._pattern is not None else rest

    def _open_end(self, data: bytes) -> int:
        """Length of the longest end of `data` that is the beginning, but not the whole, of a secret."""
        longest = 0
        for secret in self._secrets:
            start = max(0, len(data) - len(secret) + 1)
            while (start := data.find(secret[:1], start)) >= 0 and len(data) - start > longest:
                if secret.startswith(data[start:]):
                    longest = len(data) - start
                start += 1
        return longest
