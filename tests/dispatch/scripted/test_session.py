"""Sessions: steps and their conditions, limits, signals, resuming, the command line."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from skilltrial.descriptors.loading import descriptor
from skilltrial.tasks.dispatch.scripted.stream import VERSION
from tests.dispatch.scripted.agent import AGENT, SESSION, Agent, Json, bash, finish, read_until, tool


def said(agent: Agent, *steps: Json, mode: str = "bypassPermissions") -> list[str]:
    blocks = [event["message"]["content"][0] for event in agent.run(list(steps), mode=mode).of("assistant")]
    return [block["text"] for block in blocks if block["type"] == "text"]


def test_version_is_what_the_descriptor_looks_for() -> None:
    found = subprocess.run([sys.executable, "-I", str(AGENT), "--version"], capture_output=True, text=True)
    assert found.stdout == f"{VERSION} (scripted)\n"
    match = re.search(descriptor("scripted").version.pattern, found.stdout)
    assert match is not None
    assert match[1] == VERSION


def test_the_agent_needs_nothing_but_the_standard_library_and_its_folder(agent: Agent) -> None:
    code = "import sys, runpy; sys.argv = [sys.argv[1], '--version']\n"
    code += "try: runpy.run_path(sys.argv[0], run_name='__main__')\n"
    code += "except SystemExit: pass\n"
    code += "sys.stderr.write(' '.join(sorted(sys.modules)))"
    found = subprocess.run([sys.executable, "-I", "-S", "-c", code, str(AGENT)], capture_output=True, text=True)
    loaded = {name.partition(".")[0] for name in found.stderr.split()}
    assert "scripted_agent" in loaded
    assert loaded - {"scripted_agent", "__main__", "__mp_main__"} - set(sys.stdlib_module_names) == set()


def test_the_last_text_is_the_result(agent: Agent) -> None:
    run = agent.run([{"say": "First."}, {"say": "Last."}, bash("true")])
    assert (run.result["result"], run.result["num_turns"], run.result["stop_reason"]) == ("Last.", 2, "end_turn")
    assert run.init["session_id"] == SESSION


def test_nothing_said_is_an_empty_result(agent: Agent) -> None:
    assert agent.run([bash("true")]).result["result"] == ""


def test_conditions_on_skills_look_at_what_is_staged(agent: Agent) -> None:
    agent.stage("here", "---\nname: other\n---\n")
    steps = [
        {"when": {"skill": "here"}, "say": "a"},
        {"when": {"no_skill": "here"}, "say": "b"},
        {"when": {"skill": "other"}, "say": "c"},
        {"when": {"no_skill": "gone"}, "say": "d"},
    ]
    assert said(agent, *steps) == ["a", "d"]


def test_conditions_on_repetitions_modes_and_files(agent: Agent) -> None:
    agent.environment["SCRIPTED_REPETITION"] = "2"
    (agent.cwd / "x").touch()
    steps = [
        {"when": {"repetition": [1, 3]}, "say": "a"},
        {"when": {"repetition": [2]}, "say": "b {repetition}"},
        {"when": {"mode": ["plan"]}, "say": "c"},
        {"when": {"mode": ["plan", "dontAsk"], "exists": "x"}, "say": "d"},
        {"when": {"missing": "x"}, "say": "e"},
    ]
    assert said(agent, *steps, mode="dontAsk") == ["b 2", "d"]


def test_conditions_on_denials(agent: Agent) -> None:
    before, after = {"when": {"denied_before": False}}, {"when": {"denied_before": True}}
    steps = [
        {**before, "say": "a"},
        {**after, "say": "b"},
        bash("node x"),
        {**before, "say": "c"},
        {**after, "say": "d"},
    ]
    assert said(agent, *steps, mode="default") == ["a", "d"]


def test_end_ends_the_conversation(agent: Agent) -> None:
    assert said(agent, {"say": "a", "end": True}, {"say": "b"}) == ["a"]


def test_texts_are_filled_and_other_braces_are_kept(agent: Agent) -> None:
    step = tool("Write", file_path="{cwd}/a", content="{cwd} {session_id} {other} {}")
    agent.run([step])
    assert (agent.cwd / "a").read_text("utf-8") == f"{agent.cwd} {SESSION} {{other}} {{}}"


def test_an_event_of_any_kind_can_be_written_also_before_init(agent: Agent) -> None:
    run = agent.run([{"at": "start", "event": {"type": "system", "subtype": "ui_invalidate"}}, {"say": "x"}])
    assert run.events[0]["subtype"] == "ui_invalidate"
    assert run.events[0]["session_id"] == SESSION
    assert run.events[1]["subtype"] == "init"


def test_the_limit_of_turns_counts_messages_of_the_model(agent: Agent) -> None:
    steps = [{"say": "x", **bash("true")}, bash("true"), bash("true"), bash("touch fourth")]
    run = agent.run(steps, "--max-turns", "3")
    result = run.result
    assert (run.code, result["subtype"], result["num_turns"]) == (1, "error_max_turns", 4)
    assert result["errors"] == ["Reached maximum number of turns (3)"]
    assert not (agent.cwd / "fourth").exists()
    within = Agent(agent.root / "within").run([bash("true"), {"say": "Done."}], "--max-turns", "2")
    assert within.result["subtype"] == "success"


def test_an_interrupt_during_a_command_ends_with_a_result_and_exit_code_zero(agent: Agent) -> None:
    process = start_with_open_command(agent)
    process.send_signal(signal.SIGINT)
    run = finish(process)
    assert run.code == 0
    *_, note, result = run.events
    assert run.answers[0].startswith("The user doesn't want to proceed with this tool use.")
    assert run.tool_results[0]["tool_result_meta"][0]["non_execution_kind"] == "user-rejected"
    assert note["message"]["content"][0]["text"] == "[Request interrupted by user for tool use]"
    assert (result["subtype"], result["terminal_reason"]) == ("error_during_execution", "aborted_tools")
    assert (result["is_error"], result["num_turns"]) == (True, 3)


def test_an_interrupted_result_has_the_keys_of_the_recorded_one(agent: Agent) -> None:
    fixture = Path(__file__).parents[2] / "fixtures" / "scripted" / "claude-2.1.332.jsonl"
    lines = [json.loads(line) for line in fixture.read_text("utf-8").splitlines()]
    recorded = next(line["event"] for line in lines if line["name"] == "interrupted")
    process = start_with_open_command(agent)
    process.send_signal(signal.SIGINT)
    assert set(finish(process).result) == set(recorded) | {"harness"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_termination_kills_the_command_and_leaves_no_result(agent: Agent, number: signal.Signals) -> None:
    process = start_with_open_command(agent)
    process.send_signal(number)
    run = finish(process)
    assert (run.code, run.answers, run.of("result")) == (128 + number, ["Exit code 137\nstart"], [])


def test_an_interrupt_before_the_first_answer_leaves_no_result(agent: Agent) -> None:
    process = agent.start([{"sleep_s": 600, "say": "never"}])
    list(read_until(process, b'"init"'))
    process.send_signal(signal.SIGINT)
    run = finish(process)
    assert run.code == 0
    assert [event["message"]["content"][0]["text"] for event in run.events] == ["[Request interrupted by user]"]


def test_an_interrupt_in_the_middle_of_a_line_leaves_a_cut_line_and_a_result(agent: Agent) -> None:
    process = agent.start([{"fail": {"kind": "slow_output", "seconds": 600}}])
    list(read_until(process, b'"init"'))
    assert process.stdout is not None
    assert process.stdout.read(1) == b"{"
    process.send_signal(signal.SIGINT)
    run = finish(process)
    result = json.loads(run.stdout.splitlines()[-1])
    assert (run.code, result["terminal_reason"], result["num_turns"]) == (0, "aborted_streaming", 2)


def start_with_open_command(agent: Agent) -> subprocess.Popen[bytes]:
    """An agent whose shell command has begun and does not end."""
    pipe = agent.cwd / "pipe"
    os.mkfifo(pipe)
    process = agent.start([bash("echo start; echo begun > pipe; exec sleep 600")])
    assert pipe.read_text("utf-8") == "begun\n"  # blocks until the command gets there
    list(read_until(process, b'"tool_use"'))
    return process


def test_a_session_is_resumed_with_the_same_identifier(agent: Agent) -> None:
    assert agent.run([{"say": "One."}]).init["session_id"] == SESSION
    resumed = {"when": {"resumed": True}, "say": "Two."}
    run = agent.run([{"when": {"resumed": False}, "say": "One."}, resumed], "--resume", SESSION, prompt="Go on.")
    assert (run.init["session_id"], run.result["result"]) == (SESSION, "Two.")


def test_an_unknown_session_cannot_be_resumed(agent: Agent) -> None:
    run = agent.run([{"say": "x"}], "--resume", SESSION)
    text = f"No conversation found with session ID: {SESSION}"
    assert (run.code, run.stderr) == (1, text + "\n")
    assert (run.result["subtype"], run.result["errors"]) == ("error_during_execution", [text])


def test_a_session_identifier_is_used_once(agent: Agent) -> None:
    agent.run([{"say": "x"}])
    again = agent.run([{"say": "x"}])
    assert (again.code, again.stdout) == (1, b"")
    assert again.stderr == f"Error: Session ID {SESSION} is already in use.\n"


@pytest.mark.parametrize(
    ("arguments", "prompt", "message"),
    [
        (("--session-id", "nonsense"), "x", "Error: Invalid session ID. Must be a valid UUID."),
        (
            ("--session-id", SESSION, "--resume", SESSION),
            "x",
            "Error: --session-id cannot be used together with --resume",
        ),
        ((), " \n", "Error: Input must be provided through stdin"),
    ],
)
def test_unusable_command_lines(agent: Agent, arguments: tuple[str, ...], prompt: str, message: str) -> None:
    run = agent.run([], *arguments, prompt=prompt)
    assert (run.code, run.stdout, run.stderr) == (1, b"", message + "\n")


def test_an_unwritable_configuration_folder_does_not_fail_the_session(agent: Agent) -> None:
    agent.environment["CLAUDE_CONFIG_DIR"] = "/dev/null/config"
    assert agent.run([{"say": "Done."}]).result["result"] == "Done."


def test_the_asked_model_is_repeated_but_never_claimed(agent: Agent) -> None:
    init = agent.run([{"say": "x"}], "--model", "some-model").init
    assert (init["requested_model"], init["model"]) == ("some-model", "scripted")


def test_the_prompt_is_read_from_standard_input_whatever_its_length_and_bytes(agent: Agent) -> None:
    document = {"conversations": [{"match": "needle$", "steps": [{"say": "found"}]}]}
    run = agent.script(document, prompt="-x " + "hay " * 200_000 + "needle")
    assert run.result["result"] == "found"
