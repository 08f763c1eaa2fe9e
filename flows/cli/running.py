"""What `run` and `retry` share: asking before money is spent, running the flow, telling the result."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from skilltrial.flows.cli.output import complain, emit_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from skilltrial.data.plan import CampaignPlan, Forecast
    from skilltrial.data.store import Store


def run_campaign(plan: CampaignPlan, store: Store, *, cells: tuple[str, ...] | None, yes: bool, json: bool) -> int:
    """Run the flow for a plan that was made for show; returns the exit code of the command."""
    from skilltrial.flows.runtime import prefect_for
    from skilltrial.tasks.planning.forecast import forecast
    from skilltrial.tasks.preflight.checks import passed

    passed(plan, store)  # nobody is asked for money, or kept waiting, for what cannot work; the flow looks again
    expected = forecast(plan, store.campaign(plan.campaign))
    with prefect_for(store.home) as ready:
        if expected.costs_money and expected.dispatches and not yes and not _agreed(plan, expected):
            complain("nothing was dispatched; answer yes at a terminal, or give --yes, to spend money")
            return 2
        _run_flow(plan, store, cells, json, ready)
    return _report(plan, store, json)


def _agreed(plan: CampaignPlan, expected: Forecast) -> bool:
    """Ask the person at the terminal; without one, nobody can agree."""
    limit = "without any limit" if expected.budget_usd is None else f"up to ${expected.budget_usd:.2f}"
    complain(
        f"campaign {plan.campaign}: {expected.dispatches} of {expected.cells} cells call a paid model through "
        f"{plan.harness.label} {plan.harness.cli_version}, {limit} in their first try"
    )
    if not sys.stdin.isatty():
        return False
    print("Go on? [y/N] ", end="", flush=True, file=sys.stderr)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _run_flow(
    plan: CampaignPlan, store: Store, cells: tuple[str, ...] | None, json: bool, ready: Callable[[], None]
) -> None:
    """Run, watched; raises what the flow raised. Unsettled cells are no error here: the report tells them."""
    from rich.console import Console

    from skilltrial.flows.progress import Panel, Plain
    from skilltrial.flows.runtime import server_needed

    console = Console(stderr=json)
    with Panel(console) if console.is_terminal else Plain(console) as watching:  # from here on there is life to see
        from skilltrial.flows.campaign import campaign
        from skilltrial.flows.observing import observed_by

        ready()  # after the imports, which take a second in which the server starts
        spec = plan.spec.model_copy(update={"name": plan.campaign})
        with observed_by(watching), server_needed():
            state = campaign(spec, store.home, cells, return_state=True)
    error = state.result(raise_on_failure=False)
    if isinstance(error, BaseException):
        with server_needed():
            raise error


def _report(plan: CampaignPlan, store: Store, json: bool) -> int:
    from rich.console import Console

    from skilltrial.data.benchmark import Benchmark
    from skilltrial.data.store import read_model
    from skilltrial.tasks.analysis.summary import render

    folder = store.campaign(plan.campaign)
    benchmark = read_model(folder.benchmark_path, Benchmark)
    if json:
        emit_json(benchmark.model_dump(mode="json"))
    else:
        Console().print(render(benchmark, home=store.home), crop=False)  # a path is one piece, however long
    return 3 if benchmark.cells.unsettled else 0
