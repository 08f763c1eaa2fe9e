"""How attempts are judged: recorded runs of the real CLI, inputs of known faults, and single facts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from skilltrial.data.attempt import EndedBy
from skilltrial.data.outcomes import Outcome
from skilltrial.tasks.dispatch.facts import ProcessFacts
from skilltrial.tasks.dispatch.outcome import DETAIL_LIMIT, REASONS, Ending, Reason, classify
from skilltrial.tasks.ingest.records import Coverage, LastResult, StreamSummary
from skilltrial.tasks.ingest.stream import read_stream

FIXTURES = Path(__file__).parents[1] / "fixtures"
EXITED = ProcessFacts(ended_by=EndedBy.EXIT, exit_code=0)
UNKNOWN = ProcessFacts()
SESSION = "11111111-2222-4333-8444-555555555501"


class NoRows:
    def add(self, table: str, row: Mapping[str, Any]) -> None:
        pass


def _captured(name: str) -> Ending:
    """The ending on a recorded run, its process told as the supervisor would have told it."""
    folder = FIXTURES / "captures" / "claude"
    meta = json.loads((folder / f"{name}.meta.json").read_bytes())
    ended_by = EndedBy.DEADLINE if meta["killed_by_harness_timeout"] else EndedBy.EXIT
    facts = ProcessFacts(ended_by, meta["exit_code"], (folder / f"{name}.stderr").read_text())
    return classify(facts, read_stream(folder / f"{name}.jsonl", NoRows(), parser="claude-stream-json"))


@pytest.mark.parametrize(
    ("name", "outcome", "reason"),
    [
        ("l-err401-retry1", Outcome.AUTH, Reason.INVALID_CREDENTIALS),
        ("l-nokey", Outcome.AUTH, Reason.NOT_LOGGED_IN),
        ("l-err_credit", Outcome.BILLING, Reason.NO_CREDIT),
        ("l-err429-retry1", Outcome.RATE_LIMITED, Reason.RATE_LIMIT),
        ("l-err529", Outcome.OVERLOADED, Reason.OVERLOADED),
        ("l-err529-noretry", Outcome.OVERLOADED, Reason.OVERLOADED),
        ("l-err529-retry2", Outcome.OVERLOADED, Reason.OVERLOADED),
        ("l-err500-retry1", Outcome.NETWORK, Reason.SERVER_ERROR),
        ("l-refused", Outcome.NETWORK, Reason.CONNECTION_FAILED),
        ("l-refused-retry0", Outcome.NETWORK, Reason.CONNECTION_FAILED),
        ("l-disc-retry0-nofallback", Outcome.NETWORK, Reason.CONNECTION_FAILED),
        ("l-apitimeout", Outcome.NETWORK, Reason.API_TIMEOUT),
        ("l-err404", Outcome.MODEL_UNAVAILABLE, Reason.MODEL_NOT_FOUND),
        ("l-err400", Outcome.AGENT_ERROR, Reason.PROMPT_TOO_LONG),
        ("l-err400b", Outcome.AGENT_ERROR, Reason.INVALID_REQUEST),
        ("l-maxtok", Outcome.AGENT_ERROR, Reason.MAX_OUTPUT_TOKENS),
        ("l-refusal", Outcome.AGENT_ERROR, Reason.REFUSAL),
        ("l-err529_twice", Outcome.COMPLETED, Reason.NONE),
        ("l-disc", Outcome.COMPLETED, Reason.NONE),
        ("l-disc-retry0", Outcome.COMPLETED, Reason.NONE),
        ("l-sse_overloaded", Outcome.COMPLETED, Reason.NONE),
        ("l-slow-ok", Outcome.COMPLETED, Reason.NONE),
        # killed at the lab's deadline while the CLI was still retrying: the API's failure, not the agent's
        ("l-err401", Outcome.AUTH, Reason.INVALID_CREDENTIALS),
        ("l-err_midturn", Outcome.AUTH, Reason.INVALID_CREDENTIALS),
        ("k-maxturns", Outcome.MAX_TURNS, Reason.MAX_TURNS),
        ("k-budget-user", Outcome.BUDGET_EXCEEDED, Reason.BUDGET),
        ("b-bash-plan", Outcome.AGENT_ERROR, Reason.ABORTED),
        ("e-hook-continue-false", Outcome.STOPPED, Reason.HOOK_STOPPED),
        ("e-hook-defer", Outcome.STOPPED, Reason.TOOL_DEFERRED),
        ("c-bypass-root", Outcome.CLI_MISSING, Reason.REFUSED_AS_ROOT),
        ("a-cd-flag", Outcome.CLI_CRASH, Reason.BAD_ARGUMENTS),
        ("a-noverbose", Outcome.CLI_CRASH, Reason.BAD_ARGUMENTS),
        ("c-badmode", Outcome.CLI_CRASH, Reason.BAD_ARGUMENTS),
        ("j-session-id-reuse", Outcome.CLI_CRASH, Reason.BAD_ARGUMENTS),
        ("j-resume-unknown", Outcome.CLI_CRASH, Reason.SESSION_NOT_FOUND),
        ("m-HUP-slow", Outcome.CLI_CRASH, Reason.KILLED_BY_SIGNAL),
        ("m-TERM-slow", Outcome.CLI_CRASH, Reason.KILLED_BY_SIGNAL),
        ("m-TERM-slowbash", Outcome.CLI_CRASH, Reason.KILLED_BY_SIGNAL),
        ("m-KILL-slowbash", Outcome.CLI_CRASH, Reason.KILLED_BY_SIGNAL),
        ("m-INT-slow", Outcome.CLI_CRASH, Reason.NO_RESULT),  # exit code 0, and nothing to show for it
        ("m-INT-slowbash", Outcome.CANCELLED, Reason.INTERRUPTED),
        ("m-INT-slowstream", Outcome.CANCELLED, Reason.INTERRUPTED),
    ],
)
def test_recorded_run_of_the_real_cli(name: str, outcome: Outcome, reason: Reason) -> None:
    ending = _captured(name)

    assert (ending.outcome, ending.reason) == (outcome, reason)


PARSERS = {
    "claude": "claude-stream-json",
    "codex": "codex-items",
    "opencode": "opencode-events",
    "cline": "cline-json",
}


def _known_fault(name: str) -> Ending:
    folder = FIXTURES / "bug_inputs" / name
    meta = json.loads((folder / "meta.json").read_bytes())
    ended_by = None
    if meta.get("timeout"):
        ended_by = EndedBy.DEADLINE
    elif meta.get("silent_seconds") or (meta.get("killed_by_us") and meta["exit_code"] == -9):
        ended_by = EndedBy.SILENCE
    elif meta.get("seconds_between_result_and_kill"):
        ended_by = EndedBy.LINGERING
    elif not meta.get("killed_by_us"):
        ended_by = EndedBy.EXIT
    facts = ProcessFacts(ended_by, meta["exit_code"], meta["stderr"])
    return classify(facts, read_stream(folder / "input.jsonl", NoRows(), parser=PARSERS[meta["harness"]]))


@pytest.mark.parametrize(
    ("name", "outcome", "reason", "notes"),
    [
        ("B01", Outcome.TIMED_OUT, Reason.DEADLINE, []),
        ("B02", Outcome.COMPLETED, Reason.NONE, ["process_hung_after_result"]),
        ("B03", Outcome.HUNG, Reason.STALLED, []),
        ("B06", Outcome.AUTH, Reason.PERMISSION_DENIED, []),
        ("B07", Outcome.COMPLETED, Reason.NONE, ["exit_code_mismatch"]),
        ("B08", Outcome.COMPLETED, Reason.NONE, ["task_may_be_blocked"]),
        ("B11", Outcome.HUNG, Reason.STALLED, []),  # of its process, nothing is known
        ("B17", Outcome.COMPLETED, Reason.NONE, ["task_may_be_unfinished"]),
        ("B39", Outcome.CLI_CRASH, Reason.SESSION_NOT_FOUND, []),
        ("B43", Outcome.OVERLOADED, Reason.TURN_FAILED, []),
        ("B44", Outcome.COMPLETED, Reason.NONE, ["nonfatal_error_item", "exit_code_mismatch"]),
        ("B46", Outcome.HUNG, Reason.STALLED, []),
        ("B48", Outcome.AGENT_ERROR, Reason.ABORTED, ["task_may_be_blocked"]),
        ("B51", Outcome.CLI_CRASH, Reason.NO_EVENTS, []),
        ("B52", Outcome.CLI_CRASH, Reason.NO_RESULT, []),
        ("B53", Outcome.AGENT_ERROR, Reason.ABORTED, []),
        ("B54", Outcome.EVALUATOR_ERROR, Reason.NESTED_SESSION, []),
        ("B56", Outcome.COMPLETED, Reason.NONE, ["empty_final_text"]),
        ("B60", Outcome.CLI_CRASH, Reason.TRUNCATED_LAST_LINE, []),
    ],
)
def test_known_fault_gets_its_right_outcome(name: str, outcome: Outcome, reason: Reason, notes: list[str]) -> None:
    ending = _known_fault(name)

    assert (ending.outcome, ending.reason) == (outcome, reason)
    assert set(notes) <= set(ending.notes)


def _summary(**fields: Any) -> StreamSummary:
    summary = StreamSummary("claude-code", "claude-stream-json", 1, coverage=Coverage(lines=3, parsed=3))
    for name, value in fields.items():
        setattr(summary, name, value)
    return summary


def _ended(last_record: str = "result/success", **result: Any) -> StreamSummary:
    told = {"subtype": "success", "is_error": False, "terminal_reason": "completed", "text": "Done.", **result}
    return _summary(results=1, finished=True, last_record=last_record, last_result=LastResult(**told))


def test_every_reason_has_an_outcome_and_a_meaning() -> None:
    assert set(REASONS) == set(Reason)
    assert all(meaning for _, meaning in REASONS.values())
    assert {outcome for outcome, _ in REASONS.values()} == set(Outcome)


def test_a_bare_good_stream_is_completed() -> None:
    assert classify(UNKNOWN, _ended()) == Ending(Outcome.COMPLETED, Reason.NONE, "", ())


def test_a_bare_stream_without_result_is_not_completed() -> None:
    assert classify(UNKNOWN, _summary()).reason is Reason.NO_RESULT


def test_a_bare_stream_that_breaks_off_after_a_tool_result_has_stalled() -> None:
    summary = _summary(last_record="user/tool_result")

    assert classify(UNKNOWN, summary).reason is Reason.STALLED
    assert classify(EXITED, summary).reason is Reason.NO_RESULT


@pytest.mark.parametrize("code", [0, 1, None])
def test_no_exit_code_makes_up_for_a_missing_result(code: int | None) -> None:
    ending = classify(ProcessFacts(EndedBy.EXIT, code), _summary(last_record="assistant/text"))

    assert (ending.outcome, ending.reason) == (Outcome.CLI_CRASH, Reason.NO_RESULT)


@pytest.mark.parametrize("ended_by", [EndedBy.DEADLINE, EndedBy.SILENCE, EndedBy.CANCELLED, EndedBy.LINGERING])
def test_what_ends_the_process_after_a_good_result_changes_nothing(ended_by: EndedBy) -> None:
    ending = classify(ProcessFacts(ended_by, -15), _ended())

    assert ending == Ending(Outcome.COMPLETED, Reason.NONE, "", ("process_hung_after_result",))


def test_a_turn_that_began_after_a_result_was_cut_off_by_the_deadline() -> None:
    ending = classify(ProcessFacts(EndedBy.DEADLINE, -9), _ended(last_record="assistant/tool_use"))

    assert (ending.outcome, ending.reason) == (Outcome.TIMED_OUT, Reason.DEADLINE)


@pytest.mark.parametrize(
    ("ended_by", "outcome"),
    [
        (EndedBy.DEADLINE, Outcome.TIMED_OUT),
        (EndedBy.SILENCE, Outcome.HUNG),
        (EndedBy.CANCELLED, Outcome.CANCELLED),
    ],
)
def test_an_abort_that_answers_our_interrupt_is_not_the_agents(ended_by: EndedBy, outcome: Outcome) -> None:
    summary = _ended(subtype="error_during_execution", is_error=True, terminal_reason="aborted_tools")

    assert classify(ProcessFacts(ended_by, 0), summary).outcome is outcome


def test_an_api_error_that_was_told_before_the_deadline_counts_as_such() -> None:
    summary = _ended(is_error=True, terminal_reason="api_error", api_error_status=529, text="Overloaded")

    assert classify(ProcessFacts(EndedBy.DEADLINE, -9), summary).outcome is Outcome.OVERLOADED


def test_a_deadline_that_strikes_while_the_api_is_unreachable_is_no_time_out() -> None:
    summary = _summary(last_record="system/api_retry", api_errors=["unknown"])

    ending = classify(ProcessFacts(EndedBy.DEADLINE, -9), summary)

    assert (ending.outcome, ending.reason) == (Outcome.NETWORK, Reason.CONNECTION_FAILED)


def test_a_rejected_rate_limit_without_result_is_a_rate_limit() -> None:
    assert classify(EXITED, _summary(rate_limit_rejected=True)).reason is Reason.RATE_LIMIT


def test_a_rejected_rate_limit_before_a_good_result_is_no_failure() -> None:
    summary = _ended()
    summary.rate_limit_rejected = True

    assert classify(EXITED, summary).outcome is Outcome.COMPLETED


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (401, Reason.INVALID_CREDENTIALS),
        (402, Reason.NO_CREDIT),
        (403, Reason.PERMISSION_DENIED),
        (404, Reason.MODEL_NOT_FOUND),
        (408, Reason.API_TIMEOUT),
        (413, Reason.PROMPT_TOO_LONG),
        (422, Reason.INVALID_REQUEST),
        (429, Reason.RATE_LIMIT),
        (500, Reason.SERVER_ERROR),
        (502, Reason.SERVER_ERROR),
        (503, Reason.OVERLOADED),
        (529, Reason.OVERLOADED),
    ],
)
def test_the_status_of_an_api_error_decides(status: int, reason: Reason) -> None:
    summary = _ended(is_error=True, terminal_reason="api_error", api_error_status=status, text="API Error")

    assert classify(EXITED, summary).reason is reason


def test_an_api_error_that_tells_nothing_is_infrastructure() -> None:
    ending = classify(EXITED, _ended(is_error=True, terminal_reason=None, text="API Error: something"))

    assert (ending.outcome, ending.reason) == (Outcome.NETWORK, Reason.API_ERROR)


def test_an_error_subtype_is_believed_without_is_error() -> None:
    ending = classify(EXITED, _ended(subtype="error_of_a_new_kind", is_error=None, terminal_reason=None))

    assert (ending.outcome, ending.reason) == (Outcome.AGENT_ERROR, Reason.ERROR_DURING_EXECUTION)


def test_a_good_stream_of_a_foreign_session_is_not_believed() -> None:
    summary = _ended()
    summary.init_session_ids = [SESSION.replace("1", "9")]

    assert classify(EXITED, summary, SESSION).reason is Reason.FOREIGN_SESSION
    assert classify(EXITED, summary).outcome is Outcome.COMPLETED


def test_a_failure_of_infrastructure_stays_what_it_is_in_a_foreign_session() -> None:
    summary = _summary(init_session_ids=["another"], last_record="assistant/text")

    assert classify(ProcessFacts(EndedBy.SILENCE, -9), summary, SESSION).reason is Reason.STALLED


def test_a_session_that_never_told_its_id_is_not_foreign() -> None:
    assert classify(EXITED, _ended(), SESSION).outcome is Outcome.COMPLETED


def test_words_of_stderr_are_not_read_once_a_turn_has_begun() -> None:
    facts = ProcessFacts(EndedBy.EXIT, 1, "a tool said: not logged in")

    assert classify(facts, _summary(last_record="assistant/text")).reason is Reason.NO_RESULT


def test_a_process_that_could_not_start_tells_why() -> None:
    facts = ProcessFacts(EndedBy.NOT_STARTED, None, "", "No such file: claude")

    assert classify(facts, _summary(coverage=Coverage())) == Ending(
        Outcome.CLI_MISSING, Reason.NOT_STARTED, "No such file: claude", ()
    )


def test_details_are_bounded_and_keep_the_end_of_stderr() -> None:
    facts = ProcessFacts(EndedBy.EXIT, 1, "x" * 10_000 + " the cause")

    ending = classify(facts, _summary(coverage=Coverage()))

    assert len(ending.detail) == DETAIL_LIMIT
    assert ending.detail.endswith("the cause")


def test_a_killed_cli_names_the_signal() -> None:
    ending = classify(ProcessFacts(EndedBy.EXIT, -9), _summary())

    assert (ending.reason, ending.detail) == (Reason.KILLED_BY_SIGNAL, "ended by SIGKILL")


@pytest.mark.parametrize("facts", [UNKNOWN, EXITED])
def test_a_turn_that_began_after_a_result_and_has_none_is_not_completed(facts: ProcessFacts) -> None:
    summary = _ended(last_record="system/init", subtype="success", is_error=False, terminal_reason="completed")
    summary.reopened = True
    found = classify(facts, summary)
    assert (found.outcome, found.reason) == (Outcome.CLI_CRASH, Reason.NO_RESULT)
    assert found.detail.startswith("another turn began after the last result")


@pytest.mark.parametrize(
    ("terminal", "outcome"),
    [
        ("aborted_tools", Outcome.AGENT_ERROR),
        ("prompt_too_long", Outcome.AGENT_ERROR),
        ("api_error", Outcome.NETWORK),
        ("completed", Outcome.COMPLETED),
        ("hook_stopped", Outcome.STOPPED),
    ],
)
def test_a_bad_terminal_reason_is_believed_although_nothing_else_tells_of_an_error(
    terminal: str, outcome: Outcome
) -> None:
    assert classify(UNKNOWN, _ended(subtype="success", is_error=False, terminal_reason=terminal)).outcome is outcome


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        ("Quota exceeded. Check your plan and billing details.", Outcome.BILLING),
        ("Missing environment variable: `API_KEY`.", Outcome.AUTH),
        ("Cannot connect to API: Was there a typo in the url or port? (FailedToOpenSocket)", Outcome.NETWORK),
        ("Response stream ended without a finish reason.", Outcome.NETWORK),
        ("request timed out", Outcome.NETWORK),
        ("plugin-sandbox call timed out after 3000ms: invokeHook", Outcome.AGENT_ERROR),
        ("lab guard threw", Outcome.AGENT_ERROR),
    ],
)
def test_the_words_of_a_failed_turn_decide_whether_it_counts(words: str, outcome: Outcome) -> None:
    summary = _summary(finished=True, failed="turn_failed", error_texts=[words])
    found = classify(EXITED, summary)
    assert (found.outcome, found.reason) == (outcome, Reason.TURN_FAILED)
