"""Which real CLI the tests of this folder run, told in the header and the summary of every test run.

`SKILLTRIAL_CLAUDE` names the executable, else `claude` on PATH is taken. Without one the tests skip, loudly;
with `SKILLTRIAL_REQUIRE_CLAUDE=1` they fail instead.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

MEASURED = "2.1.332"
"""The version whose behaviour the tests state."""


@dataclass(frozen=True, slots=True)
class Lane:
    """The CLI found and its version, or why there is none."""

    binary: Path | None
    version: str
    missing: str

    @property
    def required(self) -> bool:
        """Whether tests without a CLI fail."""
        return os.environ.get("SKILLTRIAL_REQUIRE_CLAUDE") == "1"


@cache
def lane() -> Lane:
    """The CLI that this test run uses."""
    named = os.environ.get("SKILLTRIAL_CLAUDE")
    found = named or shutil.which("claude")
    if not found:
        return Lane(
            None, "", "no `claude` on PATH and SKILLTRIAL_CLAUDE is not set (.ci/install-claude FOLDER gets one)"
        )
    if not os.access(found, os.X_OK):
        return Lane(None, "", f"SKILLTRIAL_CLAUDE={named} is not an executable file")
    with tempfile.TemporaryDirectory(prefix="claude-version-") as home:
        environment = {"PATH": os.environ["PATH"], "HOME": home, "CLAUDE_CONFIG_DIR": home, "DISABLE_AUTOUPDATER": "1"}
        command = [found, "--version"]
        try:
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired) as error:
            return Lane(None, "", f"`{found} --version` failed: {error}")
    if done.returncode:
        return Lane(None, "", f"`{found} --version` ended with {done.returncode}: {done.stderr.strip()[:200]}")
    return Lane(Path(found).absolute(), done.stdout.strip(), "")


def pytest_report_header() -> str:
    """One line that says which CLI the run uses."""
    found = lane()
    told = f"{found.binary}, {found.version}" if found.binary else f"none: {found.missing}"
    return f"real CLI: {told} (behaviour stated as of {MEASURED})"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what the real CLI was, or that its tests did not run, where nobody overlooks it."""
    found = lane()
    ended = {kind: _of_lane(terminalreporter, kind) for kind in ("passed", "failed", "error", "skipped")}
    if not any(ended.values()):
        return
    if found.binary is None and not found.required:
        terminalreporter.write_sep("!", f"real-CLI lane SKIPPED: {found.missing}", red=True, bold=True)
    else:
        counts = ", ".join(f"{count} {kind}" for kind, count in ended.items() if count)
        terminalreporter.write_line(f"real-CLI lane: {counts}, with {found.version or 'no CLI'}")


def _of_lane(terminalreporter: pytest.TerminalReporter, kind: str) -> int:
    reports = terminalreporter.stats.get(kind, ())
    return sum(1 for report in reports if str(getattr(report, "nodeid", "")).startswith("tests/real_cli/"))
