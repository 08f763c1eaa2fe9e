"""The closed set of reasons for which an attempt ends, with the outcome that follows from each."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from skilltrial.data.outcomes import Outcome


class Reason(StrEnum):
    """Why an attempt ended as it did. Closed: records and tables never hold another word."""

    NONE = ""
    HOOK_STOPPED = "hook_stopped"
    TOOL_DEFERRED = "tool_deferred"
    DEADLINE = "deadline"
    STALLED = "stalled"
    MAX_TURNS = "max_turns"
    BUDGET = "budget"
    REFUSAL = "refusal"
    MAX_OUTPUT_TOKENS = "max_output_tokens"
    PROMPT_TOO_LONG = "prompt_too_long"
    INVALID_REQUEST = "invalid_request"
    ERROR_DURING_EXECUTION = "error_during_execution"
    ABORTED = "aborted"
    TURN_FAILED = "turn_failed"
    INVALID_CREDENTIALS = "invalid_credentials"
    NOT_LOGGED_IN = "not_logged_in"
    PERMISSION_DENIED = "permission_denied"
    NO_CREDIT = "no_credit"
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    CONNECTION_FAILED = "connection_failed"
    API_TIMEOUT = "api_timeout"
    SERVER_ERROR = "server_error"
    API_ERROR = "api_error"
    MODEL_NOT_FOUND = "model_not_found"
    NOT_STARTED = "not_started"
    REFUSED_AS_ROOT = "refused_as_root"
    BAD_ARGUMENTS = "bad_arguments"
    SESSION_NOT_FOUND = "session_not_found"
    NO_EVENTS = "no_events"
    NO_RESULT = "no_result"
    TRUNCATED_LAST_LINE = "truncated_last_line"
    KILLED_BY_SIGNAL = "killed_by_signal"
    INTERRUPTED = "interrupted"
    CANCELLED = "cancelled"
    NESTED_SESSION = "nested_session"
    FOREIGN_SESSION = "foreign_session"
    EXCEPTION = "exception"


class Note(StrEnum):
    """What is worth knowing of an ending, and never decides it. The parsers add words of their own."""

    EXIT_CODE_MISMATCH = "exit_code_mismatch"  # a good result, and an exit code that is not 0
    PROCESS_HUNG_AFTER_RESULT = "process_hung_after_result"  # we had to end the process although it was done
    TASK_MAY_BE_BLOCKED = "task_may_be_blocked"  # the agent was denied something
    TASK_MAY_BE_UNFINISHED = "task_may_be_unfinished"  # background work was still going on
    EMPTY_FINAL_TEXT = "empty_final_text"
    TRUNCATED_LAST_LINE = "truncated_last_line"
    GUARD_BREACH = "guard_breach"  # a denied call ran all the same
    LEFTOVER_PROCESSES = "leftover_processes"  # processes outlived the CLI and were ended
    PROJECT_DESTROYED = "project_destroyed"  # the agent removed its project folder; an empty one stands for it


REASONS: Final[Mapping[Reason, tuple[Outcome, str]]] = MappingProxyType(
    {
        Reason.NONE: (Outcome.COMPLETED, "the turn ended well"),
        Reason.HOOK_STOPPED: (Outcome.STOPPED, "a hook ended the turn"),
        Reason.TOOL_DEFERRED: (Outcome.STOPPED, "a hook put a tool call off, which ends the process"),
        Reason.DEADLINE: (Outcome.TIMED_OUT, "the time of the attempt was over"),
        Reason.STALLED: (Outcome.HUNG, "nothing came for longer than the silence limit"),
        Reason.MAX_TURNS: (Outcome.MAX_TURNS, "the turns of the attempt were used up"),
        Reason.BUDGET: (Outcome.BUDGET_EXCEEDED, "the money of the attempt was used up"),
        Reason.REFUSAL: (Outcome.AGENT_ERROR, "the model refused the task"),
        Reason.MAX_OUTPUT_TOKENS: (Outcome.AGENT_ERROR, "an answer outgrew the model's output limit"),
        Reason.PROMPT_TOO_LONG: (Outcome.AGENT_ERROR, "the conversation outgrew the model's context"),
        # the same conversation fails again: what the agent put into it is at fault, not the service
        Reason.INVALID_REQUEST: (Outcome.AGENT_ERROR, "the API refused the content of a request"),
        Reason.ERROR_DURING_EXECUTION: (Outcome.AGENT_ERROR, "the CLI gave the turn up"),
        Reason.ABORTED: (Outcome.AGENT_ERROR, "the CLI broke the turn off by itself"),
        # the outcome is taken from the words of the failure where they tell one
        Reason.TURN_FAILED: (Outcome.AGENT_ERROR, "the stream says that the turn failed"),
        Reason.INVALID_CREDENTIALS: (Outcome.AUTH, "the API does not accept the key or token"),
        Reason.NOT_LOGGED_IN: (Outcome.AUTH, "the CLI has no credentials"),
        Reason.PERMISSION_DENIED: (Outcome.AUTH, "the account may not use the API or the model"),
        Reason.NO_CREDIT: (Outcome.BILLING, "the account has no credit"),
        Reason.RATE_LIMIT: (Outcome.RATE_LIMITED, "too many requests or tokens, or a usage limit is reached"),
        Reason.OVERLOADED: (Outcome.OVERLOADED, "the API says that it is overloaded or not available (529, 503)"),
        Reason.CONNECTION_FAILED: (Outcome.NETWORK, "no connection, or one that broke off"),
        Reason.API_TIMEOUT: (Outcome.NETWORK, "the API did not answer in time"),
        # one failing request says nothing of the other cells: no pause of the campaign, unlike an overload
        Reason.SERVER_ERROR: (Outcome.NETWORK, "the API failed inside (other 5xx)"),
        Reason.API_ERROR: (Outcome.NETWORK, "an API error that tells nothing more"),
        Reason.MODEL_NOT_FOUND: (Outcome.MODEL_UNAVAILABLE, "the API does not know the model"),
        Reason.NOT_STARTED: (Outcome.CLI_MISSING, "the executable could not be started"),
        # every cell would fail alike, which only this outcome says
        Reason.REFUSED_AS_ROOT: (Outcome.CLI_MISSING, "the CLI refuses the permission mode as root"),
        Reason.BAD_ARGUMENTS: (Outcome.CLI_CRASH, "the CLI refuses its arguments"),
        # a new attempt starts a new session, so trying again makes sense
        Reason.SESSION_NOT_FOUND: (Outcome.CLI_CRASH, "the session to resume does not exist"),
        Reason.NO_EVENTS: (Outcome.CLI_CRASH, "the CLI ended without a single event"),
        Reason.NO_RESULT: (Outcome.CLI_CRASH, "the CLI ended without a result"),
        Reason.TRUNCATED_LAST_LINE: (Outcome.CLI_CRASH, "the stream breaks off inside a line, without a result"),
        Reason.KILLED_BY_SIGNAL: (Outcome.CLI_CRASH, "a signal that is not ours ended the CLI, without a result"),
        Reason.INTERRUPTED: (Outcome.CANCELLED, "somebody else interrupted the CLI"),
        Reason.CANCELLED: (Outcome.CANCELLED, "the run was cancelled"),
        Reason.NESTED_SESSION: (Outcome.EVALUATOR_ERROR, "the CLI believes to run inside another session"),
        Reason.FOREIGN_SESSION: (Outcome.EVALUATOR_ERROR, "the stream belongs to another session than ours"),
        Reason.EXCEPTION: (Outcome.EVALUATOR_ERROR, "skilltrial's own code failed; the attempt's error.txt tells"),
    }
)
"""What each reason means, and the outcome that follows from it."""
