"""How a running campaign looks: the live panel on a narrow terminal, and the plain lines."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from skilltrial.data.attempt import AttemptRecord
from skilltrial.data.outcomes import Outcome
from skilltrial.data.store import AttemptFolder, Store
from skilltrial.flows.progress import Panel, Plain, newest_event
from tests.analysis.trials import CONTROL, TREATMENT, Trial, make_plan

CAPTURES = Path(__file__).parents[1] / "fixtures" / "captures" / "claude"
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


def ended(trial: Trial, condition: str, outcome: Outcome = Outcome.COMPLETED, **values: object) -> AttemptRecord:
    """The record of a finished attempt at a cell of that arm."""
    record = trial.attempt(trial.cell("alpha", condition), outcome, **values).record()
    assert record is not None
    return record


def test_plain_lines_tell_the_plan_the_warnings_and_how_each_attempt_ended(store: Store) -> None:
    shown, trial = console(), Trial(make_plan(), store)
    treated, control = trial.cell("alpha", TREATMENT), trial.cell("alpha", CONTROL)
    with Plain(shown) as plain:
        plain.stage("plan")
        plain.planned(trial.plan, [ended(trial, CONTROL)])
        plain.warned(["[bold]disk[/bold] is nearly full"])
        plain.started(treated, AttemptFolder(Path("attempt-1")))
        plain.finished(treated, ended(trial, TREATMENT, Outcome.NETWORK, reason="api_timeout", duration_ms=2_340))
        plain.finished(treated, ended(trial, TREATMENT))
        plain.finished(control, ended(trial, CONTROL, Outcome.MAX_TURNS, attempt=1, duration_ms=61_000))
    assert text(shown).splitlines() == [
        "campaign trial: 8 cells, 1 settled, 7 to dispatch",
        "warning: [bold]disk[/bold] is nearly full",
        "[1/8] alpha/with_skill/r1 network api_timeout 2.3 s",
        "[2/8] alpha/with_skill/r1 completed 1.0 s (attempt 2)",
        "[3/8] alpha/without_skill/r1 max_turns 61.0 s",
    ]


def test_a_plain_line_is_never_broken(store: Store) -> None:
    shown = console(width=20)
    with Plain(shown) as plain:
        plain.warned([LONG])
    assert text(shown).splitlines() == [f"warning: {LONG}"]


def test_the_panel_counts_cells_by_state_and_adds_up_what_is_told_of_money(panel: Panel, store: Store) -> None:
    trial = Trial(make_plan(), store)
    panel.finished(trial.cell("alpha", TREATMENT), ended(trial, TREATMENT, cost_usd=0.25))
    panel.finished(trial.cell("alpha", CONTROL), ended(trial, CONTROL, Outcome.NETWORK))
    panel.finished(trial.cell("alpha", CONTROL), ended(trial, CONTROL, cost_usd=0.5))
    shown = lines_of(panel)
    assert " ".join(shown[2:]) == "2 settled · 0 running · 2 completed · 1 network · 6 waiting · cost so far $0.75"


def test_cells_that_were_settled_before_count_from_the_start(store: Store) -> None:
    trial, panel = Trial(make_plan(), store), Panel(console())
    panel.planned(trial.plan, [ended(trial, TREATMENT, cost_usd=9.0)])
    assert lines_of(panel)[2] == "1 settled · 0 running · 7 waiting · cost so far not told"


def test_the_panel_prints_warnings_where_they_stay(store: Store) -> None:
    shown = console()
    with Panel(shown) as panel:
        panel.warned(["[x] stays"])
    assert "warning: [x] stays" in text(shown)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (1, "system init"),
        (2, 'Bash {"command":"ls","description":"run ls"}'),
        (3, "tool answered"),
        (11, "system permission_denied"),
        (12, "tool failed"),
    ],
)
def test_the_newest_event_of_a_real_stream_is_told_in_a_few_words(tmp_path: Path, lines: int, words: str) -> None:
    stream = (CAPTURES / "b-bash-acceptEdits.jsonl").read_bytes().splitlines(keepends=True)
    write_events(tmp_path, 1, b"".join(stream[:lines]))
    assert newest_event(AttemptFolder(tmp_path)) == words
    # a line that is still being written tells nothing yet
    write_events(tmp_path, 1, b"".join(stream[:lines]) + stream[lines][:40])
    assert newest_event(AttemptFolder(tmp_path)) == words


def test_the_newest_event_is_one_of_the_newest_round(tmp_path: Path) -> None:
    assert newest_event(AttemptFolder(tmp_path)) == ""
    for number in (2, 9, 10):
        write_events(tmp_path, number, b'{"type": "round", "subtype": "%d"}\n' % number)
    assert newest_event(AttemptFolder(tmp_path)) == "round 10"


@pytest.mark.parametrize(
    "noise", [b"", b"\n", b"not JSON\n", b"[1]\n", b"{}\n", b'{"message": {"content": [1, {"type": "text"}]}}\n']
)
def test_what_says_nothing_is_passed_over(tmp_path: Path, noise: bytes) -> None:
    write_events(tmp_path, 1, b'{"type": "result", "subtype": "success"}\n' + noise)
    assert newest_event(AttemptFolder(tmp_path)) == "result success"


def write_events(attempt: Path, number: int, content: bytes) -> None:
    """The stream of one round of an attempt."""
    path = AttemptFolder(attempt).events(number)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
