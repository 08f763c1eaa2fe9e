"""How an attempt ended, judged from its process and its stream: one closed set of reasons.

The stream decides. A result record is read by `is_error` and `terminal_reason`, since its subtype says
"success" for API errors too; the exit code only adds a note, since it is 0 after an interrupt and 1 after
a good result (claude 2.1.332, measured). Without a result nothing is ever completed, whatever the exit code.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from skilltrial.data.attempt import EndedBy
from skilltrial.data.outcomes import Counting, Outcome, policy
from skilltrial.tasks.dispatch.facts import ProcessFacts
from skilltrial.tasks.dispatch.reasons import REASONS, Note, Reason
from skilltrial.tasks.ingest.records import LastResult, StreamSummary

__all__ = ["DETAIL_LIMIT", "REASONS", "Ending", "Note", "Reason", "classify"]

DETAIL_LIMIT: Final = 500
"""Characters of `Ending.detail`."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How an attempt ended. `detail` is in the CLI's own words, shortened; `notes` never decide anything."""

    outcome: Outcome
    reason: Reason
    detail: str
    notes: tuple[str, ...]


_OURS: Final = frozenset({EndedBy.DEADLINE, EndedBy.SILENCE, EndedBy.CANCELLED, EndedBy.LINGERING})

_BAD_ENDS: Final = ("aborted_", "api_error", "prompt_too_long", "model_error", "image_error", "blocking_limit")
"""Beginnings of terminal reasons that are no good end, whatever `is_error` and the subtype say."""

_BY_STATUS: Final[Mapping[int, Reason]] = MappingProxyType(
    {
        401: Reason.INVALID_CREDENTIALS,
        402: Reason.NO_CREDIT,
        403: Reason.PERMISSION_DENIED,
        404: Reason.MODEL_NOT_FOUND,
        408: Reason.API_TIMEOUT,
        413: Reason.PROMPT_TOO_LONG,
        429: Reason.RATE_LIMIT,
        503: Reason.OVERLOADED,
        529: Reason.OVERLOADED,
    }
)

_BY_KIND: Final[Mapping[str, Reason]] = MappingProxyType(
    {
        "authentication_failed": Reason.INVALID_CREDENTIALS,
        "authentication_error": Reason.INVALID_CREDENTIALS,
        "oauth_org_not_allowed": Reason.PERMISSION_DENIED,
        "permission_error": Reason.PERMISSION_DENIED,
        "billing_error": Reason.NO_CREDIT,
        "rate_limit": Reason.RATE_LIMIT,
        "rate_limit_error": Reason.RATE_LIMIT,
        "overloaded": Reason.OVERLOADED,
        "overloaded_error": Reason.OVERLOADED,
        "model_not_found": Reason.MODEL_NOT_FOUND,
        "max_output_tokens": Reason.MAX_OUTPUT_TOKENS,
        "prompt_too_long": Reason.PROMPT_TOO_LONG,
        "connection_failed": Reason.CONNECTION_FAILED,
        "server_error": Reason.SERVER_ERROR,
        "invalid_request": Reason.INVALID_REQUEST,
        "refusal": Reason.REFUSAL,
    }
)
"""Kinds of API errors, as assistant records, retries and bodies name them (claude 2.1.332, measured)."""

_BY_TEXT: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), reason)
    for pattern, reason in (
        (
            r"credit balance|insufficient (credit|quota|funds)|exceeded your current quota|quota exceeded",
            Reason.NO_CREDIT,
        ),
        (r"not logged in|please run /login", Reason.NOT_LOGGED_IN),
        (
            r"invalid (x-)?api[ -]key|incorrect api key|\b401\b.*unauthorized|authentication_error",
            Reason.INVALID_CREDENTIALS,
        ),
        (r"^Missing environment variable: ", Reason.INVALID_CREDENTIALS),
        (r"safeguards? flagged|usage policy|aup\)", Reason.REFUSAL),
        (r"output token maximum", Reason.MAX_OUTPUT_TOKENS),
        (r"prompt is too long|context (window|length) (is )?exceed", Reason.PROMPT_TOO_LONG),
        (r"issue with the selected model|model .{0,80}(not found|does not exist)", Reason.MODEL_NOT_FOUND),
        (r"\b529\b|overloaded|at capacity|high demand", Reason.OVERLOADED),
        (r"\b429\b|rate.?limit|usage limit|hit your .{0,30}limit|too many requests", Reason.RATE_LIMIT),
        # a plugin of the user's that overran its time is no fault of the API's (cline 3.0.65, measured)
        (r"(?<!plugin-sandbox call )timed out|timeout", Reason.API_TIMEOUT),
        (r"ECONN\w+|ENOTFOUND|EAI_AGAIN|fetch failed|stream disconnected", Reason.CONNECTION_FAILED),
        (r"(unable to|cannot) connect|stream ended without a finish", Reason.CONNECTION_FAILED),
        (r"connection (to the api )?(was )?(lost|refused|reset|error|failed)", Reason.CONNECTION_FAILED),
        (r"internal server error|\b50[024]\b", Reason.SERVER_ERROR),
    )
)
"""The words of a failure, for streams that give neither status nor kind."""

_BY_STDERR: Final = tuple(
    (re.compile(pattern, re.IGNORECASE | re.MULTILINE), reason)
    for pattern, reason in (
        (r"cannot be launched inside another", Reason.NESTED_SESSION),
        (r"cannot be used with root/sudo", Reason.REFUSED_AS_ROOT),
        (r"not logged in|please run /login", Reason.NOT_LOGGED_IN),
        (r"^No conversation found with session ID|--resume requires a valid session", Reason.SESSION_NOT_FOUND),
        (
            r"^error: (unknown option|option '|missing required|unexpected argument|too many)|^usage: ",
            Reason.BAD_ARGUMENTS,
        ),
        (r"^Error: (When using|Invalid session ID|Input must be|Session ID .* already in use)", Reason.BAD_ARGUMENTS),
    )
)
"""What a CLI that never began a turn says on stderr (claude 2.1.332, measured)."""


def classify(facts: ProcessFacts, summary: StreamSummary, expected_session: str | None = None) -> Ending:
    """How an attempt ended.

    `facts` may be all null, as for a stream of unknown origin on disk. `expected_session` is the session
    id that was handed to the CLI: an outcome that would count is not believed if the stream's own session
    is another one.
    """
    reason, detail = _judge(facts, summary)
    outcome = REASONS[reason][0]
    if reason is Reason.TURN_FAILED:
        told = _of_text(detail)
        outcome = REASONS[told][0] if told is not None else outcome
    if policy(outcome).counting is Counting.SCORED and expected_session is not None:
        foreign = [session for session in summary.init_session_ids if session != expected_session]
        if foreign:
            reason, outcome = Reason.FOREIGN_SESSION, Outcome.EVALUATOR_ERROR
            detail = f"expected session {expected_session}, the stream is of {foreign[0]}"
    return Ending(outcome, reason, _shorten(detail), _notes(facts, summary, outcome, reason))


def _judge(facts: ProcessFacts, summary: StreamSummary) -> tuple[Reason, str]:
    if facts.ended_by is EndedBy.NOT_STARTED:
        return Reason.NOT_STARTED, facts.error or ""
    if _turn_ended(facts, summary):
        return _judge_end(facts, summary)
    if facts.ended_by in _OURS:
        return _judge_ended_by_us(facts, summary)
    return _judge_no_result(facts, summary)


def _turn_ended(facts: ProcessFacts, summary: StreamSummary) -> bool:
    """Whether the stream's last word on the turn can be taken as its end, and not as an echo of our signals."""
    result = summary.last_result
    if result is None and not summary.finished and summary.failed is None:
        return False
    if summary.reopened:
        return False  # finished background work started another turn after a result: that one never ended
    ended_from_outside = facts.ended_by in _OURS or _signal(facts) is not None
    if not ended_from_outside:
        return True
    aborted = (result is not None and (result.terminal_reason or "").startswith("aborted_")) or (
        summary.failed == Reason.ABORTED
    )
    later_turn = result is not None and (summary.last_record or "").startswith(("assistant/", "user/"))
    return not aborted and not later_turn


def _judge_end(facts: ProcessFacts, summary: StreamSummary) -> tuple[Reason, str]:
    result = summary.last_result
    if result is not None:
        return _judge_result(facts, summary, result)
    if summary.failed is None:
        return Reason.NONE, ""
    kind = _BY_KIND.get(summary.api_errors[-1]) if summary.api_errors else None
    reason = {"aborted": Reason.ABORTED, "length": Reason.MAX_OUTPUT_TOKENS}.get(summary.failed, kind)
    return reason or Reason.TURN_FAILED, "; ".join(summary.error_texts[-3:]) or summary.failed


def _judge_result(facts: ProcessFacts, summary: StreamSummary, result: LastResult) -> tuple[Reason, str]:
    words = "; ".join(result.errors) or result.text or ""
    terminal, subtype = result.terminal_reason or "", result.subtype or ""
    for reason, marks in (
        (Reason.MAX_TURNS, {"error_max_turns", "max_turns"}),
        (Reason.BUDGET, {"error_max_budget_usd", "budget_exhausted"}),
    ):
        if {terminal, subtype} & marks:
            return reason, words
    failed = result.is_error if result.is_error is not None else subtype.startswith("error")
    if not failed and not subtype.startswith("error") and not terminal.startswith(_BAD_ENDS):
        stops = {"hook_stopped": Reason.HOOK_STOPPED, "tool_deferred": Reason.TOOL_DEFERRED}
        return stops.get(terminal, Reason.NONE), ""
    if any("No conversation found with session" in text or "--resume requires" in text for text in result.errors):
        return Reason.SESSION_NOT_FOUND, words
    if terminal.startswith("aborted_"):
        # an interrupt is the one way to abort that ends with exit code 0
        return (Reason.INTERRUPTED if facts.exit_code == 0 else Reason.ABORTED), words
    if terminal == "prompt_too_long":
        return Reason.PROMPT_TOO_LONG, words
    if subtype.startswith("error") and result.api_error_status is None:
        return _of_text(words) or Reason.ERROR_DURING_EXECUTION, words
    return _api_reason(summary, result), words


def _api_reason(summary: StreamSummary, result: LastResult) -> Reason:
    """The reason of a failed result: words that name one fault, then the status, then the kind.

    Words come first because a status is shared by different faults: "no credit" is a 400, like a prompt
    that is too long (claude 2.1.332, measured).
    """
    told = _of_text(result.text or "; ".join(result.errors))
    kind = _BY_KIND.get(summary.api_errors[-1]) if summary.api_errors else None
    status = result.api_error_status
    if status is not None and status != 400:
        by_status = _BY_STATUS.get(status, Reason.SERVER_ERROR if status >= 500 else Reason.INVALID_REQUEST)
        return Reason.NO_CREDIT if Reason.NO_CREDIT in (told, kind) else by_status
    if summary.rate_limit_rejected and told is None:
        return Reason.RATE_LIMIT
    if told is not None:
        return told
    if status == 400:
        return kind if kind not in (None, Reason.SERVER_ERROR) else Reason.INVALID_REQUEST
    return kind or Reason.API_ERROR


def _judge_ended_by_us(facts: ProcessFacts, summary: StreamSummary) -> tuple[Reason, str]:
    if facts.ended_by is EndedBy.CANCELLED:
        return Reason.CANCELLED, ""
    if summary.rate_limit_rejected:
        return Reason.RATE_LIMIT, "; ".join(summary.error_texts[-1:])
    if (summary.last_record or "").endswith("/api_retry"):
        # time that was spent waiting for the API is not the agent's failure
        kinds = [_BY_KIND[kind] for kind in summary.api_errors if kind in _BY_KIND]
        return (kinds[-1] if kinds else Reason.CONNECTION_FAILED), "ended while the CLI was retrying a request"
    last = f"last record: {summary.last_record}" if summary.last_record else "no record at all"
    return (Reason.DEADLINE if facts.ended_by is EndedBy.DEADLINE else Reason.STALLED), last


def _judge_no_result(facts: ProcessFacts, summary: StreamSummary) -> tuple[Reason, str]:
    stderr = _tail(facts.stderr)
    if summary.rate_limit_rejected:
        return Reason.RATE_LIMIT, stderr
    if summary.coverage.parsed == 0:
        for pattern, reason in _BY_STDERR:
            if pattern.search(facts.stderr):
                return reason, stderr
    if summary.coverage.truncated:
        return Reason.TRUNCATED_LAST_LINE, stderr
    number = _signal(facts)
    if number is not None:
        return Reason.KILLED_BY_SIGNAL, f"ended by {_signal_name(number)}" + (f"; {stderr}" if stderr else "")
    if summary.coverage.parsed == 0:
        return Reason.NO_EVENTS, stderr
    if facts == ProcessFacts() and (summary.last_record or "").endswith("/tool_result"):
        # a model that has its answer goes on, ends the turn or fails: of a process that nobody knows, silence is left
        return Reason.STALLED, f"last record: {summary.last_record}"
    begun = "another turn began after the last result" if summary.reopened else ""
    code = "" if facts.exit_code is None else f"exit code {facts.exit_code}"
    return Reason.NO_RESULT, "; ".join(text for text in (begun, code, stderr) if text)


def _notes(facts: ProcessFacts, summary: StreamSummary, outcome: Outcome, reason: Reason) -> tuple[str, ...]:
    by_us = facts.ended_by in _OURS or facts.ended_by is EndedBy.NOT_STARTED
    completed = outcome is Outcome.COMPLETED
    found = {
        Note.PROCESS_HUNG_AFTER_RESULT: completed and by_us,
        Note.EXIT_CODE_MISMATCH: completed and not by_us and facts.exit_code not in (0, None),
        Note.EMPTY_FINAL_TEXT: completed and summary.final_text == "",
        Note.TASK_MAY_BE_BLOCKED: bool(summary.denials),
        Note.TASK_MAY_BE_UNFINISHED: bool(summary.unfinished_tasks),
        Note.GUARD_BREACH: bool(summary.guard_breaches),
        Note.TRUNCATED_LAST_LINE: bool(summary.coverage.truncated) and reason is not Reason.TRUNCATED_LAST_LINE,
    }
    ours = [note.value for note, holds in found.items() if holds]
    return tuple(dict.fromkeys([*summary.notes, *ours]))


def _of_text(text: str) -> Reason | None:
    return next((reason for pattern, reason in _BY_TEXT if pattern.search(text)), None)


def _signal(facts: ProcessFacts) -> int | None:
    """The signal that ended the process; a CLI that catches one exits with 128 + its number."""
    code = facts.exit_code
    if code is None:
        return None
    if code < 0:
        return -code
    number = code - 128
    return number if number in (signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM) else None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _tail(stderr: str) -> str:
    """The last words of stderr: that is where a CLI says why it gave up."""
    text = stderr.strip()
    return text if len(text) <= DETAIL_LIMIT else "…" + text[1 - DETAIL_LIMIT :]


def _shorten(text: str) -> str:
    return text if len(text) <= DETAIL_LIMIT else text[: DETAIL_LIMIT - 1] + "…"
