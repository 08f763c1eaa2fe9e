"""How the real CLI's endings are judged: its stream and exit code go through the parser and `classify`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from skilltrial.data.attempt import EndedBy
from skilltrial.data.outcomes import Outcome
from skilltrial.tasks.dispatch.facts import ProcessFacts
from skilltrial.tasks.dispatch.outcome import Ending, classify
from skilltrial.tasks.dispatch.reasons import Reason
from skilltrial.tasks.ingest.records import StreamSummary
from skilltrial.tasks.ingest.stream import read_stream
from skilltrial.tasks.preflight.loopback.scenarios import ApiError, Conversation, Script, Step, StreamError, ToolUse
from skilltrial.tasks.preflight.loopback.server import LoopbackServer
from tests.real_cli.agent import Agent, Run

pytestmark = pytest.mark.real_cli

LOOK = Step(tools=(ToolUse(name="Bash", input={"command": "echo looking", "description": "Look"}),))
ONE_RETRY = {"CLAUDE_CODE_MAX_RETRIES": "1"}  # the ending is the same, seconds sooner
NO_CREDIT = "Your credit balance is too low to access the Anthropic API."


class Counted:
    """A sink that counts the rows of each table."""

    def __init__(self) -> None:
        self.rows: Counter[str] = Counter()

    def add(self, table: str, row: Mapping[str, Any]) -> None:
        self.rows[table] += 1


def judged(run: Run, folder: Path) -> tuple[Ending, StreamSummary, Counter[str]]:
    """The ending on a run, what its stream sums up to, and how many rows it gives for each table."""
    path, sink = folder / "events.jsonl", Counted()
    path.write_bytes(run.stdout)
    summary = read_stream(path, sink, parser="claude-stream-json")
    facts = ProcessFacts(ended_by=EndedBy.EXIT, exit_code=run.exit_code, stderr=run.stderr)
    return classify(facts, summary, run.session_id), summary, sink.rows


def script(*steps: Step, repeat_last: bool = False) -> Script:
    conversation = Conversation(name="work", prompt="work", steps=steps, repeat_last=repeat_last)
    return Script(conversations=(conversation,), models=("claude-opus-5-5",))


def failing(status: int, message: str) -> Script:
    return script(Step(error=ApiError(status=status, message=message)))


@pytest.mark.parametrize(
    ("scripted", "outcome", "reason"),
    [
        (script(LOOK, Step(text="Done.")), Outcome.COMPLETED, Reason.NONE),
        (failing(529, "Overloaded"), Outcome.OVERLOADED, Reason.OVERLOADED),
        (failing(429, "too many requests"), Outcome.RATE_LIMITED, Reason.RATE_LIMIT),
        (failing(401, "invalid x-api-key"), Outcome.AUTH, Reason.INVALID_CREDENTIALS),
        (failing(400, NO_CREDIT), Outcome.BILLING, Reason.NO_CREDIT),
        (failing(500, "Internal server error"), Outcome.NETWORK, Reason.SERVER_ERROR),
        (script(Step(text="x" * 99, disconnect_after=3)), Outcome.NETWORK, Reason.CONNECTION_FAILED),
        (script(Step(stream_error=StreamError())), Outcome.OVERLOADED, Reason.OVERLOADED),
    ],
    ids=["done", "529", "429", "401", "no-credit", "500", "cut", "stream-error"],
)
def test_answer_of_the_api_decides_the_outcome(
    agent: Agent, scripted: Script, outcome: Outcome, reason: Reason
) -> None:
    with LoopbackServer(scripted) as server:
        run = agent.run(server, "Please work.", set_environment=ONE_RETRY)
    ending, summary, _ = judged(run, agent.workspace.root)
    assert (ending.outcome, ending.reason) == (outcome, reason)
    assert (summary.coverage.malformed, summary.coverage.truncated) == (0, 0)


def test_unknown_model_is_unavailable(agent: Agent) -> None:
    with LoopbackServer(script(Step(text="Done."))) as server:
        run = agent.run(server, "Please work.", model="claude-none")
    ending, _, _ = judged(run, agent.workspace.root)
    assert (ending.outcome, ending.reason) == (Outcome.MODEL_UNAVAILABLE, Reason.MODEL_NOT_FOUND)


@pytest.mark.parametrize(
    ("limit", "outcome"),
    [({"max_turns": "2"}, Outcome.MAX_TURNS), ({"budget_usd": "0.002"}, Outcome.BUDGET_EXCEEDED)],
)
def test_limit_decides_the_outcome(agent: Agent, limit: dict[str, Any], outcome: Outcome) -> None:
    with LoopbackServer(script(LOOK, repeat_last=True)) as server:
        run = agent.run(server, "Please work.", **limit)
    assert judged(run, agent.workspace.root)[0].outcome is outcome


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, whom the CLI refuses")
def test_refusal_of_root_is_a_failure_to_start(agent: Agent) -> None:
    with LoopbackServer(script(Step(text="Done."))) as server:
        run = agent.run(server, "Please work.", permission_mode="bypassPermissions")
    ending, summary, _ = judged(run, agent.workspace.root)
    assert ending.reason is Reason.REFUSED_AS_ROOT
    assert ending.outcome is not Outcome.COMPLETED
    assert summary.coverage.lines == 0


def test_stream_gives_calls_denials_roster_and_tokens(agent: Agent) -> None:
    agent.stage_skill("tidy-notes", "Tidies notes.")
    denied = ToolUse(name="Bash", input={"command": "python3 -c '1'", "description": "Compute"})
    with LoopbackServer(script(LOOK, Step(tools=(denied,)), Step(text="Done."))) as server:
        run = agent.run(server, "Please work.")
    ending, summary, rows = judged(run, agent.workspace.root)
    assert ending.outcome is Outcome.COMPLETED
    assert (summary.tool_calls, summary.tool_calls_answered, summary.denials) == (2, 2, 1)
    assert (rows["tool_calls"], rows["denials"]) == (2, 1)
    assert sorted(summary.skills or []) == ["doctor", "tidy-notes"]
    assert (summary.session_ids, summary.final_text) == ([run.session_id], "Done.")
    assert summary.usage_main is not None
    assert (summary.usage_main.input_tokens, summary.usage_main.output_tokens) == (300, 150)
    assert summary.cli_version == run.init["claude_code_version"]
    assert summary.coverage.parsed == summary.coverage.lines == len(run.events)
