"""Every failure that a script can ask for."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from skilltrial.tasks.dispatch.scripted.failures import API_ERRORS
from skilltrial.tasks.dispatch.scripted.script import FAILURES
from tests.dispatch.scripted.agent import SESSION, Agent, Json, bash, finish, read_until


def fail(kind: str, **options: object) -> Json:
    return {"fail": {"kind": kind, **options}}


def test_crash_leaves_no_result(agent: Agent) -> None:
    run = agent.run([{"say": "Hello."}, fail("crash", exit_code=7, stderr="Segmentation fault\n")])
    assert (run.code, run.stderr) == (7, "Segmentation fault\n")
    assert [event["type"] for event in run.events] == ["system", "assistant"]


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV", "SIGTERM"])
def test_crash_by_a_signal(agent: Agent, name: str) -> None:
    assert agent.run([fail("crash", signal=name)]).code == -getattr(signal, name)


def test_crash_before_anything_is_written(agent: Agent) -> None:
    run = agent.run([{"at": "start", **fail("crash")}])
    assert (run.code, run.stdout) == (1, b"")
    assert run.stderr == "scripted agent: crashed as the script says\n"


def test_no_result(agent: Agent) -> None:
    run = agent.run([{"say": "Hello."}, fail("no_result")])
    assert (run.code, run.of("result")) == (0, [])


@pytest.mark.parametrize(
    ("kind", "status", "error", "retried", "start"),
    [
        ("rate_limit", 429, "rate_limit", "rate_limit", "API Error: Request rejected (429)"),
        ("overloaded", 529, "server_error", "overloaded", "API Error: Repeated 529 Overloaded errors."),
        ("server_error", 500, "server_error", "server_error", "API Error: 500 Internal server error."),
        ("auth", 401, "authentication_failed", "authentication_failed", "Invalid API key"),
        ("network", None, "server_error", "unknown", "API Error: Connection refused"),
        ("not_logged_in", None, "authentication_failed", None, "Not logged in · Please run /login"),
        ("billing", 400, "billing_error", None, "Credit balance is too low"),
        ("model_not_found", 404, "model_not_found", None, "There's an issue with the selected model"),
    ],
)
def test_failed_requests(
    agent: Agent, kind: str, status: int | None, error: str, retried: str | None, start: str
) -> None:
    options = {} if retried is None else {"retries": 2}
    run = agent.run([fail(kind, **options)])
    result = run.result
    assert run.code == 1
    assert (result["subtype"], result["is_error"], result["terminal_reason"]) == ("success", True, "api_error")
    assert result["api_error_status"] == status
    assert result["result"].startswith(start)
    (message,) = run.of("assistant")
    assert (message["message"]["model"], message["error"]) == ("<synthetic>", error)
    retries = [(e["attempt"], e["error_status"], e["error"]) for e in run.of("system", "api_retry")]
    assert retries == ([] if retried is None else [(1, status, retried), (2, status, retried)])


def test_every_kind_of_api_error_is_tested_above() -> None:
    assert set(API_ERRORS) < set(FAILURES)
    assert len(API_ERRORS) == 8


def test_a_recovered_request_only_leaves_its_retries(agent: Agent) -> None:
    run = agent.run([fail("overloaded", retries=2, recover=True, retry_delay_s=0.001), {"say": "Hello."}])
    assert (run.code, run.result["result"], run.result["is_error"]) == (0, "Hello.", False)
    assert [event["retry_delay_ms"] for event in run.of("system", "api_retry")] == [1, 1]


def test_exit_code_that_contradicts_the_result(agent: Agent) -> None:
    run = agent.run([fail("exit_code", exit_code=3), {"say": "Done."}])
    assert (run.code, run.result["subtype"], run.result["result"]) == (3, "success", "Done.")


def test_empty_result(agent: Agent) -> None:
    run = agent.run([{"say": "Done."}, fail("empty_result")])
    assert (run.code, run.result["result"]) == (0, "")


@pytest.mark.parametrize(
    ("kind", "subtype", "reason", "error"),
    [
        ("max_turns", "error_max_turns", "max_turns", "Reached maximum number of turns (1)"),
        ("max_budget", "error_max_budget_usd", "budget_exhausted", "Reached maximum budget ($0)"),
        ("error_during_execution", "error_during_execution", "aborted_tools", "boom"),
    ],
)
def test_sessions_that_end_in_an_error(agent: Agent, kind: str, subtype: str, reason: str, error: str) -> None:
    options = {"message": "boom"} if kind == "error_during_execution" else {}
    run = agent.run([bash("true"), fail(kind, **options)])
    result = run.result
    assert run.code == 1
    assert (result["subtype"], result["terminal_reason"], result["is_error"]) == (subtype, reason, True)
    assert result["errors"] == [error]
    assert "result" not in result


def test_foreign_session(agent: Agent) -> None:
    other = "99999999-0000-4000-8000-000000000000"
    run = agent.run([{"at": "start", **fail("foreign_session", session_id=other)}, {"say": "x"}])
    assert {event["session_id"] for event in run.events} == {other}
    late = Agent(agent.root / "late").run([fail("foreign_session"), {"say": "x"}])
    assert (late.init["session_id"], late.result["session_id"]) == (SESSION, "00000000-0000-4000-8000-000000000000")


def test_oversized_line(agent: Agent) -> None:
    run = agent.run([fail("oversized_line", bytes=3_000_000)])
    assert len(max(run.stdout.splitlines(), key=len)) > 3_000_000
    assert run.of("assistant")[0]["message"]["content"][0]["text"] == "x" * 3_000_000


def test_garbage_lines(agent: Agent) -> None:
    lines = agent.run([fail("garbage", lines=["one", "{"]), fail("garbage")]).stdout.splitlines()
    assert lines[1:3] == [b"one", b"{"]
    assert lines[3] == b"this line is no JSON"
    for line in lines[3:7]:
        with pytest.raises(ValueError, match=r"."):
            json.loads(line)


def test_invalid_utf8(agent: Agent) -> None:
    stdout = agent.run([fail("invalid_utf8")]).stdout
    (line,) = [line for line in stdout.splitlines() if b'"assistant"' in line]
    assert b"bytes: \xff\xfe\xc3" in line
    assert json.loads(line.decode("utf-8", "replace"))["type"] == "assistant"


def test_cut_last_line(agent: Agent) -> None:
    run = agent.run([{"say": "Done."}, fail("cut_last_line")])
    last = run.stdout.splitlines()[-1]
    assert (run.code, run.stdout.endswith(b"\n")) == (0, False)
    assert last.startswith(b'{"duration_api_ms"')
    with pytest.raises(ValueError, match=r"."):
        json.loads(last)


def test_cut_last_line_by_a_kill(agent: Agent) -> None:
    assert agent.run([fail("cut_last_line", signal="SIGKILL")]).code == -signal.SIGKILL


def test_slow_output_is_whole_in_the_end(agent: Agent) -> None:
    started = time.monotonic()
    run = agent.run([fail("slow_output", seconds=0.4, text="drop by drop")])
    assert time.monotonic() - started >= 0.4
    assert run.of("assistant")[0]["message"]["content"][0]["text"] == "drop by drop"


def test_stderr_flood(agent: Agent) -> None:
    run = agent.run([fail("stderr_flood", bytes=2_000_000), {"say": "Done."}])
    assert (len(run.stderr), run.code, run.result["result"]) == (2_000_000, 0, "Done.")


def test_hang_ends_by_itself_when_it_is_bounded(agent: Agent) -> None:
    assert agent.run([fail("hang", seconds=0.05), {"say": "Late."}]).result["result"] == "Late."


def test_hang_that_ignores_signals_has_to_be_killed(agent: Agent) -> None:
    ready = {"tool": {"name": "Bash", "input": {"command": "echo $PPID"}}}
    process = agent.start([ready, fail("hang", ignore_signals=True, child="session", pid_file="{cwd}/child")])
    list(read_until(process, b'"tool_result"'))
    child = wait_for_pid(agent.cwd / "child")
    wait_for(lambda: ignores(process.pid, signal.SIGTERM))
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGINT)
    assert is_running(process.pid)
    process.kill()
    run = finish(process)
    assert (run.code, run.of("result")) == (-signal.SIGKILL, [])
    assert is_running(child)
    kill(child)


@pytest.mark.parametrize(("kind", "deaf"), [("session", False), ("orphan", False), ("deaf", True)])
def test_processes_that_are_left_running(agent: Agent, kind: str, deaf: bool) -> None:
    run = agent.run([fail("leave_running", child=kind, pid_file="$TMPDIR/child"), {"say": "Done."}])
    child = wait_for_pid(agent.root / "tmp" / "child")
    try:
        assert (run.code, run.result["result"]) == (0, "Done.")
        assert is_running(child)
        assert ignores(child, signal.SIGTERM) is deaf
    finally:
        kill(child)


def test_a_process_left_running_can_hold_the_output_open(agent: Agent) -> None:
    leaving = fail("leave_running", child="orphan", pid_file="{cwd}/child", hold_output=True)
    process = agent.start([leaving, {"say": "Done."}])
    list(read_until(process, b'"result_index"'))
    assert process.wait(20) == 0
    child = wait_for_pid(agent.cwd / "child")
    assert Path(f"/proc/{child}/fd/1").readlink().name.startswith("pipe:")
    kill(child)
    assert finish(process).stdout == b""


def test_linger_stays_after_the_result(agent: Agent) -> None:
    process = agent.start([{"say": "Done."}, fail("linger")])
    *_, last = read_until(process, b'"result_index"')
    assert json.loads(last)["result"] == "Done."
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    assert finish(process).code == 128 + signal.SIGTERM


def test_times_limits_a_failure_to_the_first_processes(agent: Agent) -> None:
    steps = [fail("crash", times=2, counter="$HOME/deep/count"), {"say": "Done."}]
    codes = [Agent(agent.root / str(n), {"HOME": str(agent.root / "shared")}).run(steps).code for n in range(4)]
    assert codes == [1, 1, 0, 0]
    assert (agent.root / "shared" / "deep" / "count").read_text("utf-8") == "2"


def test_every_kind_is_carried_out_somewhere_here() -> None:
    text = Path(__file__).read_text("utf-8")
    assert [kind for kind in FAILURES if f'"{kind}"' not in text] == []


def wait_for_pid(path: Path) -> int:
    """The number in a file that appears whole."""
    wait_for(path.exists)
    return int(path.read_text("utf-8"))


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds that soon will."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def ignores(pid: int, number: int) -> bool:
    """Whether a process ignores a signal."""
    lines = Path(f"/proc/{pid}/status").read_text("utf-8").splitlines()
    ignored = int(next(line for line in lines if line.startswith("SigIgn:")).split()[1], 16)
    return bool(ignored >> (number - 1) & 1)


def is_running(pid: int) -> bool:
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text("utf-8").rpartition(")")[2].split()[0] not in "ZX"


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
