"""Tools work on real files, with the real CLI's texts (recorded from claude 2.1.332 unless they say otherwise)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skilltrial.tasks.dispatch.scripted.tools import input_problem, patch
from tests.dispatch.scripted.agent import Agent, Json, Run, bash, tool

CURRENT = " (file state is current in your context — no need to Read it back)"


def only(run: Run) -> tuple[str, Any, Json]:
    """Text, structured result and meta of the last call."""
    event = run.tool_results[-1]
    block = event["message"]["content"][0]
    return block["content"], event["tool_use_result"], event


def test_write_creates_a_file_with_its_folders(agent: Agent) -> None:
    path = agent.cwd / "a" / "b.txt"
    text, structured, _ = only(agent.run([tool("Write", file_path=str(path), content="é\n")]))
    assert path.read_bytes() == "é\n".encode()
    assert text == f"File created successfully at: {path}{CURRENT}"
    assert structured["type"] == "create"
    assert structured["originalFile"] is None


def test_write_over_a_file_reports_the_change(agent: Agent) -> None:
    path = agent.cwd / "a.txt"
    path.write_text("one\ntwo\n", "utf-8")
    text, structured, _ = only(agent.run([tool("Write", file_path="{cwd}/a.txt", content="one\n2\n")]))
    assert text == f"The file {path} has been updated successfully.{CURRENT}"
    assert structured["type"] == "update"
    lines = [" one", "-two", "+2"]
    span = {"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2}
    assert structured["structuredPatch"] == [{**span, "lines": lines}]
    assert structured["originalFile"] == "one\ntwo\n"


def test_read_numbers_the_lines(agent: Agent) -> None:
    (agent.cwd / "a.txt").write_text("alpha x\n", "utf-8")
    text, structured, _ = only(agent.run([tool("Read", file_path="{cwd}/a.txt")]))
    assert text == "1\talpha x\n2\t"
    counts = {"numLines": 2, "startLine": 1, "totalLines": 2}
    assert structured["file"] == {"filePath": str(agent.cwd / "a.txt"), "content": "alpha x\n", **counts}


def test_read_takes_a_part(agent: Agent) -> None:
    (agent.cwd / "a.txt").write_text("1\n2\n3\n4\n", "utf-8")
    assert agent.run([tool("Read", file_path="a.txt", offset=2, limit=2)]).answers == ["2\t2\n3\t3"]


def test_read_refuses_a_huge_file(agent: Agent) -> None:
    (agent.cwd / "a.txt").write_text("x" * 300 * 1024, "utf-8")
    (answer,) = agent.run([tool("Read", file_path="a.txt")]).answers
    assert answer.startswith("File content (300.0KB) exceeds maximum allowed size (256KB).")


def test_edit_replaces_once_and_tells_whether_the_file_was_known(agent: Agent) -> None:
    path = agent.cwd / "a.txt"
    path.write_text("alpha x\n", "utf-8")
    edit = tool("Edit", file_path="{cwd}/a.txt", old_string="alpha", new_string="ALPHA")
    back = tool("Edit", file_path="{cwd}/a.txt", old_string="ALPHA", new_string="beta")
    run = agent.run([edit, tool("Read", file_path="{cwd}/a.txt"), back])
    assert path.read_text("utf-8") == "beta x\n"
    updated = f"The file {path} has been updated successfully."
    assert [run.answers[0], run.answers[2]] == [updated, updated + CURRENT]
    assert run.tool_results[0]["tool_use_result"]["contentNotInModelContext"] is True
    assert "contentNotInModelContext" not in run.tool_results[2]["tool_use_result"]


def test_edit_replaces_everywhere_when_asked(agent: Agent) -> None:
    (agent.cwd / "a.txt").write_text("a a a", "utf-8")
    agent.run([tool("Edit", file_path="a.txt", old_string="a", new_string="b", replace_all=True)])
    assert (agent.cwd / "a.txt").read_text("utf-8") == "b b b"


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        (
            tool("Edit", file_path="{cwd}/a.txt", old_string="nope", new_string="z"),
            "String to replace not found in file.\nString: nope",
        ),
        (
            tool("Edit", file_path="{cwd}/gone.txt", old_string="q", new_string="z"),
            "File does not exist. Note: your current working directory is {cwd}.",
        ),
        (tool("NoSuchTool", a=1), "Error: No such tool available: NoSuchTool"),
        (
            tool("Bash", cmd="ls"),
            (
                "InputValidationError: Bash failed due to the following issues:\n"
                "The required parameter `command` is missing\nAn unexpected parameter `cmd` was provided"
            ),
        ),
        (tool("Skill", skill="absent"), "Unknown skill: absent"),
    ],
)
def test_invalid_calls_are_tool_use_errors_without_a_permission_decision(
    agent: Agent, step: Json, problem: str
) -> None:
    (agent.cwd / "a.txt").write_text("a\n", "utf-8")
    problem = problem.replace("{cwd}", str(agent.cwd))
    run = agent.run([step])
    assert run.answers == [f"<tool_use_error>{problem}</tool_use_error>"]
    (event,) = run.tool_results
    assert event["tool_use_result"] == f"Error: {problem}"
    assert event["message"]["content"][0]["is_error"] is True
    assert "tool_result_meta" not in event
    assert run.result["permission_denials"] == []


def test_an_ambiguous_edit_is_refused(agent: Agent) -> None:
    (agent.cwd / "a.txt").write_text("a a", "utf-8")
    (answer,) = agent.run([tool("Edit", file_path="a.txt", old_string="a", new_string="b")]).answers
    assert "Found 2 matches of the string to replace, but replace_all is false." in answer
    assert (agent.cwd / "a.txt").read_text("utf-8") == "a a"


def test_glob_and_grep_find_real_files(agent: Agent) -> None:
    for name, text in (("src/a.py", "x = 1\n"), ("src/b.py", "y = 2\nX = 3\n"), ("c.txt", "x\n"), (".git/d.py", "x\n")):
        (agent.cwd / name).parent.mkdir(parents=True, exist_ok=True)
        (agent.cwd / name).write_text(text, "utf-8")
    run = agent.run(
        [
            tool("Glob", pattern="**/*.py"),
            tool("Grep", pattern="^x"),
            tool("Grep", pattern="^x", path="src", glob="*.py", output_mode="content", **{"-i": True}),
            tool("Grep", pattern="nowhere"),
            tool("Grep", pattern="("),
        ]
    )
    a, b, c = (str(agent.cwd / name) for name in ("src/a.py", "src/b.py", "c.txt"))
    assert run.answers[:4] == [f"{a}\n{b}", f"{c}\n{a}", f"{a}:1:x = 1\n{b}:2:X = 3", "No matches found"]
    assert run.answers[4].startswith("regex parse error: ")


def test_bash_runs_in_the_working_directory_with_both_outputs(agent: Agent) -> None:
    run = agent.run(
        [bash("pwd; echo err >&2"), bash("mkdir d"), bash("exit 3"), bash("echo out; echo err >&2; exit 1")]
    )
    expected = [f"{agent.cwd}\nerr", "(Bash completed with no output)", "Exit code 3", "Exit code 1\nout\nerr"]
    assert run.answers == expected
    assert (agent.cwd / "d").is_dir()
    flags = [event["message"]["content"][0]["is_error"] for event in run.tool_results]
    assert flags == [False, False, True, True]
    assert run.tool_results[1]["tool_use_result"]["noOutputExpected"] is True
    assert run.tool_results[3]["tool_use_result"] == "Error: Exit code 1\nout\nerr"


def test_bash_tells_its_session_in_the_environment(agent: Agent) -> None:
    (answer,) = agent.run([bash("echo $CLAUDECODE $CLAUDE_PROJECT_DIR")]).answers
    assert answer == f"1 {agent.cwd}"


def test_bash_over_its_time_limit_is_killed_with_its_children(agent: Agent) -> None:
    (answer,) = agent.run([bash("echo before; sleep 600 & echo $! > pid; wait", timeout=300)]).answers
    assert answer == "Exit code 143\nCommand timed out after 0.3s\nbefore"
    assert not alive(agent.cwd / "pid")


def test_large_output_is_kept_in_a_file(agent: Agent) -> None:
    run = agent.run([bash("seq 1 60000")])
    (event,) = run.tool_results
    structured = event["tool_use_result"]
    saved = Path(structured["persistedOutputPath"])
    assert saved.is_relative_to(agent.config / "projects")
    assert saved.read_text("utf-8").endswith("59999\n60000")
    assert structured["persistedOutputSize"] == saved.stat().st_size == 348893
    assert len(structured["stdout"]) == 30_000
    (answer,) = run.answers
    assert answer.startswith(
        f"<persisted-output>\nOutput too large (340.7KB). Full output saved to: {saved}\n\nPreview"
    )


def test_invalid_bytes_of_a_command_become_replacement_characters(agent: Agent) -> None:
    assert agent.run([bash("printf 'a\\377b'")]).answers == ["a\ufffdb"]


def test_a_background_command_wakes_the_session_for_another_turn(agent: Agent) -> None:
    run = agent.run([bash("echo late > out.txt", run_in_background=True, description="later"), {"say": "Started."}])
    assert run.answers[0].startswith("Command running in background with ID: b")
    assert [event["subtype"] for event in run.of("system")] == [
        *("init", "background_tasks_changed", "task_started"),
        *("task_updated", "task_notification", "background_tasks_changed", "init"),
    ]
    first, second = run.of("result")
    assert (first["result"], first["result_index"]) == ("Started.", 0)
    assert (second["result"], second["result_index"]) == ("Background command completed (exit code 0)", 1)
    assert second["origin"]["kind"] == "task-notification"
    assert (agent.cwd / "out.txt").read_text("utf-8") == "late\n"


def test_a_skill_is_launched_from_what_is_staged(agent: Agent) -> None:
    agent.stage("my-slug", "---\nname: natural-name\ndescription: d\n---\n\n# Body\n\nArgs: $ARGUMENTS.\n")
    run = agent.run([tool("Skill", skill="my-slug", args="x y"), tool("Skill", skill="natural-name")], mode="dontAsk")
    assert run.init["skills"] == run.init["slash_commands"] == ["my-slug"]
    assert run.answers == ["Launching skill: my-slug", "Launching skill: natural-name"]
    assert run.tool_results[0]["tool_use_result"] == {"success": True, "commandName": "my-slug"}
    bodies = [event for event in run.of("user") if event.get("isSynthetic")]
    folder = agent.cwd / ".claude" / "skills" / "my-slug"
    texts = [event["message"]["content"][0]["text"] for event in bodies]
    start = f"Base directory for this skill: {folder}\n\n# Body\n\nArgs: "
    assert texts == [start + "x y.\n", start + ".\n"]


def test_a_skill_without_front_matter_can_be_launched_but_is_not_listed(agent: Agent) -> None:
    agent.stage("bare", "Just text.\n")
    run = agent.run([tool("Skill", skill="bare")])
    assert run.init["skills"] == []
    assert run.answers == ["Launching skill: bare"]


def test_side_by_side_calls_are_announced_before_they_are_answered(agent: Agent) -> None:
    calls = [{"name": "Bash", "input": {"command": f"echo {n}"}} for n in (1, 2)]
    run = agent.run([{"tools": calls}])
    assert [event["type"] for event in run.events] == ["system", "assistant", "assistant", "user", "user", "result"]
    assert run.answers == ["1", "2"]
    assert run.result["num_turns"] == 3


def test_parameters_of_a_wrong_type_are_named() -> None:
    assert input_problem("Bash", {"command": 1, "timeout": "1", "run_in_background": 0}) == (
        "InputValidationError: Bash failed due to the following issues:\n"
        "The parameter `command` type is expected as `string` but provided as `number`\n"
        "The parameter `timeout` type is expected as `number` but provided as `string`\n"
        "The parameter `run_in_background` type is expected as `boolean` but provided as `number`"
    )
    assert input_problem("Bash", {"command": "ls", "timeout": 5}) is None


def test_a_patch_shows_three_lines_of_context() -> None:
    before = "".join(f"{n}\n" for n in range(1, 21))
    (hunk,) = patch(before, before.replace("10\n", "ten\n"))
    assert hunk["lines"] == [" 7", " 8", " 9", "-10", "+ten", " 11", " 12", " 13"]
    assert (hunk["oldStart"], hunk["oldLines"], hunk["newStart"], hunk["newLines"]) == (7, 7, 7, 7)
    assert patch(None, "x") == []


def alive(pid_file: Path) -> bool:
    """Whether the process whose number is in a file runs; one that is only not reaped yet does not."""
    status = Path(f"/proc/{pid_file.read_text().strip()}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"
