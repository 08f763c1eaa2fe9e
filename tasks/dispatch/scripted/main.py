"""The command line of the scripted agent: options in the CLI's spelling, the prompt on standard input."""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path
from typing import Final, NamedTuple

from . import script, settings
from .permissions import MODES, split_rules
from .session import Options, Session, project_folder, transcript_of
from .signals import Signals
from .stream import NAME, VERSION, Json, Stream, new_uuid

_UUID: Final = re.compile(r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", re.IGNORECASE)


class _Refused(Exception):
    """The command line or the script is not usable: a message for standard error, and an exit code."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


class _Start(NamedTuple):
    """A usable command line with all that it names."""

    options: Options
    session_id: str
    conversation: script.Conversation


def main(arguments: list[str]) -> int:
    """Run the agent; returns its exit code. 2: the command line or the script is wrong; 1: like the CLI's."""
    try:
        start = _start(_parser().parse_args(arguments))
    except _Refused as refused:
        print(refused, file=sys.stderr)
        return refused.code
    signals = Signals()
    signals.install()
    stream = Stream(start.session_id, signals)
    return Session(start.options, start.conversation, stream, signals).run()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripted-agent", description="An agent CLI without a model: it carries out a script.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"{VERSION} ({NAME})")
    parser.add_argument("--script", type=Path, required=True, help="JSON file that says what to do for which prompt")
    parser.add_argument("--session-id", help="UUID of the new session")
    parser.add_argument("--resume", metavar="ID", help="UUID of the session to go on with")
    parser.add_argument("--model", help="is only repeated in the stream")
    parser.add_argument("--permission-mode", choices=MODES, default="default")
    parser.add_argument("--allowedTools", "--allowed-tools", default="", help="permission rules, comma separated")
    parser.add_argument("--disallowedTools", "--disallowed-tools", default="", help="permission rules, comma separated")
    parser.add_argument("--max-turns", type=int)
    parser.add_argument("--max-budget-usd", type=float, help="accepted; nothing is ever spent")
    parser.add_argument("--settings", default="{}", help="JSON, or the path of a file that holds it")
    parser.add_argument("--include-hook-events", action="store_true")
    return parser


def _start(given: argparse.Namespace) -> _Start:
    flags = settings.parse_given(given.settings)
    if flags is None:
        raise _Refused("Error: Invalid JSON provided to --settings")
    session_id = _session_id(given)
    config = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
    if given.resume is None and (project_folder(Path.cwd(), config) / f"{session_id}.jsonl").exists():
        raise _Refused(f"Error: Session ID {session_id} is already in use.")
    prompt = sys.stdin.buffer.read().decode("utf-8", "replace")
    if not prompt.strip():
        raise _Refused("Error: Input must be provided through stdin")
    conversation = _conversation(given.script, prompt)
    options = Options(
        prompt=prompt,
        cwd=Path.cwd(),
        config=config,
        mode=given.permission_mode,
        model=given.model,
        allowed=split_rules(given.allowedTools),
        disallowed=split_rules(given.disallowedTools),
        max_turns=given.max_turns,
        settings=flags,
        hook_events=given.include_hook_events,
        resumed=given.resume is not None,
        repetition=_repetition(),
    )
    if given.resume is not None and transcript_of(session_id, config) is None:
        _refuse_resume(session_id)
    return _Start(options, session_id, conversation)


def _session_id(given: argparse.Namespace) -> str:
    if given.resume is not None and given.session_id is not None:
        raise _Refused("Error: --session-id cannot be used together with --resume")
    session_id: str = given.resume or given.session_id or new_uuid()
    if not _UUID.match(session_id):
        raise _Refused("Error: Invalid session ID. Must be a valid UUID.")
    return session_id


def _conversation(path: Path, prompt: str) -> script.Conversation:
    try:
        conversations = script.parse(path.read_text("utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise _Refused(f"{path}: cannot be read: {error}", 2) from error
    except script.ScriptError as error:
        raise _Refused(str(error), 2) from error
    found = script.select(conversations, prompt)
    if found is None:
        raise _Refused(f"{path}: no conversation matches the prompt {prompt[:200]!r}", 2)
    return found


def _repetition() -> int | None:
    text = os.environ.get("SCRIPTED_REPETITION", "")
    return int(text) if text.isdigit() else None


def _refuse_resume(session_id: str) -> None:
    """The CLI's answer to an unknown session: a short result line, and the same on standard error (measured)."""
    text = f"No conversation found with session ID: {session_id}"
    fields: Json = {"is_error": True, "num_turns": 0, "stop_reason": None, "total_cost_usd": 0}
    times = {"duration_ms": 0, "duration_api_ms": 0}
    ending = {"permission_denials": [], "errors": [text], "result_index": 0, "harness": NAME}
    event = {"type": "result", "subtype": "error_during_execution", **times, **fields, **ending}
    Stream(session_id, Signals()).event({**event, "session_id": session_id, "uuid": new_uuid()})
    raise _Refused(text)
