"""Real processes under a real supervisor: how a round ends, and that nothing of it survives."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

import psutil
import pytest

from skilltrial.data.attempt import EndedBy
from skilltrial.tasks.dispatch import process
from skilltrial.tasks.dispatch.marks import MARK_NAME
from skilltrial.tasks.dispatch.supervisor import Events
from tests.dispatch.programs import Bench, living

RESULT = json.dumps({"type": "result", "subtype": "success", "is_error": False})


def test_a_round_keeps_output_and_exit_code_exactly(bench: Bench) -> None:
    record = bench.run(["/bin/sh", "-c", "printf 'one\\0\\377two'; printf 'oops' >&2; exit 3"])

    assert (record.ended_by, record.exit_code, record.leftovers, record.error) == (EndedBy.EXIT, 3, 0, None)
    assert bench.files.events.read_bytes() == b"one\0\xfftwo"
    assert bench.files.stderr.read_bytes() == b"oops"
    assert (record.stdout_bytes, record.stderr_bytes) == (8, 4)


def test_the_agent_gets_exactly_the_environment_it_is_given(bench: Bench) -> None:
    bench.run(["/usr/bin/env"], environment={"HOME": "/nowhere", "ODD": "a=b c"})

    assert sorted(bench.files.events.read_text().splitlines()) == sorted(
        ["HOME=/nowhere", "ODD=a=b c", f"{MARK_NAME}={bench.mark}"]
    )


def test_a_prompt_of_megabytes_arrives_byte_for_byte(bench: Bench) -> None:
    prompt = os.urandom(3 << 20)
    bench.files.prompt.write_bytes(prompt)

    record = bench.run(["/bin/cat"])

    assert bench.files.events.read_bytes() == prompt
    assert record.stdout_bytes == len(prompt)


def test_a_line_of_many_megabytes_is_kept_whole(bench: Bench) -> None:
    record = bench.run(bench.program("say('x' * 9_000_000); say('end')"))

    assert record.stdout_bytes == 9_000_005
    assert bench.files.events.read_bytes().endswith(b"x\nend\n")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_a_signal_that_is_not_ours_is_an_exit_with_its_negative_number(bench: Bench, number: signal.Signals) -> None:
    record = bench.run(["/bin/sh", "-c", f"kill -{int(number)} $$"])

    assert (record.ended_by, record.exit_code) == (EndedBy.EXIT, -number)


def test_a_missing_executable_is_recorded_with_its_name(bench: Bench) -> None:
    record = bench.run(["/no/such/agent"])

    assert (record.ended_by, record.exit_code) == (EndedBy.NOT_STARTED, None)
    assert record.error is not None
    assert "/no/such/agent" in record.error


def test_a_file_that_cannot_be_executed_is_recorded_as_not_started(bench: Bench) -> None:
    garbage = bench.folder / "garbage"
    garbage.write_bytes(b"\0\1\2")
    garbage.chmod(0o700)

    assert bench.run([str(garbage)]).ended_by is EndedBy.NOT_STARTED


def test_the_deadline_ends_even_what_left_the_session_and_ignores_signals(bench: Bench) -> None:
    argv = bench.program("tell(os.getpid(), stubborn_session(), daemon()); signal.pause()")
    told: list[psutil.Process] = []
    reader = threading.Thread(target=lambda: told.extend(bench.told()))
    reader.start()

    record = bench.run(argv, process.Limits(deadline_s=1.0, silence_s=60.0))

    reader.join()
    assert record.ended_by is EndedBy.DEADLINE
    assert len(told) == 3
    assert [entry for entry in told if entry.is_running()] == []
    assert record.duration_ms < 8_000


def test_a_cli_that_goes_silent_is_ended(bench: Bench) -> None:
    record = bench.run(bench.program("say('hello'); signal.pause()"), process.Limits(60.0, 0.4))

    assert record.ended_by is EndedBy.SILENCE
    assert bench.files.events.read_bytes() == b"hello\n"


@pytest.mark.parametrize("stream", ["sys.stdout", "sys.stderr"])
def test_output_on_either_stream_keeps_a_cli_alive(bench: Bench, stream: str) -> None:
    argv = bench.program(
        f"""
        for _ in range(12):
            print("still here", file={stream}, flush=True)
            time.sleep(0.1)
        """
    )

    assert bench.run(argv, process.Limits(60.0, 0.8)).ended_by is EndedBy.EXIT


def test_a_cli_that_lingers_after_its_result_is_ended(bench: Bench) -> None:
    argv = bench.program(f"say({RESULT!r}); signal.pause()")

    record = bench.run(argv, process.Limits(60.0, 60.0, grace_s=0.3))

    assert record.ended_by is EndedBy.LINGERING
    assert bench.files.events.read_text() == RESULT + "\n"


def test_work_after_a_result_is_not_lingering(bench: Bench) -> None:
    later = json.dumps({"type": "system", "subtype": "init"})
    argv = bench.program(f"say({RESULT!r}); say({later!r}); signal.pause()")

    record = bench.run(argv, process.Limits(60.0, 1.2, grace_s=0.3))

    assert record.ended_by is EndedBy.SILENCE


def test_what_outlives_the_cli_is_ended_and_counted(bench: Bench) -> None:
    told: list[psutil.Process] = []
    reader = threading.Thread(target=lambda: told.extend(bench.told()))
    reader.start()

    record = bench.run(bench.program("tell(stubborn_session(), daemon())"))

    reader.join()
    assert (record.ended_by, record.exit_code, record.leftovers) == (EndedBy.EXIT, 0, 2)
    assert [entry for entry in told if entry.is_running()] == []


def test_a_flood_on_stderr_neither_blocks_nor_fills_the_disk(bench: Bench) -> None:
    argv = bench.program(
        """
        os.write(2, b"first words\\n")
        block = b"x" * 1_000_000
        for _ in range(200):
            view = memoryview(block)
            while view:
                view = view[os.write(2, view):]
        os.write(2, b"\\nlast words")
        say("done")
        """
    )

    record = bench.run(argv)

    kept = bench.files.stderr.read_bytes()
    assert record.stderr_bytes == 200_000_023
    assert bench.files.events.read_bytes() == b"done\n"
    assert kept.startswith(b"first words\nxxx")
    assert kept.endswith(b"xxx\nlast words")
    assert b"\n[199934487 bytes left out]\n" in kept
    assert len(kept) < 70_000


def test_a_secret_never_reaches_the_disk(bench: Bench) -> None:
    canary = 'sk-canary-"Kü-0123456789'
    argv = bench.program(
        """
        import json
        key = os.environ["API_KEY"]
        def out(descriptor, content):
            for start in range(0, len(content), 5):  # so that the secret is cut in pieces
                os.write(descriptor, content[start:start + 5])
                time.sleep(0.0005)
        line = json.dumps({"type": "user", "raw": key, "nested": json.dumps({"inner": key})})
        out(1, b"before " + key.encode() + b" after\\n" + line.encode() + b"\\n")
        out(2, b"trouble with " + key.encode())
        """
    )

    record = bench.run(argv, environment={"API_KEY": canary}, secrets=(canary,))

    events = bench.files.events.read_bytes()
    assert record.exit_code == 0
    assert events.splitlines()[0] == b"before [redacted] after"
    assert json.loads(events.splitlines()[1]) == {
        "type": "user",
        "raw": "[redacted]",
        "nested": '{"inner": "[redacted]"}',
    }
    assert bench.files.stderr.read_bytes() == b"trouble with [redacted]"
    for path in bench.folder.rglob("*"):
        if path.is_file():
            assert b"0123456789" not in path.read_bytes(), path


def test_all_rounds_can_be_ended_from_another_thread(bench: Bench) -> None:
    told: list[psutil.Process] = []

    def act(processes: list[psutil.Process]) -> None:
        told.extend(processes)
        assert process.end_all() == 1

    record = bench.meanwhile(bench.program("tell(os.getpid(), stubborn_session()); signal.pause()"), act)

    assert record.ended_by is EndedBy.CANCELLED
    assert record.duration_ms < 8_000
    assert [entry for entry in told if entry.is_running()] == []


def test_a_round_whose_attempt_began_before_the_end_of_all_does_not_start(bench: Bench) -> None:
    drawn = process.ticket()
    process.end_all()

    record = bench.run(["/bin/sh", "-c", "echo started"], ticket=drawn)

    assert (record.ended_by, record.exit_code) == (EndedBy.CANCELLED, None)
    assert not bench.files.events.exists()


def test_killing_the_runner_ends_its_round_and_leaves_a_record(bench: Bench) -> None:
    argv = bench.program("tell(os.getpid(), stubborn_session()); signal.pause()")
    code = f"""
from pathlib import Path
from tests.dispatch.programs import Bench, LONG
from skilltrial.tasks.dispatch import process
files = process.RoundFiles.inside(Path({str(bench.folder)!r}) / "round-1", Path({str(bench.files.prompt)!r}))
process.run_round({argv!r}, {{"{MARK_NAME}": {bench.mark!r}}}, Path({str(bench.folder)!r}), files, LONG)
"""
    with subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[2]) as runner:
        told = bench.told()
        supervisor = told[0].parent()
        assert supervisor is not None
        runner.kill()

    assert living([*told, supervisor]) == []
    assert json.loads(bench.files.record.read_bytes())["ended_by"] == "cancelled"


def test_killing_the_supervisor_ends_all_that_it_watched(bench: Bench) -> None:
    told: list[psutil.Process] = []

    def act(processes: list[psutil.Process]) -> None:
        told.extend(processes)
        supervisor = processes[0].parent()
        assert supervisor is not None
        supervisor.kill()

    with pytest.raises(process.SupervisorLost, match="without a record"):
        bench.meanwhile(bench.program("tell(os.getpid(), stubborn_session()); signal.pause()"), act)

    assert len(told) == 2
    assert living(told) == []


def test_a_signal_to_the_supervisor_ends_its_round_in_order(bench: Bench) -> None:
    def act(processes: list[psutil.Process]) -> None:
        supervisor = processes[0].parent()
        assert supervisor is not None
        supervisor.terminate()

    record = bench.meanwhile(bench.program("tell(os.getpid()); signal.pause()"), act)

    assert (record.ended_by, record.exit_code) == (EndedBy.CANCELLED, -signal.SIGINT)


def test_sixteen_rounds_run_side_by_side(tmp_path: Path) -> None:
    benches = []
    for number in range(16):
        (tmp_path / str(number)).mkdir()
        benches.append(Bench(tmp_path / str(number)))

    with ThreadPoolExecutor(16) as pool:
        records = list(pool.map(lambda entry: entry[1].run(["/bin/echo", str(entry[0])]), enumerate(benches)))

    assert [record.exit_code for record in records] == [0] * 16
    assert [entry.files.events.read_text() for entry in benches] == [f"{number}\n" for number in range(16)]


def test_ending_all_waits_for_a_job_that_is_being_handed_over(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    write, closed = process._write_all, list[bool]()

    def interrupted(pipe: IO[bytes], content: bytes) -> None:
        ending.start()
        ending.join(timeout=0.5)  # without a lock it is over by then
        closed.append(pipe.closed)
        write(pipe, content)

    ending = threading.Thread(target=process.end_all)
    monkeypatch.setattr(process, "_write_all", interrupted)
    record = bench.run(["/bin/sh", "-c", "sleep 60"])
    ending.join()

    assert closed == [False]
    assert record.ended_by is EndedBy.CANCELLED


def test_a_line_that_is_still_being_written_is_not_read_again_with_each_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job: Any = {"events": str(tmp_path / "events"), "results": [{"type": "result"}], "secrets": ["x" * 8]}
    events, searched, search = Events(job), [], Events._last_line

    def noted(self: Events, size: int) -> bytes:
        searched.append(size)
        return search(self, size)

    monkeypatch.setattr(Events, "_last_line", noted)
    with events.file:
        for piece in (b'{"type": "resu', b'lt", "text": "', b"a" * 100_000):
            events.feed(piece)
            assert events.end_in_result() is False
        events.feed(b'"}\n')
        assert events.end_in_result() is True
        assert searched == [events.size()]
