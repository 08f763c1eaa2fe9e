"""Every known way in which readers of agent streams went wrong, through `skilltrial inspect` and the checks.

Each folder of `fixtures/bug_inputs` holds inputs and `expected.json`. Every key of it is asserted by the check
of that name; a key without one fails.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pytest

from skilltrial.data.outcomes import Outcome
from skilltrial.descriptors.loading import descriptor
from skilltrial.flows.cli.inspect import inspect
from skilltrial.tasks.dispatch.command import build_environment
from skilltrial.tasks.guard.hook_outcome import hook_outcome
from skilltrial.tasks.guard.writes import write_targets
from skilltrial.tasks.ingest.activation import Activation, activation
from skilltrial.tasks.ingest.reading import read_records
from skilltrial.tasks.ingest.records import Coverage, StreamSummary
from skilltrial.tasks.ingest.sinks import NullSink
from skilltrial.tasks.ingest.stream import read_stream
from skilltrial.tasks.preflight.plugins import PluginRoster, enabled_plugins, roster
from skilltrial.tasks.preflight.skills_on_disk import duplicates, skills_below, unique

FOLDER: Final = Path(__file__).parent / "fixtures" / "bug_inputs"
NAMES: Final = sorted(path.name for path in FOLDER.iterdir())
STREAMS: Final = [name for name in NAMES if "outcome" in json.loads((FOLDER / name / "expected.json").read_text())]

OUTCOMES: Final = {
    "completed": {Outcome.COMPLETED},
    "incomplete": {Outcome.HUNG, Outcome.TIMED_OUT, Outcome.CLI_CRASH, Outcome.CANCELLED, Outcome.AGENT_ERROR},
    "failed": {Outcome.AUTH, Outcome.OVERLOADED, Outcome.CLI_CRASH, Outcome.EVALUATOR_ERROR},
    "invalid_setup": {Outcome.COMPLETED},  # how the run ended; the setup's finding is asserted besides
}
"""What the words of the inputs can be in ours."""

ENDED: Final = {
    "B01": Outcome.TIMED_OUT,
    "B03": Outcome.HUNG,
    "B06": Outcome.AUTH,  # 403
    "B11": Outcome.HUNG,
    "B39": Outcome.CLI_CRASH,
    "B43": Outcome.OVERLOADED,
    "B46": Outcome.HUNG,
    "B48": Outcome.AGENT_ERROR,  # the CLI refused a permission by itself and ended the turn
    "B51": Outcome.CLI_CRASH,
    "B52": Outcome.CLI_CRASH,
    "B53": Outcome.AGENT_ERROR,
    "B54": Outcome.EVALUATOR_ERROR,
    "B60": Outcome.CLI_CRASH,
}
"""How each input that is not a completed run ends in our words."""

REASONS: Final = {"api_error": "permission_denied", "no final step_finish": "no_result"}
"""Reasons that have another name here; all others have the same."""

_TEXTS: Final = frozenset({"id", "title", "why", "note", "rule"})


class Case:
    """One input, and what is right for it."""

    def __init__(self, name: str, scratch: Path, capture: pytest.CaptureFixture[bytes]) -> None:
        self.name, self.folder, self._capture = name, FOLDER / name, capture
        self.right: dict[str, Any] = json.loads((self.folder / "expected.json").read_text())
        template = self.folder / "input.jsonl.in"
        if template.exists():  # a line of 1.3 MB is made here, not kept
            for path in self.folder.glob("*.json"):
                shutil.copy(path, scratch)
            text = template.read_text().replace("@IMAGE@", "iVBORw0K" * 86_667)
            (scratch / "input.jsonl").write_text(text)
            self.folder = scratch

    @cached_property
    def stream(self) -> Path:
        """The stream, whatever it is called."""
        return next(path for path in sorted(self.folder.glob("input.json*")) if path.suffix in (".json", ".jsonl"))

    @cached_property
    def told(self) -> dict[str, Any]:
        """What `skilltrial inspect --json` tells of the stream."""
        [document] = self.inspect(self.stream)
        return document

    def inspect(self, *files: Path, **options: Any) -> list[dict[str, Any]]:
        """What `skilltrial inspect --json` prints."""
        assert inspect(*map(str, files), json=True, **options) == 0
        printed = self._capture.readouterr().out
        if len(files) == 1 and "table" not in options:
            return [json.loads(printed)]
        return [json.loads(line) for line in printed.splitlines()]

    def rows(self, table: str) -> list[dict[str, Any]]:
        """Rows of a table of the stream."""
        return self.inspect(self.stream, table=table)

    @cached_property
    def meta(self) -> dict[str, Any]:
        """How the stream was recorded."""
        found: dict[str, Any] = json.loads((self.folder / "meta.json").read_text())
        return found

    @cached_property
    def summary(self) -> StreamSummary:
        """The summary of the stream."""
        return read_stream(self.stream, NullSink())

    @cached_property
    def activation(self) -> Activation:
        """What the session tells of the skill under test."""
        return activation(self.summary, self.right["skill"])

    @cached_property
    def roster(self) -> PluginRoster:
        """The plugins of the project's settings against those of the session."""
        return roster(enabled_plugins(self.folder / "project/.claude/settings.json"), self.summary)

    @cached_property
    def environment(self) -> dict[str, str]:
        """What a session of Claude Code gets of the operator's variables."""
        operator = json.loads((self.folder / "env.json").read_text())
        values = {"home": "/w/home", "config": "/w/config", "tmp": "/w/tmp", "user": "user"}
        return build_environment(descriptor("claude-code"), values, {}, tuple(operator), operator)


def _outcome(case: Case, right: str) -> None:
    outcome = Outcome(case.told["outcome"])
    assert outcome in OUTCOMES[right]
    assert outcome is ENDED.get(case.name, Outcome.COMPLETED)
    if right == "invalid_setup":
        found = case.roster.valid if "expected_plugins" in case.right else case.activation.valid
        assert found is False


def _reason(case: Case, right: str) -> None:
    assert case.told["reason"] == REASONS.get(right, right)


def _usage(case: Case, right: dict[str, Any] | None, scope: str = "main") -> None:
    usage = case.told["usage"][scope]
    if right is None:
        assert case.told["usage"] == {"main": None, "all": None}
        return
    for kind, count in right.items():
        if kind == "known_exact":
            assert case.told["usage_exact"] is count
        elif isinstance(count, str):
            assert count == f"lower bound {usage[kind]}"
            assert case.told["usage_exact"] is False
        else:
            assert usage[kind.replace("cached_input", "cache_read_input")] == count


def _denials(case: Case, right: list[Any]) -> None:
    found = case.told["denials"]
    if all(isinstance(entry, str) for entry in right):
        assert [denial["tool_use_id"] for denial in found] == right
        return
    assert [(d["tool_use_id"], d["tool"], d["evidence"]) for d in found] == [
        (entry["tool_use_id"], entry["tool_name"], [entry["source"]]) for entry in right
    ]


def _skipped(case: Case, right: dict[str, int]) -> None:
    coverage = case.told["coverage"]
    assert coverage["malformed"] == right["not_json"] + right["not_object"]
    assert (coverage["blank"], coverage["truncated"]) == (right["blank"], right["truncated_last"])


def _resumed(case: Case, right: dict[str, dict[str, float]]) -> None:
    for file, costs in right.items():
        first, resumed = case.inspect(case.folder / "prior.jsonl", case.folder / file)
        assert resumed["cost_usd"] == costs["cost_reported"]
        assert resumed["round_cost_usd"] == costs["cost_this_run"]
        assert first["cost_usd"] + resumed["round_cost_usd"] == pytest.approx(costs["session_total"], abs=1e-9)


def _blocks(case: Case, right: list[bool]) -> None:
    ends = [json.loads(line) for line in (case.folder / "cases.jsonl").read_text().splitlines()]
    assert [hook_outcome(end["hook_exit"], end["stdout"]).blocks for end in ends] == right


def _write_targets(case: Case, right: list[list[str] | None]) -> None:
    lines = (case.folder / "commands.jsonl").read_text().splitlines()
    found = [write_targets(json.loads(line)["command"], case.right["cwd"]) for line in lines]
    assert [None if targets is None else list(targets) for targets in found] == right


def _duplicates(case: Case, right: dict[str, list[str]]) -> None:
    skills = [skill for place in ("home", "project") for skill in skills_below(case.folder / case.right[place])]
    found = {name: [str(path.relative_to(case.folder)) for path in paths] for name, paths in duplicates(skills).items()}
    assert found == right
    assert list(unique(skills)) == case.right["unique"]


def _cwd(case: Case, right: str) -> None:
    if "write_targets" in case.right:
        return  # the folder that `write_targets` is asked for
    with case.stream.open("rb") as handle:
        assert next(iter(read_records(handle, Coverage())))["cwd"] == right


def _subagent_usage(case: Case, right: dict[str, None]) -> None:
    assert right == {"t1": None}
    assert [(row["scope"], row["input_tokens"]) for row in case.rows("usage")] == [("main", 6), ("all", 6)]


def _equals(key: str, *, told: str | None = None) -> Callable[[Case, Any], None]:
    def check(case: Case, right: Any) -> None:
        assert case.told[told or key] == right

    return check


def _check(condition: Callable[[Case, Any], object]) -> Callable[[Case, Any], None]:
    def check(case: Case, right: Any) -> None:
        assert condition(case, right)

    return check


CHECKS: Final[dict[str, Callable[[Case, Any], None]]] = {
    "outcome": _outcome,
    "reason": _reason,
    "usage": _usage,
    "main_usage": _usage,
    "total_usage": lambda case, right: _usage(case, right, "all"),
    "wrong_if_summed": _check(lambda case, wrong: all(case.told["usage"]["main"][k] != v for k, v in wrong.items())),
    "wrong_if_summed_per_event": _check(
        lambda case, wrong: all(case.told["usage"]["main"][k] != v for k, v in wrong.items())
    ),
    "denials": _denials,
    "denial_count": _check(
        lambda case, right: (case.told["denial_count"], len(case.told["denials"])) == (right, right)
    ),
    "has_result": _equals("has_result"),
    "tool_calls": _equals("tool_calls"),
    "tool_calls_answered": _equals("tool_calls_answered"),
    "tool_results": _equals("tool_results", told="tool_calls_answered"),
    "final_text": _equals("final_text"),
    "cost_usd": _equals("cost_usd"),
    "cost_known": _check(lambda case, right: (case.told["cost_usd"] is not None) is right),
    "notes": _check(lambda case, right: set(right) <= set(case.told["notes"])),
    "task_may_be_blocked": _check(lambda case, right: ("task_may_be_blocked" in case.told["notes"]) is right),
    "task_may_be_unfinished": _check(lambda case, right: ("task_may_be_unfinished" in case.told["notes"]) is right),
    "last_event": _equals("last_event", told="last_record"),
    "unanswered_tool_calls": _equals("unanswered_tool_calls"),
    "api_status": _equals("api_status", told="api_error_status"),
    "infrastructure_failure": _equals("infrastructure_failure"),
    "synthetic_messages": _equals("synthetic_messages"),
    "model_turns_counted": _equals("model_turns_counted", told="model_messages"),
    "api_messages": _equals("api_messages", told="model_messages"),
    "turns": _equals("turns", told="results"),
    "message": _equals("message", told="detail"),
    "stderr_mentions": _check(lambda case, right: right in case.told["detail"]),
    "mcp": _check(lambda case, right: {s["name"]: s["status"] for s in case.told["mcp_servers"]} == right),
    "mcp_not_connected": _check(
        lambda case, right: [s["name"] for s in case.told["mcp_servers"] if s["status"] != "connected"] == right
    ),
    "mcp_tools": _check(lambda case, right: {s["name"]: s["tools"] for s in case.told["mcp_servers"]} == right),
    "assistant_text_concat": _check(
        lambda case, right: "".join(row["text"] for row in case.rows("messages") if row["kind"] == "text") == right
    ),
    "tool_calls_main": _check(
        lambda case, right: case.told["tool_calls"] - sum(case.told["subagents"].values()) == right
    ),
    "tool_calls_subagent": _check(lambda case, right: sum(case.told["subagents"].values()) == right),
    "subagents": _equals("subagents"),
    "subagent_usage": _subagent_usage,
    "cases": _resumed,
    "unfinished_background_tasks": _equals("unfinished_background_tasks"),
    "lines": _check(lambda case, right: case.told["coverage"]["lines"] == case.told["coverage"]["parsed"] == right),
    "events": _check(lambda case, right: case.told["coverage"]["parsed"] == right),
    "max_line_over": _check(lambda case, right: case.told["stream"]["longest_line_bytes"] > right),
    "image_blocks": _check(lambda case, right: sum(row["result_images"] for row in case.rows("tool_calls")) == right),
    "contains_byte": _check(lambda case, right: bytes([int(right, 16)]) in case.stream.read_bytes()),
    "cwd": _cwd,
    "undecodable_lines": _check(lambda case, right: case.told["coverage"]["malformed"] == right),
    "replaced_bytes": _check(lambda case, right: case.told["stream"]["replaced_bytes"] is right),
    "skipped_lines": _skipped,
    "nul_bytes": _check(lambda case, right: case.told["stream"]["nul_bytes"] == right),
    "guard_breaches": _equals("guard_breaches"),
    "blocks": _blocks,
    "write_targets": _write_targets,
    "skill": _check(lambda case, right: case.activation.skill == right),
    "triggered": _check(lambda case, right: case.activation.triggered is right),
    "first_tool": _check(lambda case, right: case.rows("tool_calls")[0]["tool"] == right),
    "skill_call_index": _check(
        lambda case, right: [row["order"] for row in case.rows("tool_calls") if row["skill"] is not None] == [right]
    ),
    "skill_calls": _equals("skill_calls"),
    "registered_as_skill": _check(lambda case, right: case.activation.registered_as_skill is right),
    "registered_as_command": _check(lambda case, right: case.activation.registered_as_command is right),
    "sibling_triggered": _check(lambda case, right: case.activation.triggered_sibling == right),
    "contaminated": _check(lambda case, right: case.activation.contaminated is right),
    "home": _check(lambda case, right: (case.folder / right).is_dir()),
    "project": _check(lambda case, right: (case.folder / right).is_dir()),
    "duplicates": _duplicates,
    "unique": _check(lambda case, right: "duplicates" in case.right),  # asserted with them
    "expected_plugins": _check(lambda case, right: list(case.roster.expected) == right),
    "loaded_plugins": _check(lambda case, right: list(case.roster.loaded or ()) == right == case.told["plugins"]),
    "missing_plugins": _check(lambda case, right: list(case.roster.missing or ()) == right),
    "unknown_skill_calls": _equals("unknown_skill_calls"),
    "init_seen": _equals("init_seen"),
    "session_id_is_ours": _check(
        lambda case, right: (case.told["session_ids"] == [case.meta["resumed_from"]]) is right
    ),
    "tool_call_ids": _check(lambda case, right: [row["tool_use_id"] for row in case.rows("tool_calls")] == right),
    "tool_errors": _equals("tool_errors", told="failed_tool_calls"),
    "env_must_not_hold": _check(lambda case, right: not set(right) & set(case.environment)),
    "env_must_hold": _check(lambda case, right: set(right) <= set(case.environment)),
}


def test_all_inputs_are_here_and_every_outcome_has_its_place() -> None:
    assert len(NAMES) == 41
    told = {name: json.loads((FOLDER / name / "expected.json").read_text()) for name in NAMES}
    assert set(ENDED) == {name for name in STREAMS if told[name]["outcome"] in ("incomplete", "failed")}


@pytest.mark.parametrize("name", NAMES)
def test_the_right_values_are_told(name: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    case = Case(name, tmp_path, capfdbinary)
    asserted = set(case.right) - _TEXTS
    assert asserted, "nothing to assert"
    for key in asserted:
        CHECKS[key](case, case.right[key])
