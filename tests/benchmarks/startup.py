"""What the command line costs before it does anything: `python tests/benchmarks/startup.py [RUNS]`.

Prints the median wall time of `skilltrial --help` beside that of `python -c pass`, taken in turns so that
both meet the same machine. Figures of one machine, one run: compare the ratio.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path


def timed(command: list[str]) -> float:
    """Milliseconds of wall time that a command takes; it must succeed."""
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - begin) * 1000.0


def main() -> None:
    """Print the figures."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    bare = [sys.executable, "-c", "pass"]
    help_page = [str(Path(sys.executable).with_name("skilltrial")), "--help"]
    for command in (bare, help_page):
        timed(command)  # the first start reads from disk and writes byte code
    pairs = [(timed(bare), timed(help_page)) for _ in range(runs)]
    bare_ms, help_ms = (statistics.median(column) for column in zip(*pairs, strict=True))
    print(f"python -c pass:     {bare_ms:7.1f} ms  (median of {runs})")
    print(f"skilltrial --help:  {help_ms:7.1f} ms  (median of {runs})")
    print(f"ratio:              {help_ms / bare_ms:7.1f}")


if __name__ == "__main__":
    main()
