"""Runs pantry on a small recipe and compares what it prints: `behaviour.py CASE`."""

import subprocess
import sys
from pathlib import Path

RECIPE = "2 pcs eggs\n1 kg flour\n1 cans tomatoes\n0.3 kg butter\n"
CASES = {
    "half": (["--servings", "1"], "1 pcs eggs\n0.25 kg flour\n1 cans tomatoes\n0.07 kg butter\n"),
    "third": (["--servings", "3"], "2 pcs eggs\n0.75 kg flour\n1 cans tomatoes\n0.22 kg butter\n"),
    "plain": ([], "2 pcs eggs\n1 kg flour\n1 cans tomatoes\n0.3 kg butter\n"),
    "sorted": (["--sort"], "0.3 kg butter\n2 pcs eggs\n1 kg flour\n1 cans tomatoes\n"),
    "legacy": (["--legacy"], None),
}

if __name__ == "__main__":
    options, expected = CASES[sys.argv[1]]
    Path("recipe.txt").write_text(RECIPE, "utf-8")
    ran = subprocess.run([sys.executable, "-m", "pantry", *options, "recipe.txt"], capture_output=True, text=True)
    if expected is None:
        problem = "" if ran.returncode == 2 else f"the option still works (exit code {ran.returncode})"
    else:
        problem = "" if ran.stdout == expected else f"printed {ran.stdout!r} {ran.stderr!r}, expected {expected!r}"
    print(problem or "pantry: ok")
    sys.exit(bool(problem))
