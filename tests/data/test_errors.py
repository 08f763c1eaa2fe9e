"""Errors reach the person at the terminal with the same words, whichever process they come from."""

from __future__ import annotations

import pickle
import pkgutil
from collections.abc import Iterator
from importlib import import_module

import pytest

import skilltrial.data
import skilltrial.descriptors
import skilltrial.flows
import skilltrial.tasks
from skilltrial.data.errors import (
    AttemptUnsettled,
    CampaignStopped,
    GitFailed,
    InvalidInput,
    NotBuiltYet,
    PreflightRefused,
    Problem,
    SkilltrialError,
    StoreConflict,
    Terminal,
    Transient,
    UnknownName,
)
from skilltrial.data.tables.columns import TableMismatch
from skilltrial.flows.runtime import ServerFailed, ServerLost
from skilltrial.tasks.analysis.fragments import Damage, DamagedFragments
from skilltrial.tasks.analysis.sql import BadQuery, NoDuckDB
from skilltrial.tasks.analysis.tables import NoTables
from skilltrial.tasks.dispatch.process import SupervisorLost
from skilltrial.tasks.grading.command import HeldOutMissing
from skilltrial.tasks.grading.diff import CannotMeasure
from skilltrial.tasks.grading.shell import CheckCancelled
from skilltrial.tasks.planning.freeze import SourceChanged
from skilltrial.tasks.staging.codebase import CodebaseChanged
from skilltrial.tasks.staging.layers import CannotStage

ERRORS: list[tuple[SkilltrialError, int, str]] = [
    (
        InvalidInput([Problem("evals.json", "evals[0].id", "A b", "has not the right form", "^[a-z]+$")]),
        2,
        "evals.json: evals[0].id: has not the right form (found 'A b'); allowed: ^[a-z]+$",
    ),
    (
        UnknownName("harness", "claud", ["claude-code", "scripted"]),
        2,
        "there is no harness 'claud'; known: claude-code, scripted",
    ),
    (NotBuiltYet("this campaign", "judges (evals a)"), 2, "this campaign needs judges (evals a), not yet built"),
    (GitFailed(("fetch", "-q"), "/r", 128, "fatal: no\n"), 1, "git fetch -q failed in /r (128): fatal: no"),
    (
        PreflightRefused("trial", ["no CLI", "no key"]),
        4,
        "campaign 'trial' was refused before anything was dispatched:\n  - no CLI\n  - no key",
    ),
    (StoreConflict("in use; wait"), 1, "in use; wait"),
    (
        AttemptUnsettled("a/b/r1", 2, "network", "api_timeout", "/f"),
        1,
        "a/b/r1: attempt 2 ended as network (api_timeout); see /f",
    ),
    (
        CampaignStopped("a/b/r1", "auth", "not_logged_in"),
        3,
        "dispatch stopped after a/b/r1: auth (not_logged_in); no further cell was started",
    ),
    (TableMismatch("usage", "model", "not declared"), 1, "table usage, column model: not declared"),
    (
        ServerFailed("http://127.0.0.1:1/api", "it wrote nothing"),
        1,
        "the private Prefect server at http://127.0.0.1:1/api did not start: it wrote nothing",
    ),
    (
        ServerLost("connection refused"),
        1,
        (
            "the Prefect server cannot be reached (connection refused); what was finished is kept. When it answers, or "
            "without PREFECT_API_URL, run the same command again to go on"
        ),
    ),
    (
        DamagedFragments("trial", [Damage("a/b/r1", "/f", "no footer")]),
        1,
        (
            "campaign 'trial' has 1 damaged table fragment(s); delete the `tables` folders that hold them and run the "
            "campaign again, which reads and grades these cells anew without dispatching them:\n"
            "  - a/b/r1: /f: no footer"
        ),
    ),
    (NoDuckDB(), 2, "--sql needs DuckDB, which is not installed: pip install duckdb"),
    (BadQuery("no such table"), 2, "the query cannot be answered: no such table"),
    (
        NoTables("usage", "trial", "/home"),
        1,
        (
            "there is no table usage of campaign 'trial' below /home; `skilltrial run` writes it "
            "when a campaign's cells are graded"
        ),
    ),
    (
        SupervisorLost("/round-1", -9, "killed\n"),
        1,
        "the supervisor of /round-1 ended without a record (-9): killed",
    ),
    (
        SourceChanged("skill /s"),
        1,
        (
            "skill /s changed while it was copied into the campaign, or holds links that lead out of it; run the same "
            "command again when nothing writes there"
        ),
    ),
    (HeldOutMissing("gone"), 1, "gone"),
    (CannotMeasure("gone"), 1, "gone"),
    (CheckCancelled(), 1, "the run ended before the check did"),
    (CodebaseChanged("moved"), 1, "moved"),
    (CannotStage("a/b: no"), 1, "a/b: no"),
]
PROGRAMS = {"agent", "supervisor", "warden"}  # run by path, with the standard library alone


def family(parent: type[SkilltrialError]) -> Iterator[type[SkilltrialError]]:
    for child in parent.__subclasses__():
        yield child
        yield from family(child)


def test_every_error_of_the_project_is_tried_here() -> None:
    for package in (skilltrial.data, skilltrial.descriptors, skilltrial.tasks, skilltrial.flows):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if module.name.rpartition(".")[2] not in PROGRAMS and ".examples" not in module.name:
                import_module(module.name)
    ours = {kind for kind in family(SkilltrialError) if kind.__module__.startswith("skilltrial.")}
    tried = {type(error).__name__ for error, _, _ in ERRORS}
    assert {kind.__name__ for kind in ours} == {*tried, "Terminal", "Transient"}


@pytest.mark.parametrize(("error", "code", "words"), ERRORS, ids=lambda value: type(value).__name__)
def test_an_error_keeps_its_words_values_and_exit_code_in_another_process(
    error: SkilltrialError, code: int, words: str
) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), str(error)) == (words, words)
    assert vars(copy) == vars(error)
    assert copy.args == error.args
    assert (copy.exit_code, error.exit_code) == (code, code)


@pytest.mark.parametrize(("error", "code", "words"), ERRORS, ids=lambda value: type(value).__name__)
def test_an_error_is_either_worth_another_try_or_not(error: SkilltrialError, code: int, words: str) -> None:
    assert isinstance(error, Terminal) != isinstance(error, Transient)


def test_a_problem_names_only_what_it_has() -> None:
    assert str(Problem("f", "", None, "does not exist")) == "f: does not exist"
    assert str(Problem("f", "a.b", 0, "is too small")) == "f: a.b: is too small (found 0)"


def test_a_long_value_is_shown_cut() -> None:
    shown = str(Problem("f", "a", "x" * 500, "is too long"))
    assert shown == f"f: a: is too long (found '{'x' * 118}…)"


def test_all_problems_are_told_at_once() -> None:
    assert (
        str(InvalidInput(Problem("f", where, None, "is missing") for where in "ab"))
        == "f: a: is missing\nf: b: is missing"
    )
