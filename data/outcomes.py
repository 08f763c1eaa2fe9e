"""How an attempt can end, and what follows from each end: one closed, frozen table.

Whoever needs to know whether to retry, pause, grade or count asks the policy; nothing else in the
code compares outcomes to decide such a thing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Outcome(StrEnum):
    """How an attempt ended. Closed: a table never holds another word."""

    COMPLETED = "completed"
    STOPPED = "stopped"
    TIMED_OUT = "timed_out"
    HUNG = "hung"
    MAX_TURNS = "max_turns"
    BUDGET_EXCEEDED = "budget_exceeded"
    AGENT_ERROR = "agent_error"
    AUTH = "auth"
    BILLING = "billing"
    RATE_LIMITED = "rate_limited"
    OVERLOADED = "overloaded"
    NETWORK = "network"
    MODEL_UNAVAILABLE = "model_unavailable"
    CLI_MISSING = "cli_missing"
    CLI_CRASH = "cli_crash"
    CANCELLED = "cancelled"
    EVALUATOR_ERROR = "evaluator_error"


class Retry(StrEnum):
    """Who tries an unsettled cell again."""

    NEVER = "never"  # settled: the outcome is data
    NOW = "now"  # this run, after the back-off; later runs too
    NEXT_RUN = "next_run"  # only when somebody runs the campaign again


class Pause(StrEnum):
    """What an outcome means for the cells that have not started."""

    NO = "no"
    WAIT = "wait"  # the whole campaign waits for the back-off: all cells share the limit
    STOP = "stop"  # no further cell can succeed: dispatch ends


class Counting(StrEnum):
    """How aggregation counts a cell whose newest attempt ended this way."""

    SCORED = "scored"
    EXCLUDED = "excluded"  # infrastructure; reported with all-fail and all-pass bounds


@dataclass(frozen=True, slots=True)
class Policy:
    """What follows from one outcome. `backoff_s` is the wait before the second try; it doubles after."""

    retry: Retry
    pause: Pause
    counting: Counting
    backoff_s: float
    meaning: str

    @property
    def settled(self) -> bool:
        """The cell need not be tried again; only then may its result be cached."""
        return self.retry is Retry.NEVER

    @property
    def graded(self) -> bool:
        """Exactly the scored outcomes are graded: an excluded cell has no score to be mistaken for one."""
        return self.counting is Counting.SCORED


def _data(meaning: str) -> Policy:
    return Policy(Retry.NEVER, Pause.NO, Counting.SCORED, 0.0, meaning)


def _infrastructure(retry: Retry, pause: Pause, backoff_s: float, meaning: str) -> Policy:
    return Policy(retry, pause, Counting.EXCLUDED, backoff_s, meaning)


POLICY: Final[Mapping[Outcome, Policy]] = MappingProxyType(
    {
        Outcome.COMPLETED: _data("the agent ended its turn by itself"),
        Outcome.STOPPED: _data("a scripted gate, the responder or a plan stop ended the conversation"),
        Outcome.TIMED_OUT: _data("the deadline of the cell passed before the agent was done"),
        Outcome.MAX_TURNS: _data("the agent used all the turns it was given"),
        Outcome.BUDGET_EXCEEDED: _data("the agent spent all the money it was given"),
        Outcome.AGENT_ERROR: _data("the CLI reports that the agent's turn failed, for no reason of infrastructure"),
        Outcome.HUNG: _infrastructure(Retry.NOW, Pause.NO, 1.0, "no output for longer than the silence limit"),
        Outcome.AUTH: _infrastructure(Retry.NEXT_RUN, Pause.STOP, 0.0, "the API refused the credentials"),
        Outcome.BILLING: _infrastructure(Retry.NEXT_RUN, Pause.STOP, 0.0, "the account has no credit"),
        Outcome.RATE_LIMITED: _infrastructure(Retry.NOW, Pause.WAIT, 30.0, "the API refused for too many requests"),
        Outcome.OVERLOADED: _infrastructure(Retry.NOW, Pause.WAIT, 10.0, "the API is overloaded"),
        Outcome.NETWORK: _infrastructure(Retry.NOW, Pause.NO, 5.0, "the API could not be reached or broke off"),
        Outcome.MODEL_UNAVAILABLE: _infrastructure(Retry.NEXT_RUN, Pause.STOP, 0.0, "the API does not know the model"),
        Outcome.CLI_MISSING: _infrastructure(Retry.NEXT_RUN, Pause.STOP, 0.0, "the agent CLI could not be started"),
        Outcome.CLI_CRASH: _infrastructure(Retry.NOW, Pause.NO, 1.0, "the agent CLI ended without a result"),
        Outcome.CANCELLED: _infrastructure(Retry.NEXT_RUN, Pause.NO, 0.0, "the run was cancelled from outside"),
        Outcome.EVALUATOR_ERROR: _infrastructure(Retry.NEXT_RUN, Pause.NO, 0.0, "skilltrial itself failed"),
    }
)


def policy(outcome: Outcome | str) -> Policy:
    """The policy of an outcome; `ValueError` names the known ones for any other word."""
    return POLICY[Outcome(outcome)]
