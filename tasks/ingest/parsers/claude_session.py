"""What a Claude Code stream tells of its session, its results and its API errors."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Final

from skilltrial.tasks.ingest.parsers.claude_content import ERROR_LIMIT, last_result_of, surfaces_of
from skilltrial.tasks.ingest.records import LastResult, StreamSummary, Surface, Usage
from skilltrial.tasks.ingest.usage import KINDS, MessageTally, merge, model_usage_of, of_tokens, total, usage_of
from skilltrial.tasks.ingest.values import as_json, clip, listing, mapping, number, string, whole

_SUBTYPES: Final = frozenset(
    {
        "init",
        "hook_started",
        "hook_progress",
        "hook_response",
        "informational",
        "permission_denied",
        "permission_request",
        "status",
        "api_retry",
        "api_error",
        "task_started",
        "task_progress",
        "task_updated",
        "task_notification",
        "background_tasks_changed",
        "thinking_tokens",
        "compact_boundary",
        "microcompact_boundary",
        "notification",
        "state",
        "session_state_changed",
        "post_turn_summary",
        "ui_invalidate",
        "session_title_changed",
        "model_refusal_no_fallback",
        "files_persisted",
        "local_command",
        "local_command_output",
        "elicitation_complete",
        "turn_duration",  # from here on: of session logs
        "stop_hook_summary",
        "away_summary",
        "memory_saved",
        "bridge_status",
    }
)
_ERRORS: Final = 100
_ERROR_TEXTS: Final = 20


class SessionLog:
    """Session ids, roster, results, errors."""

    def __init__(self) -> None:
        self.last_record: str | None = None
        self.repeated = False
        self._harness = "claude-code"
        self._init_ids: list[str] = []
        self._message_ids: list[str] = []
        self._hook_ids: list[str] = []
        self._last_id: object = None
        self._cli_version: str | None = None
        self._model: str | None = None
        self._mode: str | None = None
        self._surfaces: dict[str, Surface] = {}
        self._results = 0
        self._last: tuple[int, LastResult] | None = None
        self._reopened = False
        self._seen_results: set[tuple[str | None, str | int]] = set()
        self._result_usage: list[Usage] = []
        self._totals: dict[str | None, tuple[dict[str | None, Usage], float | None]] = {}  # by session
        self._round_usage: dict[str | None, Usage] | None = {}
        self._api_retries = 0
        self._api_errors: list[str] = []
        self._error_texts: list[str] = []
        self._rejected = False
        self._notes: list[str] = []

    def note(self, word: str) -> None:
        """Add a note once."""
        if word not in self._notes:
            self._notes.append(word)

    def spoke(self, record: dict[str, Any]) -> None:
        """A message or result record: its session, and in session logs the version as well."""
        identifier = record.get("session_id") or record.get("sessionId")
        if identifier is not self._last_id and isinstance(identifier, str):
            if identifier != self._last_id and identifier not in self._message_ids and len(self._message_ids) < _ERRORS:
                self._message_ids.append(identifier)
            self._last_id = identifier
        if self._cli_version is None and "sessionId" in record:
            self._cli_version = string(record.get("version"))

    def api_error(self, record: dict[str, Any], message: dict[str, Any]) -> None:
        """A message that the CLI wrote in a model's place, which may stand for an API error."""
        kind = record.get("error")
        if not isinstance(kind, str):
            return
        self._add_error(kind)
        for block in listing(message.get("content")):
            text = mapping(block).get("text")
            if isinstance(text, str):
                self._add_error_text(text)

    def answered(self, main: bool) -> None:
        """A model answered: whatever was rejected before, work goes on."""
        if main:
            self._rejected = False
            self._reopened = self._results > 0

    def rate_limit(self, told: dict[str, Any]) -> None:
        """A `rate_limit_event`. A rejected limit that is paid for as overage stops nothing."""
        self._rejected = told.get("status") == "rejected" and told.get("isUsingOverage") is not True
        self.last_record = "rate_limit_event"

    def system(self, record: dict[str, Any], subtype: object) -> bool:
        """A system record; false: its subtype is not known."""
        if subtype is None:  # a recorder's own form, with nothing of ours in it
            return True
        if not isinstance(subtype, str) or subtype not in _SUBTYPES:
            return False
        self.last_record = f"system/{subtype}"
        if subtype == "init":
            self._init(record)
        elif subtype == "api_retry":
            self._api_retries += 1
            self._add_error(string(record.get("error")) or "unknown")
        elif subtype.startswith("hook_"):
            identifier = string(record.get("session_id"))
            if identifier is not None and identifier not in self._hook_ids and len(self._hook_ids) < _ERRORS:
                self._hook_ids.append(identifier)
        return True

    def _init(self, record: dict[str, Any]) -> None:
        identifier = string(record.get("session_id"))
        if identifier is not None and identifier not in self._init_ids and len(self._init_ids) < _ERRORS:
            self._init_ids.append(identifier)
        if self._last is not None:
            self._reopened = True
            self._last = (-1, self._last[1])  # a later process counts its results from 0 again
        if record.get("harness") == "scripted":
            self._harness = "scripted"
        self._cli_version = self._cli_version or string(record.get("claude_code_version"))
        self._model = self._model or string(record.get("model"))
        self._mode = self._mode or string(record.get("permissionMode"))
        surfaces = surfaces_of(record)
        for kind, surface in surfaces.items():
            known = self._surfaces.setdefault(kind, surface)
            if kind == "skill" and known.entries != surface.entries:
                self.note("surface_changed")

    def result(self, record: dict[str, Any]) -> bool:
        """A result record; false: the very same one came before."""
        self._reopened = False
        session = string(record.get("session_id"))
        key = (session, string(record.get("uuid")) or hash(as_json(record)))
        if key in self._seen_results:
            self.repeated = True
            return False
        self._seen_results.add(key)
        self.spoke(record)
        self._results += 1
        index = whole(record.get("result_index"))
        rank = index if index is not None else self._results
        result = last_result_of(record)
        self.last_record = f"result/{result.subtype}" if result.subtype else "result"
        usage = usage_of(record.get("usage"), source="result")
        if usage is not None:
            self._result_usage.append(usage)
        self._add_round_usage(record)
        if self._last is None or rank >= self._last[0] or session not in self._totals:
            self._last = (rank, result)
            self._totals[session] = (model_usage_of(record.get("modelUsage")), number(record.get("total_cost_usd")))
        for text in (*result.errors, *([result.text] if result.is_error and result.text else [])):
            self._add_error_text(text)
        kind = string(record.get("api_error_type")) or string(record.get("api_error"))
        if result.is_error and kind is not None and not self._api_errors:
            self._add_error(kind)
        return True

    def _add_round_usage(self, record: dict[str, Any]) -> None:
        told = record.get("model_usage_since_last_result")
        if self._round_usage is not None:
            self._round_usage = merge(self._round_usage, model_usage_of(told)) if isinstance(told, dict) else None

    def _add_error(self, kind: str) -> None:
        self._api_errors.append(kind[:100])
        del self._api_errors[:-_ERRORS]

    def _add_error_text(self, text: str) -> None:
        short = clip(text, ERROR_LIMIT)
        if short not in self._error_texts and len(self._error_texts) < _ERROR_TEXTS:
            self._error_texts.append(short)

    # -- summing up ------------------------------------------------------------------------------

    def summary(self, parser: str, version: int, tally: MessageTally) -> StreamSummary:
        """What is known, without what other parts of the parser keep."""
        skills = self._surfaces.get("skill")
        plugins = self._surfaces.get("plugin")
        summary = StreamSummary(
            harness=self._harness,
            parser=parser,
            parser_version=version,
            cli_version=self._cli_version,
            model=self._model,
            permission_mode=self._mode,
            session_ids=list(dict.fromkeys((*self._init_ids, *self._message_ids))) or self._hook_ids,
            init_session_ids=self._init_ids,
            results=self._results,
            last_result=self._last[1] if self._last else None,
            last_record=self.last_record,
            skills=[name for entry in skills.entries if (name := entry["name"]) is not None] if skills else None,
            plugins=plugins.entries if plugins else None,
            surfaces=self._surfaces,
            api_retries=self._api_retries,
            api_errors=self._api_errors,
            error_texts=self._error_texts,
            rate_limit_rejected=self._rejected,
            reopened=self._reopened,
            cost_usd=self._cost(),
            finished=self._results > 0,
            notes=self._notes,
        )
        summary.usage_main, summary.usage_all, summary.usage_round = self._usage(tally)
        self._add_notes(summary, tally.messages)
        return summary

    def _usage(
        self, tally: MessageTally
    ) -> tuple[Usage | None, dict[str | None, Usage], dict[str | None, Usage] | None]:
        main = total(self._result_usage) or tally.main()
        if main is not None and (self._reopened or len(self._result_usage) < self._results):
            main.exact = False  # of some turn nothing is told
        everything: dict[str | None, Usage] = {}
        for by_model, cost in self._totals.values():
            everything = merge(everything, by_model or self._unsplit(main, cost, tally))
        if not self._results:
            everything = tally.by_model()
        if self._reopened:
            everything = {model: replace(usage, exact=False) for model, usage in everything.items()}
        return main, everything, self._round_usage if self._results else None

    def _cost(self) -> float | None:
        """What all sessions cost together; null as soon as one of them does not tell."""
        costs: list[float] = []
        for by_model, told in self._totals.values():
            whole_tree = total(by_model.values())
            cost = told if told is not None or whole_tree is None else whole_tree.cost_usd
            if cost is None:
                return None
            costs.append(cost)
        return math.fsum(costs) if costs else None

    @staticmethod
    def _unsplit(main: Usage | None, cost: float | None, tally: MessageTally) -> dict[str | None, Usage]:
        """The whole tree, where the result does not split it by model: what sub-agents used is a lower bound."""
        if main is None and cost is None:
            return {}
        side = tally.side()
        seen = total(tally.by_model().values()) if side else None
        known = main or Usage()
        tokens: dict[str, int | None] = {}
        for kind in KINDS:
            both = (getattr(known, kind), getattr(seen, kind, None))
            tokens[kind] = max((told for told in both if told is not None), default=None)
        exact = known.exact and not side
        return {None: of_tokens(tokens, cost_usd=cost, exact=exact, source=known.source)}

    def _add_notes(self, summary: StreamSummary, answers: int) -> None:
        servers = self._surfaces.get("mcp_server")
        main = summary.usage_main
        silent_usage = main is not None and not any(getattr(main, kind) for kind in KINDS)
        for word, holds in (
            ("several_sessions", len(summary.session_ids) > 1),
            ("several_results", self._results > 1),
            ("no_init", not self._init_ids),
            (
                "mcp_not_connected",
                servers is not None and any(entry["status"] not in ("connected", None) for entry in servers.entries),
            ),
            # the bundled agent asks no model, so it uses nothing
            ("zero_usage", silent_usage and answers > 0 and summary.harness != "scripted"),
        ):
            if holds:
                summary.note(word)
