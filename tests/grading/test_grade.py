"""Grading a whole attempt: each assertion on its own, decided once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from skilltrial.data.evals import Assertion, CommandCheck, DiffScope, LlmJudge, TranscriptCheck
from skilltrial.data.grading import DiffRecord
from skilltrial.data.outcomes import POLICY, Outcome
from skilltrial.data.plan import Cell
from skilltrial.data.store import read_model
from skilltrial.data.tables import TABLES
from skilltrial.tasks.grading.grade import is_graded
from tests.grading.conftest import Ground
from tests.grading.fragments import row, write_fragment
from tests.staging.building import EVAL, TREATMENT, make_plan, tree_of, write_files

CELL = Cell(eval_id=EVAL, condition=TREATMENT, repetition=1, block=0, digest="d")


def command(text: str, name: str = "runs", **fields: object) -> CommandCheck:
    return CommandCheck.model_validate({"id": name, "type": "command_check", "command": text, **fields})


def counting(ground: Ground, name: str = "runs") -> CommandCheck:
    """A check that leaves a trace of each time it is run."""
    return command(f"echo x >> {ground.sources / name}", name)


def times_run(ground: Ground, name: str = "runs") -> int:
    path = ground.sources / name
    return len(path.read_text().splitlines()) if path.exists() else 0


def transcribe(ground: Ground, *tools: str) -> None:
    calls = [row("tool_calls", CELL, round=1, order=n, tool=tool, input="{}") for n, tool in enumerate(tools)]
    write_fragment(ground.attempt, "tool_calls", calls)
    write_fragment(ground.attempt, "messages", [])
    write_fragment(ground.attempt, "parse_coverage", [row("parse_coverage", CELL, round=1, lines=1, parsed=1)])


CALLS_BASH = TranscriptCheck(
    id="bash", type="transcript_check", check="tool_invocation_matches", pattern="^Bash", must_precede="any"
)
SMALL = DiffScope(id="small", type="diff_scope", max_files_touched=1)
JUDGE = LlmJudge(id="judge", type="llm_judge", rubric="Good?")


def test_every_kind_of_assertion_gets_its_row(ground: Ground, tmp_path: Path) -> None:
    transcribe(ground, "Bash")
    write_files(ground.project, {"a": "1\n", "b": b"\0"})
    heldout = write_files(tmp_path / "heldout", {"held.sh": "exit 1"})

    ground.grade([CALLS_BASH, SMALL, JUDGE, command("./held.sh", setup_files=["held.sh"])], heldout=heldout)

    assert ground.verdicts() == {
        "bash": (True, None),
        "small": (False, None),
        "judge": (None, "needs judges, not yet built"),
        "runs": (False, None),
    }
    frame = ground.fragment("assertions")
    assert frame.schema == TABLES["assertions"].schema
    assert frame["kind"].to_list() == ["transcript_check", "diff_scope", "llm_judge", "command_check"]
    assert frame["artifacts"].to_list()[3] == [
        "grading/commands/runs/output.stdout",
        "grading/commands/runs/output.stderr",
    ]
    assert frame.select("eval_id", "condition", "repetition", "attempt").unique().rows() == [(EVAL, TREATMENT, 1, 1)]
    assert ground.fragment("diff_files").select("path", "status", "binary", "lines_added", "hunks").rows() == [
        ("a", "added", False, 1, 1),
        ("b", "added", True, None, 0),
    ]


def test_an_eval_without_assertions_has_no_rows_but_its_changes_are_measured(ground: Ground) -> None:
    ground.grade([])

    assert ground.fragment("assertions").rows() == []
    assert ground.fragment("diff_files").rows() == []
    assert ground.fragment("diff_files").schema == TABLES["diff_files"].schema


@pytest.mark.parametrize("outcome", list(Outcome))
def test_exactly_the_scored_outcomes_are_graded(ground: Ground, outcome: Outcome) -> None:
    ground.grade([SMALL], outcome=outcome)

    assert (ground.attempt.fragments / "assertions.parquet").exists() is POLICY[outcome].graded
    assert (ground.attempt.fragments / "diff_files.parquet").exists() is POLICY[outcome].graded


def test_grading_again_runs_nothing_again(ground: Ground) -> None:
    ground.grade([counting(ground)])
    first = ground.fragment("assertions")

    ground.grade([counting(ground)])

    assert times_run(ground) == 1
    assert ground.fragment("assertions").equals(first)


def test_an_edited_assertion_is_decided_anew_and_the_others_are_kept(ground: Ground) -> None:
    ground.grade([counting(ground, "one"), counting(ground, "two"), SMALL])

    edited = counting(ground, "two").model_copy(update={"expect_exit_code": 5})
    tight: list[Assertion] = [SMALL.model_copy(update={"max_files_touched": 0}), edited, counting(ground, "one")]
    ground.grade(tight)

    assert (times_run(ground, "one"), times_run(ground, "two")) == (1, 2)
    assert ground.verdicts() == {"small": (True, None), "two": (False, None), "one": (True, None)}


def test_changed_held_out_files_decide_anew_only_what_uses_them(ground: Ground, tmp_path: Path) -> None:
    heldout = write_files(tmp_path / "heldout", {"held.sh": "exit 1"})
    checks = [command("./held.sh", "held", setup_files=["held.sh"]), counting(ground)]
    ground.grade(checks, heldout=heldout)

    ground.grade(checks, heldout=write_files(tmp_path / "mended", {"held.sh": "exit 0"}))

    assert ground.verdicts() == {"held": (True, None), "runs": (True, None)}
    assert times_run(ground) == 1


def test_a_transcript_that_was_read_anew_is_judged_anew(ground: Ground) -> None:
    transcribe(ground, "Read")
    ground.grade([CALLS_BASH])
    assert ground.verdicts() == {"bash": (False, None)}

    transcribe(ground, "Read", "Bash")
    ground.grade([CALLS_BASH])

    assert ground.verdicts() == {"bash": (True, None)}


def test_without_a_transcript_there_is_no_verdict_until_there_is_one(ground: Ground) -> None:
    ground.grade([CALLS_BASH])
    passed, error = ground.verdicts()["bash"]
    assert passed is None
    assert error is not None
    assert error.startswith("there is no transcript")

    transcribe(ground, "Bash")
    ground.grade([CALLS_BASH])

    assert ground.verdicts() == {"bash": (True, None)}


def test_a_check_that_cannot_be_carried_out_leaves_the_others_alone(ground: Ground, tmp_path: Path) -> None:
    heldout = write_files(tmp_path / "heldout", {"other": "x"})

    ground.grade([command("true", "broken", setup_files=["gone"]), counting(ground)], heldout=heldout)

    verdicts = ground.verdicts()
    assert verdicts["runs"] == (True, None)
    passed, error = verdicts["broken"]
    assert passed is None
    assert error is not None
    assert error.startswith("held-out file gone is not in")


def test_an_environment_that_is_gone_gives_errors_and_no_count_of_changes(ground: Ground) -> None:
    shutil.rmtree(ground.project)

    ground.grade([SMALL, command("true")])

    assert [passed for passed, _ in ground.verdicts().values()] == [None, None]
    assert not (ground.attempt.fragments / "diff_files.parquet").exists()


def test_changes_are_measured_once_and_stay_as_they_were(ground: Ground) -> None:
    write_files(ground.project, {"new": "1\n"})
    ground.grade([SMALL])
    write_files(ground.project, {"later": "1\n"})

    ground.grade([SMALL])

    kept = read_model(ground.attempt.grading / "diff.json", DiffRecord)
    assert [file.path for file in kept.files] == ["new"]
    assert ground.fragment("diff_files")["path"].to_list() == ["new"]


def test_grading_leaves_the_environment_as_the_agent_left_it(ground: Ground, tmp_path: Path) -> None:
    heldout = write_files(tmp_path / "heldout", {"held": "x"})
    before = tree_of(ground.project)

    ground.grade([command("rm -rf * && touch held2", setup_files=["held"])], heldout=heldout)

    assert tree_of(ground.project) == before


def test_copies_of_a_killed_grading_are_removed(ground: Ground) -> None:
    left = ground.attempt.grading / ".work-killed" / "project"
    left.mkdir(parents=True)
    left.chmod(0o000)

    ground.grade([SMALL])

    assert sorted(path.name for path in ground.attempt.grading.iterdir()) == ["diff.json", "grade.json"]


@pytest.mark.parametrize("table", ["assertions", "diff_files"])
def test_an_attempt_whose_fragment_is_gone_is_not_graded(ground: Ground, table: str) -> None:
    plan = make_plan(ground.folder, assertions=[SMALL])
    ground.grade([SMALL])
    assert is_graded(plan, plan.cells[0], ground.attempt)
    ground.attempt.fragment(table).unlink()
    assert not is_graded(plan, plan.cells[0], ground.attempt)
    ground.grade([SMALL])
    assert is_graded(plan, plan.cells[0], ground.attempt)
