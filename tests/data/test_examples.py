"""The example campaigns are valid, their script fits their evals, and what it does gets the scores they show."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from skilltrial import data
from skilltrial.data.evals import CommandCheck, Eval, EvalsFile
from skilltrial.data.spec import CampaignSpec
from skilltrial.descriptors.loading import descriptor
from skilltrial.tasks.dispatch.scripted import script
from skilltrial.tasks.planning.campaign_file import read_spec
from skilltrial.tasks.planning.evals import read_evals
from skilltrial.tasks.planning.plan import make_plan
from tests.dispatch.scripted.agent import Agent, Run

EXAMPLES = Path(data.__file__ or "").parent / "examples"
CHANGE_NOTES = EXAMPLES / "change-notes"
SLUG = "change-notes"
SKILL = CHANGE_NOTES / "skills" / SLUG
EVALS = SKILL / "evals"
CAMPAIGNS = sorted(EXAMPLES.glob("*/*.toml"))
ARMS = ("with_skill", "without_skill")


SCRIPTED_REPETITIONS = 3
"""How many repetitions the script tells apart; the campaign runs the first ones."""


def evals() -> EvalsFile:
    return read_evals(EVALS / "evals.json")


@pytest.mark.parametrize("path", CAMPAIGNS, ids=lambda path: path.name)
def test_campaign_files_are_valid_and_name_what_exists(path: Path) -> None:
    spec = read_spec(path)
    assert (spec.skill / "SKILL.md").is_file()
    assert all(file.is_file() for file in spec.harness_inputs.values())
    harness = descriptor(spec.harness)
    assert spec.permission_mode in harness.permissions.modes
    assert {name for name, needed in harness.inputs.items() if needed.required} <= set(spec.harness_inputs)


def test_both_campaigns_try_the_same_skill() -> None:
    offline, real = read_spec(CHANGE_NOTES / "campaign.toml"), read_spec(CHANGE_NOTES / "claude-code.toml")
    assert offline.skill == real.skill
    assert (offline.harness, real.harness) == ("scripted", "claude-code")
    assert (real.repetitions, real.pass_env) == (3, ("ANTHROPIC_API_KEY",))
    assert real.budget_usd is not None


def test_the_offline_campaign_has_twenty_cells() -> None:
    plan = make_plan(read_spec(CHANGE_NOTES / "campaign.toml"))
    assert len(plan.cells) == 20
    assert {cell.condition for cell in plan.cells} == set(ARMS)
    assert [skill.slug for skill in plan.condition("with_skill").skills] == [SLUG]


def test_the_evals_show_every_deterministic_assertion() -> None:
    found = [assertion for entry in evals().evals for assertion in entry.assertions]
    assert {assertion.type for assertion in found} == {"transcript_check", "command_check", "diff_scope"}
    commands = [assertion for assertion in found if isinstance(assertion, CommandCheck)]
    for field in ("setup_files", "env", "matrix", "expect_stdout"):
        assert any(getattr(command, field) for command in commands), field
    assert len(evals().evals) == 5
    assert any(entry.files for entry in evals().evals)
    assert any(entry.codebase for entry in evals().evals)


def test_prompts_hint_neither_at_a_trial_nor_at_the_skill() -> None:
    hints = re.compile(r"(?i)\b(skills?|evals?|tests?|trials?|graded?|assert\w*|benchmark|change[ -]notes?)\b")
    assert [entry.id for entry in evals().evals if hints.search(entry.prompt)] == []


def test_the_script_is_valid_and_has_one_conversation_for_each_prompt() -> None:
    conversations = script.parse((CHANGE_NOTES / "agent-script.json").read_text("utf-8"), "agent-script.json")
    taken = [[found.match.search(entry.prompt) is not None for found in conversations] for entry in evals().evals]
    assert taken == [[row == column for column in range(5)] for row in range(5)]
    whens = [step.when for found in conversations for step in found.steps]
    assert {when[key] for when in whens for key in ("skill", "no_skill") if key in when} == {SLUG}


def test_the_held_out_changelog_is_that_of_the_codebase() -> None:
    expected = (EVALS / "codebase" / "pantry" / "CHANGELOG.md").read_bytes()
    assert (EVALS / "checks" / "CHANGELOG.expected.md").read_bytes() == expected


def test_the_script_gets_the_scores_that_the_example_shows(tmp_path: Path) -> None:
    """Every cell is carried out and its command checks are run, by the plainest means."""
    spec = read_spec(CHANGE_NOTES / "campaign.toml")
    passed: dict[tuple[str, str], int] = defaultdict(int)
    denied: set[tuple[str, str]] = set()
    for entry, arm, repetition in itertools.product(evals().evals, ARMS, range(1, SCRIPTED_REPETITIONS + 1)):
        agent = Agent(tmp_path / f"{entry.id}-{arm}-{repetition}", {"SCRIPTED_REPETITION": str(repetition)})
        run = carry_out(entry, arm, agent, spec)
        checks = [assertion for assertion in entry.assertions if isinstance(assertion, CommandCheck)]
        passed[entry.id, arm] += sum(holds(check, agent.cwd) for check in checks)
        denied |= {(entry.id, denial["tool_name"]) for denial in run.result["permission_denials"]}
    assert dict(passed) == {
        ("fix-rounding", "with_skill"): 9,
        ("fix-rounding", "without_skill"): 4,
        ("add-option", "with_skill"): 6,
        ("add-option", "without_skill"): 4,
        ("collect-notes", "with_skill"): 2,
        ("collect-notes", "without_skill"): 0,
        ("remove-option", "with_skill"): 8,
        ("remove-option", "without_skill"): 5,
        ("spelling", "with_skill"): 6,
        ("spelling", "without_skill"): 6,
    }
    assert denied == {("add-option", "Bash")}


def carry_out(entry: Eval, arm: str, agent: Agent, spec: CampaignSpec) -> Run:
    """One cell; every call but the refused ones must have worked."""
    if entry.codebase is not None:
        shutil.copytree(EVALS / str(entry.codebase.path), agent.cwd, dirs_exist_ok=True)
    for name in entry.files:
        shutil.copy(EVALS / (entry.files_root or ".") / name, agent.cwd / name)
    if arm == "with_skill":
        ignored = shutil.ignore_patterns("evals")
        shutil.copytree(SKILL, agent.cwd / ".claude" / "skills" / SLUG, ignore=ignored)
    document = json.loads(spec.harness_inputs["script"].read_text("utf-8"))
    run = agent.script(document, "--permission-mode", str(spec.permission_mode), prompt=entry.prompt)
    assert run.code == 0, run.stderr
    refused = {denial["tool_use_id"] for denial in run.result["permission_denials"]}
    answers = [event["message"]["content"][0] for event in run.tool_results]
    failed = [block for block in answers if block.get("is_error") and block["tool_use_id"] not in refused]
    assert failed == [], (entry.id, arm)
    return run


def holds(check: CommandCheck, environment: Path) -> bool:
    """Whether a command check passes in each of its matrix's cells."""
    cells = [dict(zip(check.matrix, values, strict=True)) for values in itertools.product(*check.matrix.values())]
    return all(holds_once(check, environment, cell) for cell in cells)


def holds_once(check: CommandCheck, environment: Path, cell: dict[str, str]) -> bool:
    copy = environment.parent / "copy"
    shutil.copytree(environment, copy)
    for name in check.setup_files:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(EVALS / name, copy / name)
    env = {"PATH": os.environ["PATH"], **check.env, **cell}
    ran = subprocess.run(["/bin/sh", "-c", check.command], cwd=copy, env=env, capture_output=True, text=True)
    shutil.rmtree(copy)
    expected = check.expect_stdout
    return ran.returncode == check.expect_exit_code and (
        expected is None or re.search(expected, ran.stdout) is not None
    )
