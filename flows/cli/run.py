"""`skilltrial run`: run a campaign, or what is missing of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from skilltrial.flows.cli.overrides import NO_OVERRIDES, Overrides


def run(
    target: Path,
    *,
    overrides: Annotated[Overrides, Parameter(name="*")] = NO_OVERRIDES,
    yes: Annotated[bool, Parameter(negative="")] = False,
    json: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Run a campaign: dispatch the missing cells, ingest, grade, and print the verdict.

    Exit codes: 0 every cell is settled, 1 error, 2 usage or invalid input, 3 some cells are unsettled (run the
    same command again to try them), 4 refused by preflight before anything was dispatched.

    Parameters
    ----------
    target
        A campaign.toml, or a folder with SKILL.md and evals/evals.json.
    yes
        Spend money without asking.
    json
        Print the benchmark as JSON on stdout; progress goes to stderr.
    """
    from skilltrial.data.store import Store
    from skilltrial.flows.cli.running import run_campaign
    from skilltrial.tasks.planning.plan import make_plan

    store = Store.open(overrides.home)
    return run_campaign(make_plan(overrides.spec_of(target)), store, cells=None, yes=yes, json=json)
