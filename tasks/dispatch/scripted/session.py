"""A session: the steps of a conversation carried out one after the other, up to the result line."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

from . import failures, skills
from .calls import Calls
from .failures import Ended, Ending, Scene
from .hooks import Hooks
from .permissions import Place, rules
from .script import Conversation, Step, filled
from .settings import Settings
from .shell import Shell, wait
from .signals import Signals, Stopped
from .stream import Json, Stream, encoded, new_uuid
from .tools import SCHEMAS, Files

_INTERRUPTED: Final = "[Request interrupted by user]"
_REJECTED: Final = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the "
    "new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed."
)


class Options(NamedTuple):
    """What the command line and the environment say."""

    prompt: str
    cwd: Path
    config: Path  # CLAUDE_CONFIG_DIR
    mode: str
    model: str | None
    allowed: list[str]
    disallowed: list[str]
    max_turns: int | None
    settings: Json
    hook_events: bool
    resumed: bool
    repetition: int | None


def project_folder(cwd: Path, config: Path) -> Path:
    """Where the sessions of a working directory are kept."""
    return config / "projects" / "".join(letter if letter.isalnum() else "-" for letter in str(cwd))


def transcript_of(session_id: str, config: Path) -> Path | None:
    """The transcript of a session of any working directory, as resuming looks for it (measured)."""
    return next((config / "projects").glob(f"*/{session_id}.jsonl"), None)


class Session:
    """One process: a new session, or another round of an old one."""

    def __init__(self, options: Options, conversation: Conversation, stream: Stream, signals: Signals) -> None:
        self._options = options
        self._conversation = conversation
        self._stream = stream
        self._signals = signals
        self._ending = Ending()
        self._folder = project_folder(options.cwd, options.config)
        self._transcript = (
            transcript_of(stream.session_id, options.config) or self._folder / f"{stream.session_id}.jsonl"
        )
        self._tmp = os.environ.get("TMPDIR", "/tmp")
        environment = {
            **os.environ,
            "CLAUDECODE": "1",
            "CLAUDE_PROJECT_DIR": str(options.cwd),
            "CLAUDE_CODE_SESSION_ID": stream.session_id,
        }
        scratch = Path(self._tmp) / f"scripted-{os.getuid()}" / stream.session_id / "tasks"
        self._shell = Shell(options.cwd, environment, scratch, signals)
        self._settings = Settings(options.cwd, options.config, options.settings)
        hooks = Hooks(stream, signals, options.cwd, environment, options.hook_events)
        self._calls = Calls(
            stream=stream,
            shell=self._shell,
            files=Files(options.cwd),
            hooks=hooks,
            settings=self._settings,
            place=Place(options.cwd, options.config),
            mode=_told(options.mode),
            allowed=rules(options.allowed),
            denied=rules(options.disallowed),
            transcript=self._transcript,
        )
        self._scene = Scene(stream, signals, self._ending, self._calls.denials)

    def run(self) -> int:
        """Carry out the conversation; returns the exit code."""
        try:
            self._begin()
            if self._go_through(at_start=False):
                self._end()
            return self._ending.exit_code
        except Ended as ended:
            return ended.code
        except Stopped as stopped:
            return self._stopped(stopped)

    def _begin(self) -> None:
        self._record({"type": "user", "message": {"role": "user", "content": self._options.prompt}})
        self._go_through(at_start=True)
        self._init()

    def _init(self) -> None:
        self._stream.init(
            self._options.cwd,
            mode=_told(self._options.mode),
            tools=[tool for tool in SCHEMAS if tool not in self._calls.removed_tools()],
            skills=[skill.slug for skill in skills.staged(self._options.cwd) if skill.listed],
            memory=f"{self._folder}/memory/",
            asked=self._options.model,
        )

    def _go_through(self, at_start: bool) -> bool:
        """Carry out the steps of the start, or the others; false when the session was ended on the way."""
        for step in self._conversation.steps:
            if step.at_start != at_start or not self._holds(step.when):
                continue
            wait(step.sleep_s, self._signals, for_model=True)
            if not self._carry_out(step):
                return False
            if step.end:
                break
        return True

    def _carry_out(self, step: Step) -> bool:
        limit = self._options.max_turns
        speaks = step.think is not None or step.say is not None or bool(step.tools)
        if speaks and limit is not None and self._stream.between_messages and self._stream.turns >= limit:
            failures.max_turns(limit, self._scene)
        values = self._values()
        if step.think is not None:
            self._stream.thinking(filled(step.think, values))
        if step.say is not None:
            self._ending.text = filled(step.say, values)
            self._stream.text(self._ending.text)
            self._record({"type": "assistant", "text": self._ending.text})
        if step.tools and not self._calls.make([(use.name, filled(use.input, values)) for use in step.tools]):
            self._stop_for_hook()
            return False
        if step.event is not None:
            identity = {"session_id": self._stream.session_id, "uuid": new_uuid()}
            self._stream.event({**identity, **filled(step.event, values)})
        if step.fail is not None and failures.is_due(filled(step.fail, values)):
            failures.carry_out(filled(step.fail, values), self._scene)
        return True

    def _stop_for_hook(self) -> None:
        """A hook ended the session: after a call (`continue: false`), or before it (`defer`)."""
        deferred = self._calls.deferred
        reason = "hook_stopped" if deferred is None else "tool_deferred"
        stop = "tool_use" if deferred is None else "tool_deferred"
        more = {} if deferred is None else {"deferred_tool_use": deferred}
        self._stream.event(self._stream.result("success", reason, stop, self._calls.denials, result="", **more))

    def _end(self) -> None:
        ending = self._ending
        text = ending.text or "" if ending.result is None else ending.result
        self._stream.event(self._stream.result("success", "completed", "end_turn", self._calls.denials, result=text))
        self._await_tasks()
        wait(ending.linger_s, self._signals, for_model=False)

    def _await_tasks(self) -> None:
        """Wait for background commands; each wakes the session for a turn with its own init and result (measured)."""
        for call, task in self._shell.tasks.items():
            with self._signals.waiting():
                code = task.process.wait()
            status = "completed" if code == 0 else "failed"
            identity = {"task_id": task.identifier}
            patch = {"status": status, "end_time": round(time.time() * 1000)}
            self._stream.system("task_updated", {**identity, "patch": patch})
            summary = f"Background command {status} (exit code {code})"
            told = {"tool_use_id": call, "status": status, "output_file": str(task.output), "summary": summary}
            self._stream.system("task_notification", {**identity, **told})
            self._stream.system("background_tasks_changed", {"tasks": []})
            self._stream.next_turn()
            self._init()
            self._stream.text(summary)
            origin = {"kind": "task-notification", "producer": "session-task"}
            event = self._stream.result("success", "completed", "end_turn", [], result=summary, origin=origin)
            self._stream.event(event)

    def _stopped(self, stopped: Stopped) -> int:
        """End as the CLI does on a signal (measured): SIGINT with exit code 0, the others without a result."""
        self._shell.kill_tasks()
        if stopped.number != signal.SIGINT:
            self._calls.report_killed()
            return 128 + stopped.number
        if self._calls.open:
            for call in list(self._calls.open):
                meta = {"non_execution_kind": "user-rejected"}
                self._stream.tool_result(call, _REJECTED, error=True, structured="User rejected tool use", meta=meta)
            self._stream.user_text(f"{_INTERRUPTED[:-1]} for tool use]")
            self._interrupted("aborted_tools", "tool_use")
        elif self._ending.streaming:
            self._stream.write(b"\n")
            self._stream.user_text(_INTERRUPTED)
            self._interrupted("aborted_streaming", None)
        elif self._stream.results == 0:
            self._stream.user_text(_INTERRUPTED)
        return 0

    def _interrupted(self, reason: str, stop_reason: str | None) -> None:
        told = f"[ede_diagnostic] result_type=user last_content_type=n/a stop_reason={stop_reason or 'null'}"
        turns = self._stream.tool_results + 2
        subtype = "error_during_execution"
        event = self._stream.result(subtype, reason, stop_reason, self._calls.denials, errors=[told], num_turns=turns)
        self._stream.event(event)

    def _holds(self, when: Json) -> bool:
        cwd = self._options.cwd
        slugs = {skill.slug for skill in skills.staged(cwd)}
        tests: dict[str, Callable[[Any], bool]] = {
            "skill": lambda slug: slug in slugs,
            "no_skill": lambda slug: slug not in slugs,
            "repetition": lambda numbers: self._options.repetition in numbers,
            "denied_before": lambda denied: denied == bool(self._calls.denials),
            "resumed": lambda resumed: resumed == self._options.resumed,
            "exists": lambda path: (cwd / path).exists(),
            "missing": lambda path: not (cwd / path).exists(),
            "mode": lambda modes: self._options.mode in modes,
        }
        return all(tests[key](value) for key, value in when.items())

    def _values(self) -> dict[str, str]:
        return {
            "cwd": str(self._options.cwd),
            "home": os.environ.get("HOME", ""),
            "tmp": self._tmp,
            "session_id": self._stream.session_id,
            "repetition": str(self._options.repetition or ""),
        }

    def _record(self, entry: Json) -> None:
        """Add to the transcript; a configuration folder that cannot be written only prevents resuming (measured)."""
        with contextlib.suppress(OSError):
            self._transcript.parent.mkdir(parents=True, exist_ok=True)
            with self._transcript.open("ab") as file:
                file.write(encoded({**entry, "sessionId": self._stream.session_id}) + b"\n")


def _told(mode: str) -> str:
    """The name that the stream gives to a mode: `manual` is called `default` (measured)."""
    return "default" if mode == "manual" else mode
