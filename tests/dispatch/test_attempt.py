"""A whole attempt, from a real template to its record, with small programs and the bundled agent as the CLI."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from skilltrial.data.attempt import AttemptRecord, EndedBy
from skilltrial.data.digests import file_digest
from skilltrial.data.outcomes import Outcome
from skilltrial.data.plan import CampaignPlan, Cell, PlannedEval
from skilltrial.data.store import AttemptFolder, CampaignFolder, Store
from skilltrial.descriptors.loading import descriptor
from skilltrial.tasks.dispatch import process
from skilltrial.tasks.dispatch.attempt import run_attempt
from skilltrial.tasks.dispatch.command import bundled_agent
from skilltrial.tasks.dispatch.marks import MARK_NAME, campaign_mark
from skilltrial.tasks.dispatch.tidying import remove_abandoned
from skilltrial.tasks.staging.template import build
from tests.staging.building import campaign_of, frozen_skill, make_plan

GOOD = """
import json, os, sys
session = sys.argv[sys.argv.index("--session-id") + 1]
prompt = sys.stdin.buffer.read()
records = [
    {"type": "system", "subtype": "init", "session_id": session, "model": "m-1", "claude_code_version": "9.8.7",
     "permissionMode": "default", "cwd": os.getcwd(), "tools": [], "skills": []},
    {"type": "assistant", "session_id": session, "message": {"id": "m", "role": "assistant", "model": "m-1",
     "content": [{"type": "text", "text": "Done: " + prompt.decode()}], "usage": {}}},
    {"type": "result", "subtype": "success", "is_error": False, "terminal_reason": "completed",
     "result": "Done: " + prompt.decode(), "session_id": session, "total_cost_usd": 0.25, "usage": {}},
]
for record in records:
    print(json.dumps(record))
open("made-by-agent.txt", "w").write(json.dumps(dict(os.environ)))
"""


@dataclass
class Trial:
    """A staged campaign whose CLI is a Python program."""

    store: Store
    folder: CampaignFolder
    plan: CampaignPlan
    scratch: Path

    @property
    def cell(self) -> Cell:
        return self.plan.cells[0]

    def attempt(
        self,
        program: str,
        *,
        spec: Mapping[str, Any] | None = None,
        operator: Mapping[str, str] | None = None,
        prompt: str = "Do it.",
        on_start: Callable[[AttemptFolder], None] | None = None,
    ) -> AttemptRecord:
        """Run the program once in the place of the CLI."""
        path = self.scratch / "cli.py"
        path.write_text(program)
        harness = descriptor("scripted").model_dump(mode="json") | {"inputs": {}}
        harness["dispatch"] = {"argv": ["{binary}", "-I", "-S", str(path), "--session-id", "{session_id}"]}
        planned = self.plan.evals[0]
        changed = planned.model_copy(update={"eval": planned.eval.model_copy(update={"prompt": prompt})})
        return self._run(harness, sys.executable, spec or {}, changed, operator or {}, on_start)

    def _run(
        self,
        harness: dict[str, Any],
        binary: str | None,
        spec: Mapping[str, Any],
        planned: PlannedEval,
        operator: Mapping[str, str],
        on_start: Callable[[AttemptFolder], None] | None,
    ) -> AttemptRecord:
        plan = self.plan.model_copy(
            update={
                "harness": self.plan.harness.model_copy(update={"descriptor": harness, "binary": binary}),
                "spec": self.plan.spec.model_copy(update=spec),
                "evals": (planned,),
            }
        )
        return run_attempt(plan, self.cell, self.store, on_start=on_start, operator=operator)

    def last(self) -> AttemptFolder:
        """The newest attempt's folder."""
        return self.folder.cell(self.cell).attempts()[-1]


@pytest.fixture
def trial(store: Store, tmp_path: Path) -> Trial:
    folder = campaign_of(store)
    skill = frozen_skill(folder, tmp_path / "live", {"SKILL.md": "---\nname: csv-tidy\n---\nTidy.\n"})
    plan = make_plan(folder, skills=[skill])
    for template in plan.templates:
        build(plan, template, folder)
    return Trial(store, folder, plan, tmp_path)


def test_a_good_attempt_leaves_record_prompt_environment_and_message(trial: Trial) -> None:
    prompt = "Tidy “this”,\r\nplease \U0001f642"

    record = trial.attempt(GOOD, prompt=prompt)

    attempt = trial.last()
    assert (record.outcome, record.reason, record.notes, record.settled) == (Outcome.COMPLETED, "", (), True)
    assert attempt.record() == record
    assert attempt.prompt_path.read_bytes() == prompt.encode()
    assert record.prompt_digest == hashlib.sha256(prompt.encode()).hexdigest()
    assert (attempt.outputs / "final-message.md").read_bytes().decode() == f"Done: {prompt}"
    assert (record.model, record.cli_version, record.permission_mode, record.cost_usd) == (
        "m-1",
        "9.8.7",
        "default",
        0.25,
    )
    assert record.session_id == record.rounds[0].argv[-1]
    assert record.rounds[0].events_digest == file_digest(attempt.events(1))
    assert (record.rounds[0].process.ended_by, record.rounds[0].process.exit_code) == (EndedBy.EXIT, 0)
    assert record.duration_ms == record.rounds[0].process.duration_ms


def test_the_environment_is_a_fresh_clone_reached_through_a_relative_link(trial: Trial) -> None:
    record = trial.attempt(GOOD)

    attempt = trial.last()
    workspace = trial.store.workspace(record.workspace)
    assert not attempt.environment.readlink().is_absolute()
    assert attempt.environment.resolve() == workspace.project
    assert (attempt.environment / "made-by-agent.txt").is_file()
    assert (attempt.environment / ".claude" / "skills" / "csv-tidy" / "SKILL.md").is_file()
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=workspace.project, capture_output=True, text=True, check=True
    )
    assert head.stdout.strip() == record.baseline
    assert not workspace.tmp.exists()
    assert workspace.config.is_dir()


def test_nothing_that_an_agent_sees_tells_of_the_trial(trial: Trial) -> None:
    record = trial.attempt(GOOD)

    seen = json.loads((trial.last().environment / "made-by-agent.txt").read_bytes())
    cwd = json.loads(trial.last().events(1).read_text().splitlines()[0])["cwd"]
    assert seen[MARK_NAME].startswith(campaign_mark(trial.folder.root))
    assert seen["HOME"] == str(trial.store.workspace(record.workspace).home)
    for text in (cwd, *seen, *seen.values()):
        told = text.replace(str(trial.store.workspaces), "")  # the operator's choice of place
        assert not any(word in told for word in ("skilltrial", "with_skill", "csv-tidy", "attempt", "trial/"))


def test_attempts_are_numbered_and_never_share_a_workspace(trial: Trial) -> None:
    records = [trial.attempt(GOOD) for _ in range(2)]

    assert [record.attempt for record in records] == [1, 2]
    assert records[0].workspace != records[1].workspace
    assert records[0].baseline == records[1].baseline


def test_the_start_is_told_before_anything_runs(trial: Trial) -> None:
    told: list[tuple[AttemptFolder, list[Path]]] = []

    trial.attempt(GOOD, on_start=lambda attempt: told.append((attempt, list(attempt.root.iterdir()))))

    assert told == [(trial.last(), [])]


def test_a_fault_of_our_own_code_still_leaves_a_record(trial: Trial) -> None:
    def fail(_: AttemptFolder) -> None:
        raise RuntimeError("the display broke")

    record = trial.attempt(GOOD, on_start=fail)

    assert (record.outcome, record.reason) == (Outcome.EVALUATOR_ERROR, "exception")
    assert record.detail == "RuntimeError: the display broke"
    assert record.rounds == ()
    assert trial.last().record() == record
    assert "the display broke" in (trial.last().root / "error.txt").read_text()


def test_a_fault_after_the_round_keeps_its_events(trial: Trial, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ValueError("cannot read this")

    monkeypatch.setattr("skilltrial.tasks.dispatch.attempt.read_stream", fail)

    record = trial.attempt(GOOD)

    assert record.outcome is Outcome.EVALUATOR_ERROR
    assert record.rounds[0].events_digest == file_digest(trial.last().events(1))
    assert record.rounds[0].process.exit_code == 0


def test_a_missing_template_is_an_evaluator_error_that_names_it(trial: Trial) -> None:
    (trial.folder.template("tidy", "with_skill") / "template.json").unlink()

    record = trial.attempt(GOOD)

    assert record.outcome is Outcome.EVALUATOR_ERROR
    assert "no finished template" in record.detail


def test_an_agent_that_works_too_long_is_timed_out(trial: Trial) -> None:
    record = trial.attempt("import signal; print('{}', flush=True); signal.pause()", spec={"timeout_s": 0.5})

    assert (record.outcome, record.reason) == (Outcome.TIMED_OUT, "deadline")


def test_a_silent_agent_has_hung(trial: Trial) -> None:
    record = trial.attempt("import signal; signal.pause()", spec={"silence_s": 0.5})

    assert (record.outcome, record.reason) == (Outcome.HUNG, "stalled")


def test_a_crash_keeps_the_last_words(trial: Trial) -> None:
    record = trial.attempt("import sys; sys.exit('out of cheese')")

    assert (record.outcome, record.reason, record.detail) == (Outcome.CLI_CRASH, "no_events", "out of cheese")


def test_a_leftover_process_is_noted(trial: Trial) -> None:
    record = trial.attempt(GOOD + "\nif os.fork() == 0:\n    os.setsid()\n    import signal\n    signal.pause()\n")

    assert (record.outcome, record.notes) == (Outcome.COMPLETED, ("leftover_processes",))
    assert record.rounds[0].process.leftovers == 1


def test_a_foreign_session_is_not_believed(trial: Trial) -> None:
    record = trial.attempt(GOOD.replace('sys.argv[sys.argv.index("--session-id") + 1]', "'somebody-else'"))

    assert (record.outcome, record.reason) == (Outcome.EVALUATOR_ERROR, "foreign_session")


def test_a_passed_secret_reaches_the_agent_and_no_file_of_ours(trial: Trial) -> None:
    canary = "sk-canary-9f8e7d6c5b4a"
    program = GOOD.replace(
        'open("made-by-agent.txt", "w").write(json.dumps(dict(os.environ)))',
        """
key = os.environ["SERVICE_KEY"]
print(json.dumps({"type": "user", "message": {"content": key}}))
print("failed with", key, file=sys.stderr)
os.makedirs("logs/" + key)
for name in ("env.txt", "../env.txt", "logs/" + key + "/env.txt"):
    open(name, "w").write(key)
""",
    ).replace('"Done: " +', '"The key is " + os.environ["SERVICE_KEY"] +')

    record = trial.attempt(program, spec={"pass_env": ("SERVICE_KEY",)}, operator={"SERVICE_KEY": canary})

    assert record.outcome is Outcome.COMPLETED
    assert (trial.last().outputs / "final-message.md").read_text() == "The key is [redacted]Do it."
    assert trial.last().stderr(1).read_text() == "failed with [redacted]\n"
    assert (trial.last().environment / "env.txt").read_text() == "[redacted]"
    for path in (*trial.store.home.rglob("*"), *trial.store.workspaces.rglob("*")):
        assert canary not in str(path)
        if path.is_file():
            assert canary.encode() not in path.read_bytes(), path


@pytest.mark.parametrize(
    "deed", ["shutil.rmtree(here)", "shutil.rmtree(here); open(here, 'w').close()", "shutil.rmtree(root)"]
)
def test_an_agent_that_destroys_its_project_leaves_an_empty_one(trial: Trial, deed: str) -> None:
    program = GOOD + f"import shutil; here = os.getcwd(); root = os.path.dirname(here); os.chdir('/'); {deed}"

    record = trial.attempt(program)

    assert (record.outcome, record.notes) == (Outcome.COMPLETED, ("project_destroyed",))
    assert trial.last().environment.is_dir()
    assert list(trial.last().environment.iterdir()) == []


def test_links_in_the_place_of_folders_lead_nowhere_afterwards(trial: Trial, tmp_path: Path) -> None:
    strange = tmp_path / "strange"
    (strange / ".cache").mkdir(parents=True)
    for name in ("precious", ".cache/precious"):
        (strange / name).write_text("sk-canary-9f8e7d6c5b4a")
    program = (
        GOOD
        + f"""
import shutil
root = os.path.dirname(os.getcwd())
for name in ("project", "home", "config", "tmp"):
    shutil.rmtree(os.path.join(root, name))
    os.symlink({str(strange)!r}, os.path.join(root, name))
"""
    )

    record = trial.attempt(program, spec={"pass_env": ("KEY",)}, operator={"KEY": "sk-canary-9f8e7d6c5b4a"})

    assert (record.outcome, record.notes) == (Outcome.COMPLETED, ("project_destroyed",))
    assert list(trial.last().environment.iterdir()) == []
    assert sorted(path.name for path in strange.rglob("*")) == [".cache", "precious", "precious"]
    assert (strange / "precious").read_text() == "sk-canary-9f8e7d6c5b4a"


def test_only_workspaces_of_attempts_without_a_record_are_removed(trial: Trial) -> None:
    trial.attempt(GOOD)
    kept = trial.last()
    trial.attempt(GOOD)
    trial.last().record_path.unlink()

    assert remove_abandoned(trial.folder, trial.store) == 1

    assert [path.name for path in trial.store.workspaces.iterdir()] == [kept.environment.resolve().parent.name]
    assert remove_abandoned(trial.folder, trial.store) == 0


def test_a_cli_that_is_not_there_is_missing(trial: Trial) -> None:
    harness = descriptor("scripted").model_dump(mode="json") | {"inputs": {}, "binary": "no-such-agent"}
    harness["dispatch"] = {"argv": ["{binary}"]}

    record = trial._run(harness, None, {}, trial.plan.evals[0], {"PATH": "/usr/bin"}, None)

    assert (record.outcome, record.reason) == (Outcome.CLI_MISSING, "not_started")
    assert "no-such-agent" in record.detail


def test_an_attempt_that_began_before_the_end_of_all_is_cancelled(trial: Trial) -> None:
    def end(_: AttemptFolder) -> None:
        process.end_all()

    record = trial.attempt(GOOD, on_start=end)

    assert (record.outcome, record.reason) == (Outcome.CANCELLED, "cancelled")
    assert record.rounds[0].events_digest is None


def test_the_bundled_agent_carries_out_its_script(trial: Trial) -> None:
    script = trial.scratch / "script.json"
    step = {"tool": {"name": "Write", "input": {"file_path": "{cwd}/a.txt", "content": "tidy"}}}
    script.write_text(json.dumps({"conversations": [{"match": "Do it", "steps": [step, {"say": "All tidy."}]}]}))
    digest = file_digest(script)
    frozen = trial.folder.source(digest)
    frozen.parent.mkdir(parents=True, exist_ok=True)
    frozen.write_bytes(script.read_bytes())
    plan = trial.plan.model_copy(
        update={
            "harness": trial.plan.harness.model_copy(update={"binary": sys.executable, "inputs": {"script": digest}})
        }
    )

    record = run_attempt(plan, trial.cell, trial.store, operator={"PATH": os.environ["PATH"]})

    assert (record.outcome, record.reason, record.detail) == (Outcome.COMPLETED, "", "")
    assert (trial.last().environment / "a.txt").read_text() == "tidy"
    assert (trial.last().outputs / "final-message.md").read_text() == "All tidy."
    assert Path(bundled_agent()).is_file()
