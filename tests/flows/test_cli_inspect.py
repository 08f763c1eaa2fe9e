"""`skilltrial inspect`, as a person or a program calls it."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from skilltrial.data.errors import UnknownName
from skilltrial.flows.cli import app
from skilltrial.flows.cli.inspect import inspect

INPUTS: Final = Path(__file__).parents[1] / "fixtures" / "bug_inputs"
KEYS: Final = [
    "file",
    "harness",
    "cli_version",
    "session_ids",
    "outcome",
    "reason",
    "final_text",
    "results",
    "has_result",
    "tool_calls",
    "tool_calls_answered",
    "denials",
    "usage",
    "cost_usd",
    "skills",
    "plugins",
    "notes",
    "coverage",
]


def _stream(name: str) -> str:
    return str(INPUTS / name / "input.jsonl")


def _json(captured: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(captured)
    return found


def test_one_file_is_one_object_with_the_promised_keys_first(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert app(["inspect", _stream("B08"), "--json"]) == 0
    told = _json(capfdbinary.readouterr().out)
    assert list(told)[: len(KEYS)] == KEYS
    assert list(told["coverage"]) == ["lines", "parsed", "unknown_type", "malformed", "blank", "truncated"]
    assert list(told["usage"]) == ["main", "all"]
    [denial] = told["denials"]
    assert list(denial) == ["tool_use_id", "tool", "source", "reason", "evidence", "input_keys"]
    assert (told["file"], told["harness"], told["sidecars"]) == (_stream("B08"), "claude-code", ["meta.json"])


def test_several_files_are_an_object_a_line(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    names = ["B01", "B43", "B48", "B53"]
    assert inspect(*map(_stream, names), json=True) == 0
    told = [_json(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert [(one["harness"], one["outcome"]) for one in told] == [
        ("claude-code", "timed_out"),
        ("codex", "overloaded"),
        ("opencode", "agent_error"),
        ("cline", "agent_error"),
    ]
    assert told[1]["denials"] is None
    assert told[1]["usage"] == {"main": None, "all": None}


def test_a_person_is_told_in_words(capfd: pytest.CaptureFixture[str]) -> None:
    assert inspect(_stream("B08")) == 0
    text = capfd.readouterr().out
    for words in ("completed: the agent ended", "1: Write by permission", "$0.0500", "5 lines, 5 read", "I could not"):
        assert words in text


def test_a_table_has_a_row_a_line(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert inspect(_stream("B13"), table="tool_calls", json=True) == 0
    rows = [_json(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert [(row["tool"], row["parent_tool_use_id"]) for row in rows] == [("Task", None), ("Bash", "t1")]
    assert inspect(_stream("B13"), table="tool_calls", json=True, limit=1) == 0
    assert len(capfdbinary.readouterr().out.splitlines()) == 1
    assert inspect(_stream("B13"), table="parse_coverage", json=True) == 0
    assert _json(capfdbinary.readouterr().out)["lines"] == 8


def test_a_table_for_a_person_says_what_it_left_off(capfd: pytest.CaptureFixture[str]) -> None:
    assert inspect(_stream("B13"), table="tool_calls", limit=1) == 0
    text = capfd.readouterr().out
    assert "Task" in text
    assert "Bash" not in text
    assert "1 more rows" in text


def test_stdin_is_a_stream_too(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    content = Path(_stream("B03")).read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert app(["inspect", "-", "--json"]) == 0
    told = _json(capfdbinary.readouterr().out)
    assert (told["file"], told["outcome"], told["reason"]) == ("-", "hung", "stalled")


def test_a_folder_stands_for_the_streams_below_it(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    for place in ("b/two.jsonl", "a.jsonl", "b/notes.txt"):
        path = tmp_path / place
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(Path(_stream("B02")).read_bytes())
    assert inspect(str(tmp_path), json=True) == 0
    told = [_json(line) for line in capfdbinary.readouterr().out.splitlines()]
    assert [one["file"] for one in told] == [str(tmp_path / "a.jsonl"), str(tmp_path / "b" / "two.jsonl")]


def test_files_that_cannot_be_read_are_named_and_the_others_reported(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "none").mkdir()
    paths = [str(tmp_path / name) for name in ("missing", "empty.jsonl", "none")]
    assert inspect(*paths, _stream("B02"), json=True) == 1
    captured = capfd.readouterr()
    assert json.loads(captured.out)["outcome"] == "completed"
    assert captured.err.splitlines() == [
        f"{paths[0]}: there is no such file",
        f"{paths[1]}: is empty, and nothing beside it tells of its process",
        f"{paths[2]}: no *.jsonl file is in this folder",
    ]


def test_an_empty_stream_with_a_known_process_is_a_case(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert inspect(_stream("B51"), json=True) == 0
    told = _json(capfdbinary.readouterr().out)
    assert (told["harness"], told["outcome"], told["reason"]) == ("opencode", "cli_crash", "no_events")


def test_a_file_that_is_no_stream_is_reported_with_a_hint(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("just text\n")
    assert inspect(str(path), json=True) == 0
    captured = capfd.readouterr()
    assert captured.err == f"{path}: no event of a known kind is in it; --harness names who wrote it\n"
    told = json.loads(captured.out)
    assert (told["harness"], told["has_result"], told["coverage"]["malformed"]) == ("unknown", False, 1)


def test_the_harness_can_be_named(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    for harness, parser in (("scripted", "claude-stream-json/"), ("claude-code", "claude-"), ("codex", "codex-items/")):
        assert inspect(_stream("B01"), json=True, harness=harness) == 0
        assert _json(capfdbinary.readouterr().out)["parser"].startswith(parser)


def test_wrong_names_and_no_files_are_usage_errors(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UnknownName, match="tool_calls, denials"):
        inspect(_stream("B01"), table="cells")
    with pytest.raises(UnknownName, match="claude-code, cline, codex, opencode, scripted"):
        inspect(_stream("B01"), harness="nobody")
    assert inspect() == 2
    assert "give at least one event stream" in capfd.readouterr().err


def test_what_cannot_be_used_beside_a_stream_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(Path(_stream("B02")).read_bytes())
    (tmp_path / "meta.json").write_text("{")
    assert inspect(str(path), json=True) == 0
    captured = capfd.readouterr()
    assert captured.err.startswith(f"{tmp_path / 'meta.json'} cannot be used: ")
    assert json.loads(captured.out)["outcome"] == "completed"


def test_equal_denials_and_equal_tokens_are_told_once(capfd: pytest.CaptureFixture[str]) -> None:
    assert inspect(str(INPUTS.parent / "captures/claude/d-files-plan.jsonl")) == 0
    text = " ".join(capfd.readouterr().out.split())
    assert "8: 3 × Edit by plan_mode; 3 × Write by permission; 2 × Write by plan_mode" in text
    assert text.count("1,100 in") == 1
    assert "; all: the same" in text


def test_the_reason_of_a_denial_is_shown_at_80_columns(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert inspect(str(INPUTS.parent / "captures/claude/b-bash-plan.jsonl"), table="denials") == 0
    header, first = capfd.readouterr().out.splitlines()[1:3]
    assert header.split() == ["order", "tool", "source", "reason", "evidence"]
    assert first.split()[:4] == ["0", "Bash", "permission", "Auto"]
