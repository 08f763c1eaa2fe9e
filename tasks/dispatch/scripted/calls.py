"""Tool calls: checked, shown to the hooks, permitted or refused, carried out, reported; in the CLI's order."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from . import permissions, skills
from .hooks import Hooks, Verdict
from .permissions import Decision, Place, Rule
from .settings import Settings
from .shell import DEFAULT_TIMEOUT_MS, OUTPUT_LIMIT, Shell, is_quiet, shortened
from .stream import Json, Stream, new_uuid
from .tools import SCHEMAS, Answer, Files, input_problem

_HOOK_ALLOWED: Final = Decision(True, source="hook", reason_type="hook")


class Calls:
    """Makes the calls of one session."""

    def __init__(
        self,
        *,
        stream: Stream,
        shell: Shell,
        files: Files,
        hooks: Hooks,
        settings: Settings,
        place: Place,
        mode: str,
        allowed: list[Rule],
        denied: list[Rule],
        transcript: Path,
    ) -> None:
        self.denials: list[Json] = []  # as the result line lists them
        self.open: dict[str, Decision] = {}  # calls without an answer yet
        self.deferred: Json | None = None
        self._stream = stream
        self._shell = shell
        self._files = files
        self._hooks = hooks
        self._settings = settings
        self._place = place
        self._mode = mode
        self._allowed = allowed
        self._denied = denied
        self._transcript = transcript
        self._prompt_id = new_uuid()

    def removed_tools(self) -> set[str]:
        """Tools that a rule denies altogether: the session does not have them."""
        return {rule.tool for rule in self._deny_rules() if rule.pattern is None}

    def make(self, calls: list[tuple[str, Json]]) -> bool:
        """Make calls side by side: announced together, answered in order. False when a hook ends the session."""
        asked = [(self._stream.tool_use(name, given), name, given) for name, given in calls]
        self.open = dict.fromkeys([call for call, _, _ in asked], Decision(True))
        goes_on = [self._answer(call, name, given) for call, name, given in asked if self.deferred is None]
        return all(goes_on) and self.deferred is None

    def report_killed(self) -> None:
        """Answer the shell command that a signal killed, as the CLI does before it ends."""
        killed = self._shell.interrupted
        for call, decision in self.open.items():
            if killed is not None and decision.reason_type is not None:
                self._report(call, _failed(killed.exit_code, killed.output), decision)
                return

    def _answer(self, call: str, name: str, given: Json) -> bool:
        problem = self._problem(name, given)
        if problem is not None:
            text = f"<tool_use_error>{problem}</tool_use_error>"
            self._stream.tool_result(call, text, error=True, structured=f"Error: {problem}")
            self.open.pop(call)
            return True
        verdict = self._hook_verdict(call, name, given)
        if verdict.decision == "defer":
            self.deferred = {"id": call, "name": name, "input": given}
            self.open.clear()
            return False
        given = verdict.updated_input or given
        decision = self._decide(name, given, verdict)
        if decision.allowed:
            self.open[call] = decision
            self._carry_out(call, name, given, decision)
        else:
            self._refuse(call, name, given, decision, announced=decision.source != "hook")
        return not verdict.stops

    def _problem(self, name: str, given: Json) -> str | None:
        """What makes a call invalid; no hook and no permission is asked about such a one (measured)."""
        if name not in SCHEMAS:
            return f"Error: No such tool available: {name}"
        if name in self.removed_tools():
            gone = f"Error: No such tool available: {name}"
            return f"{gone}. {name} is disabled for this session, in subagents as well as here."
        wrong = input_problem(name, given)
        if wrong is not None:
            return wrong
        if name == "Skill":
            known = skills.find(self._place.cwd, given["skill"]) is not None
            return None if known else f"Unknown skill: {given['skill']}"
        readable = permissions.decide("Read", given, self._mode, self._allow_rules(), [], self._place).allowed
        return self._files.problem(name, given, readable)

    def _hook_verdict(self, call: str, name: str, given: Json) -> Verdict:
        asked = {
            "session_id": self._stream.session_id,
            "transcript_path": str(self._transcript),
            "cwd": str(self._place.cwd),
            "prompt_id": self._prompt_id,
            "permission_mode": self._mode,
            "effort": {"level": "medium"},
            "hook_event_name": "PreToolUse",
            "tool_name": name,
            "tool_input": given,
            "tool_use_id": call,
        }
        return self._hooks.pre_tool_use(self._settings.hooks("PreToolUse", name), asked)

    def _decide(self, name: str, given: Json, verdict: Verdict) -> Decision:
        if verdict.decision == "deny":
            return Decision(False, verdict.reason, "hook", "hook", "permission-rule")
        if verdict.decision == "ask":
            reason = verdict.reason
            return Decision(False, reason, kind="user-rejected", denied_type="hook", denied_reason=reason)
        allow, deny = self._allow_rules(), self._deny_rules()
        decision = permissions.decide(name, given, self._mode, allow, deny, self._place)
        if verdict.decision == "allow":
            by_rule = permissions.decide(name, given, "bypassPermissions", allow, deny, self._place)
            return _HOOK_ALLOWED if by_rule.allowed else by_rule
        if name == "Skill" and decision.allowed:
            skill = skills.find(self._place.cwd, given["skill"])
            asks = skill is not None and bool(skill.allowed_tools)
            return permissions.decide_skill(given["skill"], asks, self._mode, allow)
        return decision

    def _refuse(self, call: str, name: str, given: Json, decision: Decision, announced: bool) -> None:
        if announced:
            reasons = {"decision_reason_type": decision.denied_type, "decision_reason": decision.denied_reason}
            known = {key: value for key, value in reasons.items() if value is not None}
            asked = {"tool_name": name, "tool_use_id": call}
            self._stream.system("permission_denied", {**asked, **known, "message": decision.message})
        self.denials.append({"tool_name": name, "tool_use_id": call, "tool_input": given})
        self._report(call, Answer.failure(decision.message), decision)

    def _carry_out(self, call: str, name: str, given: Json, decision: Decision) -> None:
        if name == "Skill":
            self._launch(call, given, decision)
        elif name == "Bash":
            self._report(call, self._bash(call, given), decision)
        else:
            self._report(call, self._files.run(name, given), decision)

    def _launch(self, call: str, given: Json, decision: Decision) -> None:
        typed, arguments = given["skill"], given.get("args", "")
        skill = skills.find(self._place.cwd, typed)
        if skill is None:  # removed by a hook since it was checked
            self._report(call, Answer.failure(f"Unknown skill: {typed}"), decision)
            return
        self._allowed = self._allowed + permissions.rules(permissions.split_rules(skill.allowed_tools))
        launched = {"success": True, "commandName": typed}
        self._report(call, Answer(f"Launching skill: {typed}", launched), decision)
        body = skill.body.lstrip("\n").replace("$ARGUMENTS", arguments)
        self._stream.user_text(f"Base directory for this skill: {skill.folder}\n\n{body}", synthetic=True)

    def _bash(self, call: str, given: Json) -> Answer:
        command = given["command"]
        structured: Json = {"stdout": "", "stderr": "", "interrupted": False, "isImage": False}
        structured["noOutputExpected"] = is_quiet(command)
        if given.get("run_in_background", False):
            return self._background(call, given, structured)
        timeout_ms = int(given.get("timeout", DEFAULT_TIMEOUT_MS))
        ran = self._shell.run(command, timeout_ms)
        if ran.timed_out:
            return _failed(143, f"Command timed out after {timeout_ms / 1000:g}s\n{ran.output}".rstrip("\n"))
        if ran.exit_code != 0:
            return _failed(ran.exit_code, ran.output)
        structured["stdout"] = ran.output[:OUTPUT_LIMIT]
        if len(ran.output) <= OUTPUT_LIMIT:
            return Answer(ran.output or "(Bash completed with no output)", structured, error=False)
        saved = self._transcript.with_suffix("") / "tool-results" / f"{call}.txt"
        size = len(ran.output.encode("utf-8", "replace"))
        structured |= {"persistedOutputPath": str(saved), "persistedOutputSize": size}
        return Answer(shortened(ran.output, saved), structured, error=False)

    def _background(self, call: str, given: Json, structured: Json) -> Answer:
        task = self._shell.start(call, given["command"])
        about = given.get("description", given["command"])
        told = {"task_id": task.identifier, "task_type": "local_bash", "description": about}
        self._stream.system("background_tasks_changed", {"tasks": [told]})
        self._stream.system("task_started", {**told, "tool_use_id": call, "is_backgrounded": True})
        text = (
            f"Command running in background with ID: {task.identifier}. Output is being written to: {task.output}. "
            "You will be notified when it completes. To check interim output, use Read on that file path."
        )
        return Answer(text, {**structured, "backgroundTaskId": task.identifier}, error=False)

    def _report(self, call: str, answer: Answer, decision: Decision) -> None:
        structured = answer.structured
        self._stream.tool_result(call, answer.content, error=answer.error, structured=structured, meta=decision.meta())
        self.open.pop(call, None)

    def _allow_rules(self) -> list[Rule]:
        return [*self._allowed, *self._settings.permission_rules("allow")]

    def _deny_rules(self) -> list[Rule]:
        return [*self._denied, *self._settings.permission_rules("deny")]


def _failed(code: int, output: str) -> Answer:
    """The answer of a shell command that failed."""
    return Answer.failure(f"Exit code {code}\n{output}" if output else f"Exit code {code}")
