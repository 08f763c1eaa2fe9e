"""Reading evals.json: every fault at once, each with its place."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from skilltrial.data.errors import InvalidInput
from skilltrial.tasks.planning.evals import examine, fixtures, heldout, problems, read_evals
from tests.planning.building import CHECK, evals, write


def places(path: Path) -> list[str]:
    return [problem.where for problem in problems(path)]


def single(tmp_path: Path, **entry: Any) -> list[tuple[str, str]]:
    """(place, message) of each problem of one eval; `evals[0].` is left out."""
    path = evals(tmp_path / "s", {"id": "a", "prompt": "p", **entry})
    return [(problem.where.removeprefix("evals[0]").removeprefix("."), problem.message) for problem in problems(path)]


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    write(tmp_path / "s/evals/data/in.csv", "a")
    write(tmp_path / "s/evals/hidden/test.py", "a")
    check = {
        "id": "tests_pass",
        "type": "command_check",
        "command": "pytest -q",
        "setup_files": ["hidden/test.py"],
        "env": {"A": "1"},
        "matrix": {"B": ["x", "y"]},
        "expect_stdout": r"(?i)\bpassed$",
    }
    said = {"id": "m", "type": "transcript_check", "check": "assistant_message_matches", "pattern": "done"}
    entry = {"id": "a-1", "prompt": "p", "files": ["./in.csv"], "files_root": "data", "runs": 4}
    path = evals(tmp_path / "s", {**entry, "assertions": [check, said]})
    read = read_evals(path)
    assert [entry.id for entry in read.evals] == ["a-1"]
    assert fixtures(read.evals[0], path.parent) == {"in.csv": path.parent / "data" / "./in.csv"}
    assert heldout(read.evals[0], path.parent) == {"hidden/test.py": path.parent / "hidden/test.py"}
    assert read.evals[0].runs == 4


def test_all_problems_of_all_evals_are_found_at_once_and_sorted_by_place(tmp_path: Path) -> None:
    broken = {"id": "Bad Id", "prompt": " ", "files": ["/etc/passwd", "missing.txt"], "extra": 1}
    fine = {"id": "ok", "prompt": "p"}
    more = {
        "id": "ok",
        "prompt": "p",
        "assertions": [
            {"id": "x", "type": "transcript_check", "check": "tool_invocation_matches", "pattern": "(?=a)"},
            {"id": "x", "type": "diff_scope"},
        ],
    }
    path = evals(tmp_path / "s", broken, fine, more)
    assert places(path) == [
        "evals[0].extra",
        "evals[0].files[0]",
        "evals[0].files[1]",
        "evals[0].id",
        "evals[0].prompt",
        "evals[2].assertions[0].pattern",
        "evals[2].assertions[1]",
        "evals[2].assertions[1].id",
        "evals[2].id",
    ]
    with pytest.raises(InvalidInput) as caught:
        read_evals(path)
    assert len(caught.value.problems) == 9


def test_the_tenth_eval_comes_after_the_second(tmp_path: Path) -> None:
    path = evals(tmp_path / "s", *({"id": f"e{number}", "prompt": " "} for number in range(11)))
    assert places(path)[1:3] == ["evals[1].prompt", "evals[2].prompt"]
    assert places(path)[-1] == "evals[10].prompt"


@pytest.mark.parametrize(
    ("entry", "place", "says"),
    [
        ({"files": [".git/config"]}, "files[0]", "git's own folder"),
        ({"files": ["C:\\x"]}, "files[0]", "absolute"),
        ({"files": ["../evals.json"]}, "files[0]", "leads out"),
        ({"files": ["evals.json"]}, "files[0]", "graded by"),
        ({"files_root": "../x"}, "files_root", "leads out"),
        ({"runs": True}, "runs", "valid integer"),
        ({"runs": "3"}, "runs", "valid integer"),
        ({"codebase": {"url": "u", "ref": "r", "path": "."}}, "codebase", "both url and path"),
        ({"codebase": {"url": "u"}}, "codebase", "no ref"),
        ({"codebase": {}}, "codebase", "needs url and ref, or path"),
        ({"codebase": {"url": " ", "ref": "r"}}, "codebase.url", "is blank"),
        ({"codebase": {"path": "nowhere"}}, "codebase.path", "is not a folder"),
        ({"codebase": {"url": "https://u:p@h/x", "ref": "r"}}, "codebase.url", "credentials"),
        ({"turns": []}, "turns", "is empty"),
        ({"turns": [{"prompt": " ", "deliver_when": "always"}]}, "turns[0].prompt", "is blank"),
        (
            {"turns": [{"prompt": "p", "deliver_when": "always", "agent_response_matches": "x"}]},
            "turns[0].agent_response_matches",
            "agent_asks",
        ),
        (
            {"turns": [{"prompt": "p", "deliver_when": "agent_asks", "agent_response_matches": r"\1"}]},
            "turns[0].agent_response_matches",
            "backreferences",
        ),
        (
            {"turns": [{"prompt": "p", "deliver_when": "always"}], "responder": {"type": "llm"}},
            "responder",
            "cannot be combined",
        ),
        ({"isolation": "vm"}, "isolation", "not a known value"),
    ],
)
def test_a_fault_of_an_eval_is_told_with_its_place(
    tmp_path: Path, entry: dict[str, Any], place: str, says: str
) -> None:
    [(where, message)] = single(tmp_path, **entry)
    assert where == place
    assert says in message


@pytest.mark.parametrize(
    ("assertion", "place", "says"),
    [
        ({"setup_files": ["gone.py"]}, "setup_files[0]", "does not exist"),
        ({"setup_files": ["/x"]}, "setup_files[0]", "absolute"),
        ({"setup_files": [".git"]}, "setup_files[0]", "git's own"),
        ({"expect_stdout": "("}, "expect_stdout", "unclosed group"),
        ({"env": {"A=B": "x"}}, "env", "not a name"),
        ({"env": {"A": "x\0"}}, "env.A", "NUL"),
        ({"matrix": {"": ["x"]}}, "matrix", "not a name"),
        ({"matrix": {"A": []}}, "matrix.A", "no values"),
        ({"matrix": {"A": ["x", "x"]}}, "matrix.A[1]", "given twice"),
        ({"matrix": {"A": [" "]}}, "matrix.A[0]", "is blank"),
        ({"matrix": {"A": ["x"]}, "env": {"A": "y"}}, "matrix.A", "in env as well"),
        ({"command": " "}, "command", "is blank"),
        ({"command": "a\0b"}, "command", "NUL"),
        ({"id": "a/b"}, "id", "one file name"),
        ({"id": "__skill_invoked"}, "id", "kept for checks"),
    ],
)
def test_a_fault_of_a_command_check_is_told_with_its_place(
    tmp_path: Path, assertion: dict[str, Any], place: str, says: str
) -> None:
    [(where, message)] = single(tmp_path, assertions=[{**CHECK, **assertion}])
    assert where == f"assertions[0].{place}"
    assert says in message


@pytest.mark.parametrize("hidden", ["data", "data/in.csv", "data/in.csv/x"])
def test_a_held_out_file_must_not_be_visible(tmp_path: Path, hidden: str) -> None:
    write(tmp_path / "s/evals/data/in.csv", "a")
    found = single(tmp_path, files=["data/in.csv"], assertions=[{**CHECK, "setup_files": [hidden]}])
    assert any("must not be visible" in message for _, message in found)


def test_a_folder_that_holds_the_evals_is_no_fixture_even_through_a_link(tmp_path: Path) -> None:
    folder = tmp_path / "s" / "evals"
    folder.mkdir(parents=True)
    (folder / "all").symlink_to(".")
    [(where, message)] = single(tmp_path, files=["all"])
    assert where == "files[0]"
    assert "graded by" in message


def test_files_root_is_checked_without_files(tmp_path: Path) -> None:
    assert [where for where, _ in single(tmp_path, files_root="/x")] == ["files_root"]


def test_a_git_folder_may_be_a_files_root_and_lie_deeper(tmp_path: Path) -> None:
    write(tmp_path / "s/evals/.git/sub/.git/config", "x")
    assert single(tmp_path, files_root=".git", files=["sub/.git/config"]) == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b'{"skill_name": "s",\n "evals": [}', "line 2 column 12: is not JSON"),
        (b"[]", "is a list, not an object"),
        (b"null", "is null, not an object"),
        (b"{}", "evals: is missing"),
        (b'{"skill_name": "s", "evals": []}', "evals: "),
        (b'{"skill_name": "s", "evals": {}}', "evals: "),
        (b"\xff\xfe", "is not UTF-8 at byte 0"),
        (b'{"skill_name": "s", "evals": [{"id": "a", "prompt": "p", "runs": NaN}]}', "NaN is not a JSON value"),
        (b"[" * 100_000, "is not usable JSON"),
        (b"", "line 1 column 1: is not JSON"),
    ],
)
def test_what_is_no_evals_file_gets_a_clear_problem(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "evals.json"
    path.write_bytes(content)
    assert says in "\n".join(map(str, problems(path)))


def test_a_missing_file_and_a_folder_are_problems_too(tmp_path: Path) -> None:
    assert [problem.message for problem in problems(tmp_path / "evals.json")] == ["does not exist"]
    assert [problem.message for problem in problems(tmp_path)] == ["cannot be read: Is a directory"]


def test_keys_given_twice_and_half_surrogates_are_told_beside_other_problems(tmp_path: Path) -> None:
    first = '{"id":"a","prompt":"\\ud800","runs":0}'
    second = '{"id":"b","id":"c","prompt":"\\ud83d\\ude00"}'
    text = f'{{"skill_name":"s","evals":[{first},{second}]}}'
    path = write(tmp_path / "evals.json", text)
    assert places(path) == ["evals[0].prompt", "evals[0].runs", "evals[1].id"]


def test_a_byte_order_mark_is_no_problem_but_noted(tmp_path: Path) -> None:
    path = tmp_path / "evals.json"
    path.write_bytes(b'\xef\xbb\xbf{"skill_name": "s", "evals": [{"id": "a", "prompt": "p"}]}')
    reading = examine(path)
    assert reading.evals is not None
    assert reading.notes == ("starts with a byte order mark, which is ignored",)


@pytest.mark.corpus
def test_every_public_evals_file_is_read_or_refused_with_a_problem() -> None:
    folder = Path(os.environ.get("SKILLTRIAL_CORPUS") or pytest.skip("SKILLTRIAL_CORPUS is not set")) / "evals"
    readings = {path.name: examine(path) for path in sorted(folder.iterdir())}
    assert len(readings) >= 30
    for name, reading in readings.items():
        assert (reading.evals is None) == bool(reading.problems), name
        kept_form = name.endswith("_evals.json")
        # the corpus holds no fixtures: those are the only faults that a file of the right form may have
        if kept_form:
            assert all("does not exist" in problem.message for problem in reading.problems), name
        else:
            assert reading.problems, name
    document = json.loads((folder / "02_evals.json").read_text("utf-8"))
    read = readings["02_evals.json"].evals
    assert read is not None
    assert [entry.prompt for entry in read.evals] == [entry["prompt"] for entry in document["evals"]]
