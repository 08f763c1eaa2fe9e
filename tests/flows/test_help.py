"""The help page comes without the libraries that only the commands need."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import cache

import pytest

from skilltrial.flows.cli import app

IMPORTED = re.compile(r"^import time:.*\| +(\S+)$", re.MULTILINE)


@cache
def help_page() -> tuple[str, frozenset[str]]:
    """What `skilltrial --help` prints, and the top-level packages it imports, in a process of its own."""
    code = "import sys; sys.argv = ['skilltrial', '--help']; from skilltrial.flows.cli import main; main()"
    command = [sys.executable, "-X", "importtime", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout, frozenset(name.split(".")[0] for name in IMPORTED.findall(done.stderr))


@pytest.mark.parametrize(
    "command", ["init", "validate", "plan", "run", "status", "retry", "tables", "inspect", "schema"]
)
def test_help_lists_the_command(command: str) -> None:
    assert re.search(rf"^\W*{command} +\w", help_page()[0], re.MULTILINE)


@pytest.mark.parametrize("package", ["prefect", "polars", "pyarrow", "pydantic", "starlette", "uvicorn", "httpx"])
def test_help_does_not_import(package: str) -> None:
    imported = help_page()[1]
    assert "skilltrial" in imported  # the list of imports was really read
    assert package not in imported


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"]])
def test_help_tells_the_exit_codes(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert app(arguments) is None
    said = " ".join(capsys.readouterr().out.split())
    assert "3 finished, some cells unsettled; 4 refused, nothing dispatched." in said


def test_a_reader_that_has_enough_is_no_fault() -> None:
    code = "import sys; sys.argv = ['skilltrial', 'schema', 'plan']; from skilltrial.flows.cli import main; main()"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as schema:
        assert schema.stdout is not None
        assert schema.stderr is not None
        schema.stdout.close()
        assert schema.stderr.read() == b""
    assert schema.returncode == 141


@pytest.mark.parametrize("arguments", [["tables", "cells", "--head", "-1"], ["inspect", "x.jsonl", "--limit", "-1"]])
def test_a_negative_number_of_rows_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        app(arguments)
    assert refused.value.code not in (None, 0)
    assert "Must be >= 0" in capsys.readouterr().err
