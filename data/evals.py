"""The models of `evals.json`: what one test case asks for and how its outcome is graded.

The written form is that of eval-magic's `evals.json`; `tasks/planning/evals.py` reads it (and Anthropic's
skill-creator form) from disk and checks what a model alone cannot: files, regular expressions, duplicates.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from skilltrial.data.models import NonEmpty, Written

EVAL_ID_PATTERN = r"^[a-z0-9][a-z0-9-]*$"

EvalId = Annotated[str, StringConstraints(pattern=EVAL_ID_PATTERN)]


class Codebase(Written):
    """The repository an eval starts from: a git URL at a ref, or a folder on this machine."""

    url: NonEmpty | None = None
    ref: NonEmpty | None = None
    path: NonEmpty | None = None  # relative paths start at the folder that holds evals.json


class Turn(Written):
    """One scripted follow-up of a conversation."""

    prompt: NonEmpty
    deliver_when: Literal["always", "agent_asks"]
    agent_response_matches: NonEmpty | None = None  # regular expression, only with `agent_asks`


class Responder(Written):
    """A model that answers the agent's questions in the person's place."""

    type: Literal["llm"]
    max_turns: int = Field(default=8, ge=1)


class TranscriptCheck(Written):
    """A regular expression that must match a tool call or a message of the agent."""

    id: NonEmpty
    type: Literal["transcript_check"]
    check: Literal["tool_invocation_matches", "assistant_message_matches"]
    pattern: NonEmpty
    must_precede: Literal["completion_claim", "first_write", "any"] = "any"


class LlmJudge(Written):
    """A rubric that a judging model answers with pass or fail."""

    id: NonEmpty
    type: Literal["llm_judge"]
    rubric: NonEmpty
    model: NonEmpty | None = None


class CommandCheck(Written):
    """A command run in a copy of the final environment, with files that the agent never saw."""

    id: NonEmpty
    type: Literal["command_check"]
    command: NonEmpty
    setup_files: tuple[NonEmpty, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    matrix: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    expect_exit_code: int = 0
    expect_stdout: NonEmpty | None = None  # regular expression
    timeout_s: float = Field(default=300.0, gt=0)


class DiffScope(Written):
    """Limits on what the agent may change, measured against the baseline."""

    id: NonEmpty
    type: Literal["diff_scope"]
    max_files_touched: int | None = Field(default=None, ge=0)
    max_lines_changed: int | None = Field(default=None, ge=0)


Assertion = Annotated[TranscriptCheck | LlmJudge | CommandCheck | DiffScope, Field(discriminator="type")]


class GuardSettings(Written):
    """What the write guard lets an eval's agent do beyond its policy."""

    allow_tools: tuple[NonEmpty, ...] = ()
    allow_commands: tuple[NonEmpty, ...] = ()
    profiles: tuple[NonEmpty, ...] = ()


class Eval(Written):
    """One test case."""

    id: EvalId
    prompt: NonEmpty
    expected_output: str = ""  # a note for people: neither the agent nor a judge ever sees it
    files: tuple[NonEmpty, ...] = ()
    files_root: NonEmpty | None = None
    runs: int | None = Field(default=None, ge=1)  # repetitions of this eval instead of the campaign's
    codebase: Codebase | None = None
    isolation: Literal["shared", "isolated"] = "shared"  # read for compatibility: every attempt is isolated
    skill_should_trigger: bool = True
    turns: tuple[Turn, ...] = ()
    responder: Responder | None = None
    plan_mode: bool = False
    guard: GuardSettings | None = None
    assertions: tuple[Assertion, ...] = ()


class EvalsFile(Written):
    """A whole `evals.json`."""

    skill_name: NonEmpty
    codebase: Codebase | None = None
    guard: GuardSettings | None = None
    evals: tuple[Eval, ...] = Field(min_length=1)
