"""The first eval of a skill: valid, runnable, and a start for a person to go on from."""

from __future__ import annotations

import json
import re
from typing import Final

from skilltrial.tasks.planning.skill import Skill

RESULT: Final = "result.md"


def seed_evals(skill: Skill) -> str:
    """The text of an `evals.json` with one case for a skill.

    The prompt asks for what the description promises without naming the skill: both arms read the same
    words, and whether the agent finds the skill by itself is part of what is measured.
    """
    document = {
        "skill_name": skill.name,
        "evals": [
            {
                "id": "first-case",
                "prompt": _prompt(skill),
                "expected_output": f"{RESULT} holds a usable answer. (A note for people: no agent reads it.)",
                "files": [],
                "assertions": [
                    {"id": "result-written", "type": "command_check", "command": f"test -s {RESULT}"},
                    {"id": "stays-in-scope", "type": "diff_scope", "max_files_touched": 5},
                ],
            }
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _prompt(skill: Skill) -> str:
    """The first sentence of the description as a request; where it names the skill, the name becomes plain words."""
    task = re.split(r"(?<=[.!?])\s+|\s+(?=Use (?:when|this|for)\b)", skill.description, maxsplit=1)[0]
    for name in {skill.name, skill.slug}:
        task = re.sub(re.escape(name), re.sub(r"[-_.]+", " ", name), task, flags=re.IGNORECASE)
    task = task.strip().rstrip(".!?")[:500] or "do the task that this project is about"
    return f"I need help with this: {task}. Work on a small example of your own, and write the outcome to {RESULT}."
