"""Checks the change notes of a project: `notes.py [NUMBER.KIND …]`, exactly these besides 52.added.

`BREAKING` names one that must be marked as breaking. Prints `notes: ok`, or every fault.
"""

import os
import re
import sys
from pathlib import Path

KINDS = {"added", "changed", "deprecated", "removed", "fixed", "security"}
NAME = re.compile(r"^(\d+)\.([a-z]+)\.md$")
CODE = re.compile(r"\.py\b|\w\(\)|\b[a-z]+_[a-z]+\b")


def faults(folder: Path, expected: set[str], breaking: str) -> list[str]:
    found = {path.name for path in folder.glob("*") if path.name != "52.added.md"} if folder.is_dir() else set()
    wrong = [f"{name} is missing" for name in sorted({f"{stem}.md" for stem in expected} - found)]
    wrong += [f"{name} is not wanted" for name in sorted(found - {f"{stem}.md" for stem in expected})]
    for name in sorted(found):
        match = NAME.match(name)
        if match is None or match[2] not in KINDS:
            wrong.append(f"{name}: is not NUMBER.KIND.md")
            continue
        text = (folder / name).read_text("utf-8").rstrip("\n")
        marked = text.startswith("**Breaking:** ")
        sentence = text.removeprefix("**Breaking:** ")
        wrong += [f"{name}: {fault}" for fault in sentence_faults(text, sentence)]
        if marked != (name == f"{breaking}.md"):
            wrong.append(f"{name}: {'is' if marked else 'is not'} marked as breaking")
    return wrong


def sentence_faults(text: str, sentence: str) -> list[str]:
    checks = {
        "has more than one line": "\n" in text,
        "is longer than 120 characters": len(text) > 120,
        "does not start with a capital letter": not sentence[:1].isupper(),
        "does not end with a full stop": not sentence.endswith("."),
        "names code": CODE.search(sentence) is not None,
    }
    return [fault for fault, is_so in checks.items() if is_so]


if __name__ == "__main__":
    problems = faults(Path("changes"), set(sys.argv[1:]), os.environ.get("BREAKING", ""))
    print("\n".join(problems) or "notes: ok")
    sys.exit(bool(problems))
