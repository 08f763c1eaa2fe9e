"""`command_check`: a command line run in a copy of the final environment, with files that the agent never saw.

Every check, and every cell of its matrix, gets a copy of its own: none sees what another one left, and the
environment itself stays as the agent left it. A command that takes longer than its limit has failed; a command
that could not be run at all has no verdict.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from skilltrial.data.errors import Terminal
from skilltrial.data.evals import CommandCheck
from skilltrial.data.grading import Verdict
from skilltrial.data.store import AttemptFolder, write_bytes
from skilltrial.tasks.grading.copying import copy_environment, remove_tree
from skilltrial.tasks.grading.patterns import search
from skilltrial.tasks.grading.shell import Output, ShellResult, run_shell
from skilltrial.tasks.planning.paths import clean
from skilltrial.tasks.staging.layers import lay_over

INHERITED: Final = ("PATH", "LANG", "LC_ALL", "TZ")
"""The only variables that a check takes over: none that could hold a secret or lead git elsewhere."""

_SCRATCH: Final = ".work-"
_EXCERPT: Final = 400
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._=-]+")


class HeldOutMissing(Terminal):
    """The campaign's frozen files lack one that a check asks for."""


@dataclass(frozen=True, slots=True)
class _CellResult:
    """What one cell of the matrix found."""

    passed: bool | None
    evidence: str
    artifacts: tuple[str, ...]


def check(assertion: CommandCheck, heldout: Path, attempt: AttemptFolder, *, ticket: int | None = None) -> Verdict:
    """Decide a command check. `heldout` is the frozen tree of the eval's setup files.

    Output goes to `grading/commands/<assertion>/<cell>.{stdout,stderr}`. Raises `OSError` or `Terminal` when the
    check cannot be carried out, `CheckCancelled` when the run ended since `process.ticket` was drawn.
    """
    folder = attempt.grading / "commands" / file_name(assertion.id)
    shutil.rmtree(folder, ignore_errors=True)
    results: dict[str, _CellResult] = {}
    for index, cell in enumerate(matrix_cells(assertion.matrix), 1):
        label = ",".join(f"{name}={value}" for name, value in cell.items())
        output = folder / (file_name(f"{index}-{label}") if cell else "output")
        results[label] = _run_cell(assertion, cell, heldout, attempt, output, ticket)
    artifacts = tuple(path for result in results.values() for path in result.artifacts)
    if not assertion.matrix:
        (result,) = results.values()
        return _verdict(result.passed, result.evidence, artifacts)
    failed = [f"{label} ({result.evidence})" for label, result in results.items() if not result.passed]
    outcomes = [result.passed for result in results.values()]
    passed = False if False in outcomes else None if None in outcomes else True
    evidence = f"{outcomes.count(True)} of {len(outcomes)} matrix cells passed"
    return _verdict(passed, "; ".join([evidence, *failed]), artifacts)


def matrix_cells(matrix: Mapping[str, tuple[str, ...]]) -> list[dict[str, str]]:
    """Every combination: names sorted, values as declared, the last name changing fastest; one empty cell for none."""
    names = sorted(matrix)
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*(matrix[name] for name in names))]


def file_name(text: str) -> str:
    """A text as the name of one file: as it is if it is plain, else simplified and told apart by a digest."""
    plain = _UNSAFE.sub("_", text)
    if plain == text and len(text) <= 100 and not text.startswith("."):
        return text
    return f"{plain.lstrip('.')[:80]}-{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:8]}"


def remove_leftovers(attempt: AttemptFolder) -> None:
    """Remove copies that a killed grading left behind. Only one process grades an attempt at a time."""
    for folder in attempt.grading.glob(f"{_SCRATCH}*"):
        remove_tree(folder)


def _run_cell(
    assertion: CommandCheck,
    cell: Mapping[str, str],
    heldout: Path,
    attempt: AttemptFolder,
    output: Path,
    ticket: int | None,
) -> _CellResult:
    with _bench(attempt) as (project, home, scratch):
        notes = copy_environment(attempt.environment.resolve(strict=True), project)
        _inject(assertion.setup_files, heldout, project)
        env = {
            **{name: os.environ[name] for name in INHERITED if name in os.environ},
            "HOME": str(home),
            "TMPDIR": str(scratch),
            "GIT_CONFIG_NOSYSTEM": "1",
            # without a repository of its own the copy must not be taken for part of another one
            "GIT_CEILING_DIRECTORIES": str(project.parent),
            **assertion.env,
            **cell,
        }
        result = run_shell(assertion.command, cwd=project, env=env, timeout_s=assertion.timeout_s, ticket=ticket)
    artifacts = []
    for suffix, stream in (("stdout", result.stdout), ("stderr", result.stderr)):
        path = output.with_name(f"{output.name}.{suffix}")
        write_bytes(path, stream.excerpt)
        artifacts.append(path.relative_to(attempt.root).as_posix())
    passed, evidence = _judge(assertion, result)
    if notes:
        evidence += f" [{', '.join(notes)}]"
    return _CellResult(passed, evidence, tuple(artifacts))


def _judge(assertion: CommandCheck, result: ShellResult) -> tuple[bool | None, str]:
    if result.timed_out:
        return False, f"timed out after {assertion.timeout_s:g} s{_said(result)}"
    assert result.exit_code is not None
    if result.exit_code < 0:
        return False, f"ended by signal {-result.exit_code}{_said(result)}"
    if result.exit_code != assertion.expect_exit_code:
        return False, f"exit code {result.exit_code}, expected {assertion.expect_exit_code}{_said(result)}"
    said = f"exit code {result.exit_code} as expected"
    if assertion.expect_stdout is None:
        return True, said
    pattern = assertion.expect_stdout
    if any(search(pattern, text) for text in _searched(result.stdout)):
        return True, f"{said}; stdout matches /{pattern}/"
    if not result.stdout.whole:
        size = len(result.stdout.head)
        return None, f"stdout has {result.stdout.size} bytes, and /{pattern}/ is not in the first {size} or at the end"
    return False, f"{said}; stdout does not match /{pattern}/{_said(result)}"


def _searched(output: Output) -> list[str]:
    parts = [bytes(output.head)] if output.whole else [bytes(output.head), output.tail]
    return [part.decode(errors="replace") for part in parts]


def _said(result: ShellResult) -> str:
    """The end of what the command wrote, stderr before stdout, as a person would look for it."""
    text = (result.stderr.tail or result.stdout.tail).decode(errors="replace").strip()
    shown = text if len(text) <= _EXCERPT else "…" + text[-_EXCERPT:]
    return f": {shown}" if shown else ""


def _verdict(passed: bool | None, evidence: str, artifacts: tuple[str, ...]) -> Verdict:
    error = evidence if passed is None else None
    return Verdict(passed=passed, evidence=evidence, error=error, artifacts=artifacts)


def _inject(setup_files: tuple[str, ...], heldout: Path, project: Path) -> None:
    """Put the held-out files of one check into the copy, in place of whatever the agent has put there."""
    wanted = {clean(name) for name in setup_files}
    for name in sorted(wanted):
        if not os.path.lexists(heldout / name):
            raise HeldOutMissing(f"held-out file {name} is not in {heldout}; run the campaign again to freeze it")

    def skip(name: str) -> bool:
        return not any(name == one or name.startswith(f"{one}/") or one.startswith(f"{name}/") for one in wanted)

    if wanted:
        lay_over(heldout, project, root=project, skip=skip, clear_the_way=True)


@contextmanager
def _bench(attempt: AttemptFolder) -> Iterator[tuple[Path, Path, Path]]:
    """Folders for the copy, for `HOME` and for `TMPDIR`, removed afterwards. TMPDIR is short, for sockets."""
    attempt.grading.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=_SCRATCH, dir=attempt.grading))
    scratch = Path(tempfile.mkdtemp())
    try:
        (work / "home").mkdir()
        yield work / "project", work / "home", scratch
    finally:
        remove_tree(work)
        remove_tree(scratch)
