"""`PreToolUse` hooks: command hooks and http hooks on this machine, with the answers of claude 2.1.332 (measured).

They fail open: a hook that crashes, times out or answers nonsense lets the call run, unless it says
`onFailure: "block"`. Hooks that would call a model (`prompt`, `agent`) or an MCP server always fail here.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any, Final, NamedTuple

from .settings import Hook
from .shell import kill_group
from .signals import Signals, Stopped
from .stream import Json, Stream, new_uuid

_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1", "[::1]")
_DECISIONS: Final = ("deny", "defer", "ask", "allow")  # in falling weight
_BAD_DECISION: Final = (
    "Hook JSON output validation failed — hookSpecificOutput.permissionDecision: Invalid option: expected one of "
    '"allow"|"deny"|"ask"|"defer"'
)


class Verdict(NamedTuple):
    """What the hooks of a call say together."""

    decision: str | None = None  # deny, defer, ask or allow; null: no opinion
    reason: str = ""
    updated_input: Json | None = None
    stops: bool = False  # the session ends after the call


class _Reply(NamedTuple):
    """What one hook did. `failure` is null when it gave a usable answer."""

    stdout: str = ""
    stderr: str = ""
    code: int | None = None
    failure: str | None = None
    timed_out: bool = False
    silent: bool = False  # a failure that the CLI does not report


class Hooks:
    """Runs the hooks of a session and reports them in its stream."""

    def __init__(self, stream: Stream, signals: Signals, cwd: Path, environment: dict[str, str], shown: bool) -> None:
        self._stream = stream
        self._signals = signals
        self._cwd = cwd
        self._environment = environment
        self._shown = shown
        self._warned = False

    def pre_tool_use(self, hooks: list[Hook], call: Json) -> Verdict:
        """Ask the hooks about a call; `call` is what they are handed. The strictest answer counts."""
        verdicts = [self._ask(hook, call) for hook in hooks]
        decided = [verdict for verdict in verdicts if verdict.decision in _DECISIONS]
        strictest = min(decided, key=lambda verdict: _DECISIONS.index(verdict.decision or ""), default=Verdict())
        updates = [verdict.updated_input for verdict in verdicts if verdict.updated_input is not None]
        stops = any(verdict.stops for verdict in verdicts)
        return strictest._replace(updated_input=updates[-1] if updates else None, stops=stops)

    def _ask(self, hook: Hook, call: Json) -> Verdict:
        tool = call["tool_name"]
        identity = {"hook_id": new_uuid(), "hook_name": f"PreToolUse:{tool}", "hook_event": "PreToolUse"}
        if self._shown:
            self._stream.system("hook_started", identity)
        reply = self._http(hook, call) if hook.type == "http" else self._command(hook, call)
        verdict, reply = _judged(hook, reply, tool)
        if self._shown:
            self._stream.system("hook_response", {**identity, **_response(hook, reply)})
        if reply.failure is not None and not hook.blocks_on_failure and not reply.silent:
            self._warn(call["tool_use_id"], reply.timed_out)
        return verdict

    def _warn(self, call: str, timed_out: bool) -> None:
        if self._warned:
            return
        self._warned = True
        what = "didn't answer in time" if timed_out else "gave no usable answer"
        verdict = {"hook_event": "PreToolUse", "tool_use_id": call, "timed_out": timed_out}
        text = f"A hook {what}, so it didn't check this action."
        marks = {"level": "warning", "tag": "hook_no_verdict", "hook_no_verdict": verdict}
        self._stream.system("informational", {"content": text, **marks})

    def _command(self, hook: Hook, call: Json) -> _Reply:
        if hook.type != "command":
            return _Reply(failure=f"the scripted agent has no {hook.type} hooks")
        process = subprocess.Popen(
            ["/bin/sh", "-c", hook.target],
            cwd=self._cwd,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            with self._signals.waiting():
                out, err = process.communicate(json.dumps(call).encode(), hook.timeout_s)
        except subprocess.TimeoutExpired:
            kill_group(process)
            _close(process)  # a grandchild in a session of its own may hold the other ends
            return _Reply(code=1, failure="", timed_out=True)
        except Stopped:
            kill_group(process)
            _close(process)
            raise
        code = process.returncode
        reply = _Reply(out.decode("utf-8", "replace"), err.decode("utf-8", "replace"), code)
        if code in (0, 2):
            return reply
        return reply._replace(failure=reply.stderr.rstrip("\n"), silent=0 < code < 126)

    def _http(self, hook: Hook, call: Json) -> _Reply:
        import http.client  # here, since few sessions have http hooks and it is slow to import
        from urllib.parse import urlsplit

        address = urlsplit(hook.target)
        if address.scheme != "http" or address.hostname not in _LOOPBACK:
            return _refused_http(f"the scripted agent calls no other machine: {hook.target}")
        headers = {"Content-Type": "application/json", **self._headers(hook)}
        connection = http.client.HTTPConnection(address.hostname, address.port or 80, timeout=hook.timeout_s)
        try:
            with self._signals.waiting():
                path = f"{address.path or '/'}?{address.query}" if address.query else address.path or "/"
                connection.request("POST", path, json.dumps(call).encode(), headers)
                answer = connection.getresponse()
                body = answer.read().decode("utf-8", "replace")
        except TimeoutError:
            return _Reply(failure="", timed_out=True)
        except ConnectionRefusedError:
            return _refused_http(f"connect ECONNREFUSED {address.hostname}:{address.port or 80}")
        except (OSError, http.client.HTTPException) as error:
            return _refused_http(str(error) or type(error).__name__)
        finally:
            connection.close()
        if not 200 <= answer.status < 300:
            text = f"HTTP {answer.status} from {hook.target}"
            return _Reply(stderr=text, code=answer.status, failure=text)
        if body.strip() and _object(body) is None:
            text = f"HTTP hook must return JSON, but got non-JSON response body: {body}"
            return _Reply(body, text, answer.status, failure=text)
        return _Reply(body, code=answer.status)

    def _headers(self, hook: Hook) -> dict[str, str]:
        def value(match: re.Match[str]) -> str:
            name = match[1] or match[2]
            return os.environ.get(name, "") if name in hook.environment_names else ""

        return {key: re.sub(r"\$(?:(\w+)|\{(\w+)\})", value, text) for key, text in hook.headers.items()}


def _judged(hook: Hook, reply: _Reply, tool: str) -> tuple[Verdict, _Reply]:
    """What a reply means, and the reply with what was found wrong with it."""
    prefix = f"PreToolUse:{tool} hook error: "
    if reply.failure is None and hook.type == "command" and reply.code == 2:
        return Verdict("deny", f"{prefix}[{hook.target}]: {reply.stderr}"), reply
    answer = _object(reply.stdout) if reply.failure is None else None
    if answer is not None:
        specific = answer.get("hookSpecificOutput")
        decision = specific.get("permissionDecision") if isinstance(specific, dict) else None
        if decision is not None and decision not in _DECISIONS:
            reply = reply._replace(stderr=_BAD_DECISION, failure=_BAD_DECISION)
        else:
            return _verdict(answer, specific if isinstance(specific, dict) else {}, prefix), reply
    if reply.failure is None or not hook.blocks_on_failure:
        return Verdict(), reply
    what = "timed out" if reply.timed_out else "failed"
    detail = f"\n{reply.failure}" if reply.failure else ""
    return Verdict("deny", f'{prefix}[{hook.target}]: {what}; blocking because onFailure is "block"{detail}'), reply


def _verdict(answer: Json, specific: Json, prefix: str) -> Verdict:
    decision = specific.get("permissionDecision")
    reason = str(specific.get("permissionDecisionReason", ""))
    if decision is None and answer.get("decision") == "block":
        decision, reason = "deny", str(answer.get("reason", ""))
    if decision is None and answer.get("decision") == "approve":
        decision, reason = "allow", str(answer.get("reason", ""))
    updated = specific.get("updatedInput")
    return Verdict(
        decision,
        prefix + reason if decision == "deny" else reason,
        updated if isinstance(updated, dict) and decision != "deny" else None,
        answer.get("continue") is False,
    )


def _response(hook: Hook, reply: _Reply) -> Json:
    failed = reply.failure is not None or (hook.type == "command" and reply.code == 2)
    outcome = "cancelled" if reply.timed_out else "error" if failed else "success"
    texts = {"stdout": reply.stdout, "stderr": reply.stderr}
    output = reply.stdout + reply.stderr if hook.type == "command" else reply.stdout or reply.stderr
    if hook.type == "http" and reply.timed_out:
        output = "Hook cancelled"
    code = {} if reply.code is None else {"exit_code": reply.code}
    return {"output": output, **texts, **code, "outcome": outcome}


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def _refused_http(text: str) -> _Reply:
    return _Reply(stderr=text, failure=text)


def _object(text: str) -> Json | None:
    """The one JSON object that a text is; anything else is plain text."""
    if not text.strip().startswith("{"):
        return None
    try:
        value: Any = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
