"""What preflight finds, and what it makes of it."""

from __future__ import annotations

import os
import shutil
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest

from skilltrial.data.errors import PreflightRefused
from skilltrial.data.plan import CampaignPlan
from skilltrial.data.store import Store, write_model
from skilltrial.data.template import TemplateRecord
from skilltrial.tasks.preflight.checks import Level, examine, passed
from tests.analysis.trials import CONTROL, SKILL, TREATMENT, make_plan

Usage = namedtuple("Usage", "total used free")


@pytest.fixture(autouse=True)
def room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk with room, whatever the machine's is like."""
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1 << 40, 0, 1 << 40))


def planned(harness: str = "scripted", *, found: dict[str, Any] | None = None, **spec: Any) -> CampaignPlan:
    """A plan for a harness; `found` replaces what was found of its CLI, `spec` fields of the campaign."""
    plan = make_plan(harness=harness)
    update = {"spec": plan.spec.model_copy(update=spec), "harness": plan.harness.model_copy(update=found or {})}
    return plan.model_copy(update=update)


def lines(plan: CampaignPlan, store: Store, *, root: bool = False) -> list[tuple[Level, str]]:
    return [(finding.level, str(finding)) for finding in examine(plan, store, root=root)]


def built(store: Store, plan: CampaignPlan, condition: str, *skills: str) -> None:
    """A finished template whose codebase brings these skills along."""
    record = TemplateRecord(
        eval_id="alpha",
        condition=condition,
        digest="d",
        baseline="b",
        tree="t",
        branch="work",
        codebase_skills=skills,
        extras=False,
    )
    write_model(store.campaign(plan.campaign).template("alpha", condition) / "template.json", record)


def test_a_fit_machine_has_nothing_to_be_told(store: Store) -> None:
    assert lines(planned(), store, root=True) == []
    assert passed(planned(), store) == []


def test_a_cli_that_is_not_on_path_is_refused_with_how_to_install_it(store: Store) -> None:
    assert lines(planned("claude-code", found={"binary": None}, permission_mode="default"), store) == [
        (
            Level.REFUSE,
            (
                "Claude Code was not found as 'claude' on PATH; "
                "install it (npm install -g @anthropic-ai/claude-code) or set `binary`"
            ),
        )
    ]


def test_a_cli_that_is_not_where_the_campaign_says_is_refused(store: Store) -> None:
    plan = planned(found={"binary": None}, binary=Path("/opt/agent"))
    assert lines(plan, store) == [
        (Level.REFUSE, "Scripted agent (no model) was not found at /opt/agent; install it or set `binary`")
    ]


def test_a_cli_that_tells_no_version_is_refused_with_the_command_to_try(store: Store) -> None:
    plan = planned("claude-code", found={"cli_version": None}, permission_mode="default")
    assert lines(plan, store) == [
        (Level.REFUSE, "`/bin/x --version` did not tell a version; run it by hand and mend what it says")
    ]


def test_an_unknown_permission_mode_is_refused_with_the_known_ones(store: Store) -> None:
    assert lines(planned(permission_mode="yolo"), store) == [
        (
            Level.REFUSE,
            (
                "Scripted agent (no model) has no permission mode 'yolo'; set permission_mode to one of "
                "acceptEdits, bypassPermissions, default, dontAsk, manual, plan"
            ),
        )
    ]


def test_a_mode_that_the_cli_refuses_to_root_is_refused_to_root_alone(store: Store) -> None:
    plan = planned("claude-code")
    assert lines(plan, store, root=False) == []
    assert lines(plan, store, root=True) == [
        (
            Level.REFUSE,
            (
                "Claude Code refuses mode bypassPermissions to root; run as an unprivileged user, or on a host that is "
                'a sandbox, declare so with env = { IS_SANDBOX = "1" }, or choose another permission_mode, such as '
                "acceptEdits with allowed_tools"
            ),
        )
    ]
    assert lines(planned("claude-code", permission_mode="acceptEdits"), store, root=True) == []


def test_a_declared_sandbox_lets_root_pass_with_a_note(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    note = (Level.NOTE, "runs as root in mode bypassPermissions, since IS_SANDBOX declares this host a sandbox")
    assert lines(planned("claude-code", env={"IS_SANDBOX": "1"}), store, root=True) == [note]
    monkeypatch.setenv("IS_SANDBOX", "1")
    assert lines(planned("claude-code", pass_env=("IS_SANDBOX",)), store, root=True) == [note]
    assert lines(planned("claude-code"), store, root=True)[0][0] is Level.REFUSE


def test_a_variable_to_pass_on_that_is_not_set_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SET_KEY", "x")
    monkeypatch.delenv("UNSET_KEY", raising=False)
    assert lines(planned(pass_env=("SET_KEY", "UNSET_KEY")), store) == [
        (
            Level.REFUSE,
            "pass_env names UNSET_KEY, not set in this environment; set it where skilltrial runs, or take the name out",
        )
    ]


@pytest.mark.parametrize("name", ["CLAUDE.md", "CLAUDE.local.md", "AGENTS.md", ".mcp.json", ".git"])
def test_what_agents_read_above_their_folder_is_warned_of(store: Store, tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    assert lines(planned(), store) == [
        (
            Level.WARN,
            (
                f"{tmp_path / name} lies above the agents' working directories, where agent CLIs read it; "
                "move the workspaces with SKILLTRIAL_WORKSPACES, or move that file"
            ),
        )
    ]


def test_a_disk_that_is_nearly_full_is_warned_of(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(1 << 40, 0, 5 << 20))
    assert lines(planned(), store) == [(Level.WARN, f"only 5 MiB are free at {tmp_path}; make room before long runs")]


def test_a_copy_of_the_tested_skill_in_the_codebase_is_refused(store: Store) -> None:
    plan = planned()
    built(store, plan, CONTROL, SKILL)
    assert lines(plan, store) == [
        (
            Level.REFUSE,
            (
                f"the codebase of eval alpha (without_skill) already holds a skill '{SKILL}', so the control arm could "
                "use it; take it out of the codebase, or compare with a revision that has none"
            ),
        )
    ]


def test_another_skill_in_the_codebase_is_warned_of(store: Store) -> None:
    plan = planned()
    built(store, plan, TREATMENT, "lint")
    assert lines(plan, store) == [
        (Level.WARN, "the codebase of eval alpha (with_skill) brings its own skill 'lint', live in every arm")
    ]


def test_refusals_come_first_and_are_all_raised_at_once(store: Store, tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").touch()
    plan = planned("claude-code", found={"binary": None}, permission_mode="yolo", env={"IS_SANDBOX": "1"})
    assert [level for level, _ in lines(plan, store)] == [Level.REFUSE, Level.REFUSE, Level.WARN]
    with pytest.raises(PreflightRefused) as caught:
        passed(plan, store)
    assert caught.value.campaign == "trial"
    assert [reason.partition(";")[0] for reason in caught.value.reasons] == [
        "Claude Code was not found as 'claude' on PATH",
        "Claude Code has no permission mode 'yolo'",
    ]


def test_warnings_do_not_keep_a_campaign_from_running(store: Store, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").touch()
    assert [text.partition(" lies")[0] for text in passed(planned(), store)] == [str(tmp_path / "AGENTS.md")]


def test_without_a_word_on_root_this_process_decides(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for user, levels in ((0, [Level.REFUSE]), (1000, [])):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        assert [finding.level for finding in examine(planned("claude-code"), store)] == levels
