"""A small campaign for the real CLI: a skill, two evals, and what the stand-in model says in either arm."""

from __future__ import annotations

import json
from pathlib import Path

from skilltrial.tasks.preflight.loopback.scenarios import ApiError, Conversation, Script, Step, ToolUse, When

SKILL = "release-notes"
CHANGELOG = "# Changelog\n\n## 1.1\n\n- Faster start\n"
ENTRY = "# Changelog\n\n## 1.2\n\n- Offline mode\n\n"
RELEASE_PROMPT = "Version 1.2 is out and brings an offline mode. Please bring the changelog up to date."
SUMMARY_PROMPT = "What changed in the newest version that the changelog knows? One sentence, please."

WITH, WITHOUT = When(skill=SKILL), When(no_skill=SKILL)


def bash(command: str) -> ToolUse:
    """A call of the shell."""
    return ToolUse(name="Bash", input={"command": command, "description": "Run a command"})


RELEASE = Conversation(
    name="release",
    prompt="^Version 1.2 is out",
    steps=(
        Step(when=WITH, tools=(ToolUse(name="Skill", input={"skill": SKILL}),)),
        Step(when=WITH, tools=(bash("cat CHANGELOG.md"),)),
        Step(
            when=WITH,
            tools=(
                ToolUse(
                    name="Edit",
                    input={"file_path": "{cwd}/CHANGELOG.md", "old_string": "# Changelog\n\n", "new_string": ENTRY},
                ),
            ),
        ),
        # without the skill the agent computes where nobody asked it to, is refused, and starts a file of its own
        Step(when=WITHOUT, tools=(bash("python3 -c 'print(1.2)'"), bash("ls"))),
        Step(
            when=WITHOUT,
            tools=(ToolUse(name="Write", input={"file_path": "{cwd}/NEWS.md", "content": "1.2: offline mode\n"}),),
        ),
        Step(text="The changelog is up to date."),
    ),
)

# an agent may print its environment, and the key with it
SUMMARY = (
    Step(tools=(bash("head -5 CHANGELOG.md"), bash("printenv ANTHROPIC_API_KEY"))),
    Step(text="1.1 starts faster."),
)

HEALTHY = Script(
    conversations=(RELEASE, Conversation(name="summary", prompt="^What changed in the newest", steps=SUMMARY))
)
"""A model that answers everything."""

OVERLOADED = Script(
    conversations=(
        RELEASE,
        Conversation(
            name="summary",
            prompt="^What changed in the newest",
            steps=(
                Step(when=WITH, error=ApiError(status=529, message="Overloaded")),
                SUMMARY[0].model_copy(update={"when": WITHOUT}),
                SUMMARY[1].model_copy(update={"when": WITHOUT}),
            ),
        ),
    )
)
"""The same model while it is overloaded for one cell: the treatment arm of the second eval."""

EVALS = {
    "skill_name": SKILL,
    "evals": [
        {
            "id": "release",
            "prompt": RELEASE_PROMPT,
            "expected_output": "CHANGELOG.md has an entry for 1.2 on top",
            "files": ["CHANGELOG.md"],
            "assertions": [
                {"id": "entry", "type": "command_check", "command": "grep -qx '## 1.2' CHANGELOG.md"},
                {"id": "one-file", "type": "diff_scope", "max_files_touched": 1},
            ],
        },
        {
            "id": "summary",
            "prompt": SUMMARY_PROMPT,
            "expected_output": "says that 1.1 starts faster",
            "files": ["CHANGELOG.md"],
            "assertions": [
                {
                    "id": "says-it",
                    "type": "transcript_check",
                    "check": "assistant_message_matches",
                    "pattern": "starts faster",
                },
                {"id": "touches-nothing", "type": "diff_scope", "max_files_touched": 0},
            ],
        },
    ],
}


def write_campaign(folder: Path, binary: Path) -> Path:
    """The skill, its evals and the campaign file, whose path is returned."""
    skill = folder / SKILL
    (skill / "evals").mkdir(parents=True)
    (skill / "SKILL.md").write_text(
        f"---\nname: {SKILL}\ndescription: Keeps a changelog. Use it for releases.\n---\n\nNewest version on top.\n"
    )
    (skill / "evals/CHANGELOG.md").write_text(CHANGELOG)
    (skill / "evals/evals.json").write_text(json.dumps(EVALS))
    campaign = folder / "campaign.toml"
    campaign.write_text(
        f'name = "notes"\nskill = "{SKILL}"\nbinary = "{binary}"\npermission_mode = "acceptEdits"\n'
        'allowed_tools = ["Bash(printenv *)"]\n'
        'pass_env = ["ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"]\n'
        "repetitions = 1\njobs = 4\nattempts = 1\ntimeout_s = 120.0\n"
    )
    return campaign
