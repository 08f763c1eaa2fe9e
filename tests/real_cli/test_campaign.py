"""A whole campaign through the real CLI: run while the API is overloaded for one cell, then run again."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from skilltrial.data.store import Store
from skilltrial.tasks.preflight.loopback.scenarios import Script
from skilltrial.tasks.preflight.loopback.server import LoggedRequest, LoopbackServer
from tests.real_cli.campaigns import HEALTHY, OVERLOADED, SKILL, write_campaign
from tests.real_cli.lane import lane

pytestmark = [pytest.mark.real_cli, pytest.mark.server]

KEY = "sk-ant-campaign-canary-0123456789"
CELL = ["eval_id", "condition"]


@dataclass(frozen=True, slots=True)
class Command:
    """One `skilltrial run`: its exit code, its benchmark, what the model was asked, and the tables after it."""

    exit_code: int
    benchmark: dict[str, Any]
    questions: tuple[LoggedRequest, ...]
    tables: dict[str, pl.DataFrame]

    def rows(self, table: str, *columns: str, **where: str | int) -> list[tuple[Any, ...]]:
        """Rows of a table that have these values, sorted, as tuples of some columns."""
        frame = self.tables[table].filter(**where) if where else self.tables[table]
        return sorted(frame.select(columns).rows())


@dataclass(frozen=True, slots=True)
class Story:
    """The same command three times: while one cell's API is overloaded, then healthy, then once more."""

    store: Store
    overloaded: Command
    healthy: Command
    again: Command


def command(campaign: Path, store: Store, script: Script) -> Command:
    """Run the campaign as a person does, in a process of its own, against a model with this script."""
    skilltrial = Path(sys.executable).with_name("skilltrial")
    with LoopbackServer(script) as server:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "ANTHROPIC_"))},
            "SKILLTRIAL_HOME": str(store.home),
            "SKILLTRIAL_WORKSPACES": str(store.workspaces),
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": KEY,
        }
        environment.pop("IS_SANDBOX", None)
        done = subprocess.run(
            [str(skilltrial), "run", str(campaign), "--yes", "--json"],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=300,
        )
    assert done.returncode in (0, 3), done.stderr.decode()
    tables = {
        path.name: pl.read_parquet(path / "**/*.parquet", hive_partitioning=True) for path in store.tables.iterdir()
    }
    return Command(done.returncode, orjson.loads(done.stdout), server.questions, tables)


@pytest.fixture(scope="module")
def story(claude: Path, tmp_path_factory: pytest.TempPathFactory) -> Story:
    """The three runs, made once for all tests of this module."""
    folder = tmp_path_factory.mktemp("campaign")
    store = Store((folder / "home").resolve(), (folder / "work").resolve())
    campaign = write_campaign(folder, claude)
    return Story(store, *(command(campaign, store, script) for script in (OVERLOADED, HEALTHY, HEALTHY)))


def test_overloaded_cell_stays_unsettled_and_the_others_are_settled(story: Story) -> None:
    assert story.overloaded.exit_code == 3
    assert story.overloaded.rows("cells", *CELL, "outcome", "settled", "counting", "attempt") == [
        ("release", "with_skill", "completed", True, "scored", 1),
        ("release", "without_skill", "completed", True, "scored", 1),
        ("summary", "with_skill", "overloaded", False, "excluded", 1),
        ("summary", "without_skill", "completed", True, "scored", 1),
    ]
    assert story.overloaded.rows("rounds", "api_error_status", "api_retries", **cell("summary", "with_skill")) == [
        (529, 2)
    ]
    assert story.overloaded.rows("cells", "score", **cell("summary", "with_skill")) == [(None,)]


def test_second_run_dispatches_only_the_unsettled_cell_and_settles_it(story: Story) -> None:
    assert story.healthy.exit_code == 0
    assert {question.conversation for question in story.healthy.questions} == {"summary"}
    assert [question.step for question in story.healthy.questions] == [0, 1]
    assert all(question.skills == (SKILL,) for question in story.healthy.questions)
    assert story.healthy.rows("cells", *CELL, "outcome", "settled", "attempt") == [
        ("release", "with_skill", "completed", True, 1),
        ("release", "without_skill", "completed", True, 1),
        ("summary", "with_skill", "completed", True, 2),
        ("summary", "without_skill", "completed", True, 1),
    ]


def test_third_run_dispatches_nothing_and_changes_no_table(story: Story) -> None:
    assert (story.again.exit_code, story.again.questions) == (0, ())
    for name, frame in story.healthy.tables.items():
        assert story.again.tables[name].equals(frame), name


def test_staged_skill_is_on_one_arms_roster_and_absent_in_the_other(story: Story) -> None:
    listed = story.healthy.rows("session_surface", *CELL, "name", kind="skill")
    assert listed == sorted(
        [(eval_id, "with_skill", name) for eval_id in ("release", "summary") for name in ("doctor", SKILL)]
        + [(eval_id, "without_skill", "doctor") for eval_id in ("release", "summary")]
    )
    assert story.healthy.rows("cells", *CELL, "skill_listed", "skill_used") == [
        ("release", "with_skill", True, True),
        ("release", "without_skill", None, None),
        ("summary", "with_skill", True, False),
        ("summary", "without_skill", None, None),
    ]
    assert story.healthy.tables["cells"]["cli_version"].unique().to_list() == [lane().version.split()[0]]


def test_both_arms_read_the_same_prompt(story: Story) -> None:
    prompts = story.healthy.tables["cells"].group_by("eval_id").agg(pl.col("prompt_digest").n_unique())
    assert sorted(prompts.rows()) == [("release", 1), ("summary", 1)]


def test_calls_are_in_the_order_in_which_they_were_made(story: Story) -> None:
    calls = story.healthy.tables["tool_calls"].sort("round", "order")
    made = calls.group_by(CELL, maintain_order=True).agg("tool", "denied", "is_error").sort(CELL).rows()
    assert made == [
        ("release", "with_skill", ["Skill", "Bash", "Edit"], [False] * 3, [False] * 3),
        ("release", "without_skill", ["Bash", "Bash", "Write"], [True, False, False], [True, False, False]),
        ("summary", "with_skill", ["Bash", "Bash"], [False] * 2, [False] * 2),
        ("summary", "without_skill", ["Bash", "Bash"], [False] * 2, [False] * 2),
    ]
    (result,) = story.healthy.rows("tool_calls", "result", **cell("release", "with_skill"), tool="Bash")
    assert result == ("# Changelog\n\n## 1.1\n\n- Faster start",)


def test_edit_shows_in_the_diff(story: Story) -> None:
    columns = (*CELL, "path", "status", "lines_added", "lines_removed", "hunks")
    assert story.healthy.rows("diff_files", *columns) == [
        ("release", "with_skill", "CHANGELOG.md", "modified", 4, 0, 1),
        ("release", "without_skill", "NEWS.md", "added", 1, 0, 1),
    ]


def test_refused_command_is_a_denial_of_the_permission_mode(story: Story) -> None:
    columns = (*CELL, "tool", "source", "reason", "input_keys")
    reason = "This command requires approval"
    assert story.healthy.rows("denials", *columns) == [
        ("release", "without_skill", "Bash", "permission", reason, ["command", "description"])
    ]
    assert story.healthy.rows("cells", *CELL, "denials", "denials_known", denials=1) == [
        ("release", "without_skill", 1, True)
    ]


def test_assertions_tell_the_arms_apart(story: Story) -> None:
    assert story.healthy.rows("assertions", *CELL, "assertion_id", "passed") == [
        ("release", "with_skill", "entry", True),
        ("release", "with_skill", "one-file", True),
        ("release", "without_skill", "entry", False),
        ("release", "without_skill", "one-file", True),
        ("summary", "with_skill", "says-it", True),
        ("summary", "with_skill", "touches-nothing", True),
        ("summary", "without_skill", "says-it", True),
        ("summary", "without_skill", "touches-nothing", True),
    ]


def test_usage_adds_up_to_what_the_model_reported(story: Story) -> None:
    steps = {("release", "with_skill"): 4, ("release", "without_skill"): 3, ("summary", "with_skill"): 2}
    steps["summary", "without_skill"] = 2
    assert story.healthy.rows("usage", *CELL, "input_tokens", "output_tokens", "exact", scope="main") == sorted(
        (eval_id, condition, 100 * count, 50 * count, True) for (eval_id, condition), count in steps.items()
    )


def test_every_line_of_every_stream_was_understood(story: Story) -> None:
    coverage = story.healthy.tables["parse_coverage"]
    assert coverage.height == 4
    assert coverage.select(pl.col("unknown_type", "malformed", "truncated").sum()).row(0) == (0, 0, 0)
    assert (coverage["parsed"] == coverage["lines"]).all()


def test_key_is_nowhere_in_the_store_although_an_agent_printed_it(story: Story) -> None:
    printed = story.healthy.rows("tool_calls", "result", **cell("summary", "without_skill"), order=1)
    assert printed == [("[redacted]",)]
    files = [path for root in (story.store.home, story.store.workspaces) for path in root.rglob("*")]
    assert [str(p) for p in files if p.is_file() and not p.is_symlink() and KEY.encode() in p.read_bytes()] == []


def cell(eval_id: str, condition: str) -> dict[str, str]:
    """The filter for one cell's rows; there is one repetition."""
    return {"eval_id": eval_id, "condition": condition}
