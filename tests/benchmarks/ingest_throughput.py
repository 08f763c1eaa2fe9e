"""How fast event streams are read: `python tests/benchmarks/ingest_throughput.py [megabytes]`.

Prints MB/s of `read_stream` (rows dropped, rows into Parquet) beside bare `orjson.loads` over the same lines in the
same run, and the peak of resident memory, for two made streams: one event for each message, and one with the
partial messages of `--include-partial-messages`.
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson

from skilltrial.tasks.ingest.records import RowSink
from skilltrial.tasks.ingest.sinks import NullSink, ParquetSink
from skilltrial.tasks.ingest.stream import read_stream

_SESSION = "11111111-2222-4333-8444-555555555501"
_TEXT = "the function returns a list of rows each row is checked sorted and written to a report"
_WORDS = _TEXT.split()
_TABLES = ("tool_calls", "denials", "usage", "session_surface", "messages")


def main() -> None:
    """Measure and print."""
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    with tempfile.TemporaryDirectory() as folder:
        for partial in (False, True):
            path = Path(folder) / "events.jsonl"
            write_stream(path, megabytes << 20, partial=partial)
            _measure("partial messages" if partial else "whole messages", path, Path(folder))


def write_stream(path: Path, size: int, *, partial: bool) -> None:
    """Write a stream of about `size` bytes: answers, tool calls and their results, as claude 2.1.332 writes them."""
    chance = random.Random(7)
    with path.open("wb") as handle:
        handle.write(_line({"type": "system", "subtype": "init", "claude_code_version": "2.1.332", "tools": ["Bash"]}))
        number = 0
        while handle.tell() < size:
            number += 1
            handle.writelines(_turn(number, chance, partial))
        usage = {"input_tokens": 10, "output_tokens": 20, "cache_read_input_tokens": 5}
        handle.write(_line({"type": "result", "subtype": "success", "is_error": False, "result": "", "usage": usage}))


def _turn(number: int, chance: random.Random, partial: bool) -> Iterator[bytes]:
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-6"}
    usage = {"input_tokens": 5, "output_tokens": 1, "cache_read_input_tokens": 9000, "cache_creation_input_tokens": 40}
    text = _prose(chance, 60)
    if partial:
        yield _event({"type": "message_start", "message": message | {"usage": usage, "content": []}})
        for start in range(0, len(text), 12):
            delta = {"type": "text_delta", "text": text[start : start + 12]}
            yield _event({"type": "content_block_delta", "index": 0, "delta": delta})
        yield _event({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 90}})
    call = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {"command": _prose(chance, 12)}}
    for block in ({"type": "text", "text": text}, call):
        yield _line(
            {
                "type": "assistant",
                "message": message | {"content": [block], "stop_reason": None, "usage": usage},
                "parent_tool_use_id": None,
                "uuid": f"a-{number}-{block['type']}",
                "timestamp": "2026-01-01T00:00:00.000Z",
                "session_id": _SESSION,
            }
        )
    output = "\n".join(_prose(chance, 12) for _ in range(chance.randrange(5, 60)))
    result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": output, "is_error": False}
    decision = {"decision": "accept", "source": "config", "reason_type": "mode"}
    yield _line(
        {
            "type": "user",
            "message": {"role": "user", "content": [result]},
            "parent_tool_use_id": None,
            "uuid": f"u-{number}",
            "timestamp": "2026-01-01T00:00:01.000Z",
            "session_id": _SESSION,
            "tool_use_result": {"stdout": output, "stderr": "", "interrupted": False, "isImage": False},
            "tool_result_meta": [{"id": f"toolu_{number}", "permission_decision": decision}],
        }
    )


def _event(event: dict[str, object]) -> bytes:
    record: dict[str, object] = {
        "type": "stream_event",
        "event": event,
        "session_id": _SESSION,
        "parent_tool_use_id": None,
    }
    return _line(record | {"uuid": "b345fd6a-7c2e-4ccc-b14e-8b72cd495343"})


def _prose(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(_WORDS, k=words))


def _line(record: dict[str, object]) -> bytes:
    return orjson.dumps(record) + b"\n"


def _measure(title: str, path: Path, folder: Path) -> None:
    size = path.stat().st_size / 1e6
    bare = size / _best(lambda: _bare(path))
    print(f"{title}: {size:.0f} MB, bare orjson.loads {bare:.0f} MB/s")
    for name, run in (("rows dropped", lambda: _dropped(path)), ("into Parquet", lambda: _into_parquet(path, folder))):
        speed = size / _best(run)
        print(f"  read_stream, {name}: {speed:.0f} MB/s, {speed / bare:.2f} of bare")
    print(f"  peak resident memory so far: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


def _best(run: Callable[[], None], times: int = 3) -> float:
    found = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found)


def _bare(path: Path) -> None:
    with path.open("rb") as handle:
        for line in handle:
            orjson.loads(line)


def _dropped(path: Path) -> None:
    _read(path, NullSink())


def _into_parquet(path: Path, folder: Path) -> None:
    identity = {"eval_id": "e", "condition": "c", "repetition": 1, "attempt": 1}
    with ParquetSink(folder / "tables", identity, _TABLES) as sink:
        _read(path, sink)


def _read(path: Path, sink: RowSink) -> None:
    summary = read_stream(path, sink, parser="claude-stream-json")
    if summary.coverage.lines != summary.coverage.parsed or not summary.finished:
        raise SystemExit(f"the made stream was misread: {summary.coverage}")


if __name__ == "__main__":
    main()
