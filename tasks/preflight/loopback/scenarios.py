"""What the stand-in model says: scripted conversations, and the pure choice of the next step.

A request carries the whole conversation so far, so it alone decides the answer: the conversation is the
one whose pattern finds the newest prompt of the user, the step is the number of answers given since.
Retries, resumed sessions and concurrent agents therefore get the same answers in any order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import Field, JsonValue, field_validator, model_validator

from skilltrial.data.models import NonEmpty, Written

ERROR_TYPES: Final[Mapping[int, str]] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""The error type that the Messages API documents for each HTTP status."""

_DIRECTORY: Final = re.compile(r"^\s*-?\s*Primary working directory: (.+)$", re.MULTILINE)
_ROSTER: Final = "skills are available for use with the Skill tool:"
_LISTED: Final = re.compile(r"^- (\S+?)(?: \(.*?\))?: ", re.MULTILINE)
# What the CLI itself writes under the user's name (claude 2.1.332, measured).
_NOT_A_PROMPT: Final = ("<system-reminder>", "Base directory for this skill: ")


class ToolUse(Written):
    """One tool call. `{cwd}` in a text of its input stands for the agent's working directory."""

    name: NonEmpty
    input: dict[str, JsonValue] = Field(default_factory=dict)


class Usage(Written):
    """Tokens that an answer reports."""

    input_tokens: int = Field(default=100, ge=0)
    output_tokens: int = Field(default=50, ge=0)
    cache_creation_input_tokens: int = Field(default=20, ge=0)
    cache_read_input_tokens: int = Field(default=300, ge=0)


class ApiError(Written):
    """An HTTP error instead of an answer, for the first `times` requests at a step, or for all of them."""

    status: int = Field(ge=400, le=599)
    type: NonEmpty | None = None  # default: the documented type of the status
    message: NonEmpty = "scripted error"
    headers: dict[str, str] = Field(default_factory=dict)
    times: int | None = Field(default=None, ge=1)  # null: always

    @property
    def kind(self) -> str:
        """The error's type, as the body states it."""
        return self.type or ERROR_TYPES.get(self.status, "api_error")

    def body(self) -> dict[str, JsonValue]:
        """The error as the Messages API words it."""
        return error_body(self.kind, self.message)


class StreamError(Written):
    """An `error` event in the middle of a stream, after which it ends; a plain HTTP error where nothing streams."""

    type: NonEmpty = "overloaded_error"
    message: NonEmpty = "scripted stream error"

    @property
    def status(self) -> int:
        """The HTTP status that the Messages API documents for the type; 500 for any other."""
        return next((status for status, kind in ERROR_TYPES.items() if kind == self.type), 500)

    @property
    def told(self) -> tuple[str, str]:
        """Type and message."""
        return self.type, self.message


class When(Written):
    """What must hold of a request for a step to exist at all."""

    skill: NonEmpty | None = None  # the request's roster lists this skill
    no_skill: NonEmpty | None = None  # the request's roster does not list it

    @model_validator(mode="after")
    def _says_something(self) -> When:
        if self.skill is None and self.no_skill is None:
            raise ValueError("needs skill or no_skill")
        return self

    def holds(self, skills: Sequence[str]) -> bool:
        """Whether a request with this roster of skills fits."""
        return (self.skill is None or self.skill in skills) and (self.no_skill is None or self.no_skill not in skills)


class Step(Written):
    """One answer of the model. Its blocks stand in the order thinking, text, tool calls."""

    when: When | None = None
    thinking: NonEmpty | None = None
    text: NonEmpty | None = None
    tools: tuple[ToolUse, ...] = ()
    usage: Usage = Usage()
    model: NonEmpty | None = None  # the model that answers; default: the one asked
    stop_reason: NonEmpty | None = None  # default: tool_use with tool calls, else end_turn
    error: ApiError | None = None
    delay_s: float = Field(default=0.0, ge=0)  # before the first byte
    chunk_delay_s: float = Field(default=0.0, ge=0)  # after each event of a stream
    chunk_characters: int = Field(default=400, ge=1)  # of a text, in one event
    # events of a stream after which the connection breaks; without a stream it breaks in the answer's middle
    disconnect_after: int | None = Field(default=None, ge=1)
    stream_error: StreamError | None = None  # right after the stream's first event

    @model_validator(mode="after")
    def _says_something(self) -> Step:
        failing = self.stream_error is not None or (self.error is not None and self.error.times is None)
        if self.thinking is None and self.text is None and not self.tools and not failing:
            raise ValueError("needs thinking, text or tools, unless it only ever fails")
        return self


class Conversation(Written):
    """The answers to one prompt. Steps whose `when` does not hold are left out before they are counted."""

    name: NonEmpty
    prompt: NonEmpty  # regular expression, searched for in the prompt
    steps: tuple[Step, ...] = Field(min_length=1)
    repeat_last: bool = False  # the last step answers everything after it, too: an agent that never ends

    @field_validator("prompt")
    @classmethod
    def _is_a_pattern(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"is not a regular expression: {error}") from error
        return value


class Script(Written):
    """All that the stand-in model knows. The first conversation whose pattern fits a prompt has it."""

    conversations: tuple[Conversation, ...] = ()
    models: tuple[NonEmpty, ...] = ()  # other models are not found; empty: every name is a model

    @model_validator(mode="after")
    def _names_differ(self) -> Script:
        names = [conversation.name for conversation in self.conversations]
        if len(names) != len(set(names)):
            raise ValueError(f"conversations must have different names, found {names}")
        return self


@dataclass(frozen=True, slots=True)
class Choice:
    """Where in the script a request stands. Both are null when no conversation has its prompt."""

    conversation: Conversation | None
    position: int | None  # answers given since the prompt
    step: Step | None  # null as well when the conversation has no such step

    @property
    def complaint(self) -> str:
        """What the script lacks; empty when it has the step."""
        if self.conversation is None:
            return "no scripted conversation has this prompt"
        return "" if self.step else f"conversation {self.conversation.name!r} has no step {self.position}"


def choose(script: Script, request: Mapping[str, JsonValue]) -> Choice:
    """The step that answers a Messages API request; the same for the same request, always."""
    messages = _messages(request)
    for index in range(len(messages) - 1, -1, -1):
        conversation = _owner(script, messages[index])
        if conversation is not None:
            position = sum(1 for later in messages[index + 1 :] if later.get("role") == "assistant")
            return Choice(conversation, position, _step(conversation, position, roster(request)))
    return Choice(None, None, None)


def fill(step: Step, request: Mapping[str, JsonValue]) -> Step:
    """The step with `{cwd}` filled in, where the request tells the agent's working directory."""
    directory = working_directory(request)
    if directory is None:
        return step
    tools = tuple(tool.model_copy(update={"input": _filled(tool.input, directory)}) for tool in step.tools)
    text = step.text and step.text.replace("{cwd}", directory)
    return step.model_copy(update={"tools": tools, "text": text})


def roster(request: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """The skills that the request tells the model of, in its order (claude 2.1.332, measured)."""
    found: list[str] = []
    for text in _told(request):
        _, marker, rest = text.partition(_ROSTER)
        if marker:
            # The list is one paragraph: descriptions may hold dashes, but no line of another list does.
            found += _LISTED.findall(rest.strip().split("\n\n", 1)[0])
    return tuple(dict.fromkeys(found))


def working_directory(request: Mapping[str, JsonValue]) -> str | None:
    """The agent's working directory, if the request tells it."""
    for text in _told(request):
        match = _DIRECTORY.search(text)
        if match:
            return match[1].strip()
    return None


def error_body(kind: str, message: str) -> dict[str, JsonValue]:
    """An error as the Messages API words it."""
    return {"type": "error", "error": {"type": kind, "message": message}}


def _owner(script: Script, message: Mapping[str, JsonValue]) -> Conversation | None:
    for prompt in _prompts(message):
        for conversation in script.conversations:
            if re.search(conversation.prompt, prompt):
                return conversation
    return None


def _step(conversation: Conversation, position: int, skills: Sequence[str]) -> Step | None:
    steps = [step for step in conversation.steps if step.when is None or step.when.holds(skills)]
    if steps and conversation.repeat_last:
        return steps[min(position, len(steps) - 1)]
    return steps[position] if position < len(steps) else None


def _prompts(message: Mapping[str, JsonValue]) -> list[str]:
    """What a person wrote in a message: nothing where it carries tool results or the CLI's own notes."""
    if message.get("role") != "user":
        return []
    content = message.get("content")
    if isinstance(content, list) and any(isinstance(b, dict) and b.get("type") == "tool_result" for b in content):
        return []
    return [text for text in _texts(content) if not text.lstrip().startswith(_NOT_A_PROMPT)]


def _told(request: Mapping[str, JsonValue]) -> Iterator[str]:
    """Texts that the CLI, not the model, put into the request: the system prompt and every message not its own."""
    yield from _texts(request.get("system"))
    for message in _messages(request):
        if message.get("role") != "assistant":
            yield from _texts(message.get("content"))


def _messages(request: Mapping[str, JsonValue]) -> list[dict[str, JsonValue]]:
    messages = request.get("messages")
    return [message for message in messages if isinstance(message, dict)] if isinstance(messages, list) else []


def _texts(content: JsonValue) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    elif isinstance(content, list):
        for block in content:
            text = block.get("text") if isinstance(block, dict) else None
            if isinstance(text, str):
                yield text


def _filled(value: JsonValue, directory: str) -> JsonValue:
    if isinstance(value, str):
        return value.replace("{cwd}", directory)
    if isinstance(value, list):
        return [_filled(item, directory) for item in value]
    if isinstance(value, dict):
        return {key: _filled(item, directory) for key, item in value.items()}
    return value
