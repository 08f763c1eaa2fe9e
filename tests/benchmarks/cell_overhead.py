"""What a cell costs besides its agent: `python tests/benchmarks/cell_overhead.py [CELLS]`.

Runs a campaign of no-op cells with the bundled agent through a private Prefect server, then again with
everything settled, and prints milliseconds for each cell. Figures of one machine, one run: compare ratios.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SCRIPT = {"conversations": [{"match": ".", "steps": [{"say": "Nothing to do."}]}]}


def write_campaign(folder: Path, cells: int, jobs: int) -> Path:
    """A skill, one eval and a campaign file whose two conditions make `cells` cells."""
    skill = folder / "noop"
    (skill / "evals").mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: noop\ndescription: Does nothing.\n---\nDo nothing.\n")
    evals = {"skill_name": "noop", "evals": [{"id": "nothing", "prompt": "Do nothing.", "expected_output": "-"}]}
    (skill / "evals" / "evals.json").write_text(json.dumps(evals))
    (folder / "script.json").write_text(json.dumps(SCRIPT))
    campaign = folder / "campaign.toml"
    campaign.write_text(
        f'name = "noop"\nskill = "noop"\nharness = "scripted"\nrepetitions = {cells // 2}\njobs = {jobs}\n'
        '[harness_inputs]\nscript = "script.json"\n'
    )
    return campaign


def timed(*command: str, environment: dict[str, str]) -> float:
    """Wall seconds of a command that must succeed."""
    begin = time.perf_counter()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main() -> None:
    """Print the figures."""
    cells, jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 200, 2
    with tempfile.TemporaryDirectory(prefix="overhead-") as scratch:
        folder = Path(scratch)
        environment = {**os.environ, "SKILLTRIAL_HOME": str(folder / "home")}
        skilltrial = str(Path(sys.executable).with_name("skilltrial"))
        few = write_campaign(folder / "few", 2, jobs)
        many = write_campaign(folder / "many", cells, jobs)
        timed(skilltrial, "run", str(few), "--name", "warm-up", environment=environment)
        base = timed(skilltrial, "run", str(few), "--name", "few", environment=environment)
        first = timed(skilltrial, "run", str(many), environment=environment)
        again = timed(skilltrial, "run", str(many), environment=environment)
        agent = [sys.executable, "-I", "-S", str(bundled_agent()), "--script", str(folder / "many/script.json")]
        alone = agent_alone(agent)
    print(f"{cells} no-op cells, {jobs} jobs, {os.cpu_count()} processors")
    print(f"whole command, 2 cells:        {base:8.2f} s   (start of Prefect and its server included)")
    print(f"whole command, {cells} cells:      {first:8.2f} s")
    print(f"whole command, all settled:    {again:8.2f} s")
    print(f"the agent process alone:       {alone * 1000:8.1f} ms")
    print(f"wall clock for each cell:      {(first - base) / (cells - 2) * 1000:8.1f} ms")
    print(f"the same, times jobs:          {(first - base) / (cells - 2) * jobs * 1000:8.1f} ms of a worker's time")
    print(f"each settled cell, run again:  {max(again - base, 0) / (cells - 2) * 1000:8.1f} ms")


def bundled_agent() -> Path:
    """The bundled agent's program."""
    from skilltrial.tasks.dispatch.command import bundled_agent as path

    return Path(path())


def agent_alone(command: list[str]) -> float:
    """Median wall seconds of the agent without any campaign around it."""
    took = []
    for number in range(11):
        identifier = f"00000000-0000-4000-8000-{number:012d}"
        begin = time.perf_counter()
        subprocess.run(
            [*command, "--session-id", identifier], input=b"Do nothing.", check=True, stdout=subprocess.DEVNULL
        )
        took.append(time.perf_counter() - begin)
    return sorted(took)[5]


if __name__ == "__main__":
    main()
