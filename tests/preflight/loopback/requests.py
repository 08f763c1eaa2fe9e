"""Requests as claude 2.1.332 sends them, cut down to what the loopback model reads."""

from __future__ import annotations

from pydantic import JsonValue

ENVIRONMENT = """# Environment
You have been invoked in the following environment:
 - Primary working directory: /srv/w1/project
 - Is a git repository: true
"""

ROSTER = """
The following skills are available for use with the Skill tool:

- tidy-notes (tidy the notes): Tidies notes: headings - and lists
- plain-skill: Use it for plain things
- demo:demo-skill: From a plugin

Today's date is 2026-11-30.
- not-a-skill: of another list
"""

REMINDER = "<system-reminder>\nCurrent branch: main\n</system-reminder>\n"


def request(
    prompt: str, *later: dict[str, JsonValue], skills: bool = False, **fields: JsonValue
) -> dict[str, JsonValue]:
    """A request whose conversation starts with `prompt`; `later` messages follow."""
    told = ENVIRONMENT + (ROSTER if skills else "")
    first: list[JsonValue] = [
        {"role": "user", "content": [{"type": "text", "text": REMINDER}, {"type": "text", "text": prompt}]},
        {"role": "system", "content": [{"type": "text", "text": told}]},
    ]
    return {
        "model": "claude-test-1",
        "system": [{"type": "text", "text": "You are an agent."}],
        "tools": [{"name": "Bash"}, {"name": "Write"}],
        "metadata": {"user_id": "one"},
        "stream": True,
        "messages": [*first, *later],
        **fields,
    }


def said(text: str = "ok") -> dict[str, JsonValue]:
    """An answer of the model."""
    return {"role": "assistant", "content": [{"type": "text", "text": text}]}


def asked(text: str) -> dict[str, JsonValue]:
    """A message under the user's name."""
    return {"role": "user", "content": text}


def result(text: str = "done") -> dict[str, JsonValue]:
    """The result of a tool call, with the note that the CLI adds when the call was a skill."""
    return {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": text},
            {"type": "text", "text": "Base directory for this skill: /srv/w1\n\nTidy the notes."},
        ],
    }
