"""How a running campaign looks: the live panel on a narrow terminal, and the plain lines."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from skilltrial.data.store import AttemptFolder, Store
from skilltrial.flows.progress import Panel, Plain
from tests.analysis.trials import TREATMENT, Trial, make_plan

LONG = "a text that is far longer than what is left of the line beside the cell's name and its clock, by any count"


def console(width: int = 80) -> Console:
    return Console(file=io.StringIO(), width=width, color_system=None, force_terminal=False)


def text(shown: Console) -> str:
    assert isinstance(shown.file, io.StringIO)
    return shown.file.getvalue()


@pytest.fixture
def panel(store: Store, tmp_path: Path) -> Panel:
    """A panel over one running cell whose newest event is a long text."""
    plan = make_plan()
    made = Panel(console())
    made.planned(plan, [])
    made.stage("dispatch")
    attempt = AttemptFolder(tmp_path / "attempt-1")
    (attempt.root / "round-1").mkdir(parents=True)
    event = '{"type": "assistant", "message": {"content": [{"type": "text", "text": "' + LONG + '"}]}}\n'
    (attempt.root / "round-1" / "events.jsonl").write_text(event)
    made.started(Trial(plan, store).cell("alpha", TREATMENT), attempt)
    return made


def lines_of(panel: Panel) -> list[str]:
    shown = console()
    shown.print(panel.render())
    return [line.rstrip() for line in text(shown).splitlines()]


def test_each_part_of_the_panel_has_lines_of_its_own_at_80_columns(panel: Panel) -> None:
    head, bar, states, cell = lines_of(panel)
    assert head == "trial  dispatch  0:00"
    assert set(bar) <= {"━"}
    assert states == "0 settled · 1 running · 7 waiting · cost so far not told"
    assert cell.startswith("alpha/with_skill/r1  0:00  a text that is far longer")
    assert cell.endswith("…")


def test_the_panel_tells_why_no_cell_starts(panel: Panel) -> None:
    panel.paused(90.5, "rate_limited", None)
    assert lines_of(panel)[3] == "rate_limited: no cell starts for 1:30"


def test_the_panel_says_nothing_of_a_wait_that_is_over(panel: Panel) -> None:
    panel.paused(0.0, "rate_limited", None)
    assert len(lines_of(panel)) == 4


def test_plain_lines_tell_who_waits_and_for_how_long() -> None:
    shown = console()
    with Plain(shown) as plain:
        plain.paused(30.2, "rate_limited", None)
        plain.paused(5.0, "network", "alpha/with_skill/r1")
    assert text(shown).splitlines() == [
        "rate_limited: no cell starts for 30 s",
        "network: alpha/with_skill/r1 is not tried again for 5 s",
    ]
