"""The script's models, and the choice of the step that answers a request."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from skilltrial.tasks.preflight.loopback.scenarios import (
    ApiError,
    Conversation,
    Script,
    Step,
    StreamError,
    ToolUse,
    When,
    choose,
    fill,
    roster,
    working_directory,
)
from tests.preflight.loopback.requests import asked, request, result, said

SKILL_STEP = Step(when=When(skill="tidy-notes"), tools=(ToolUse(name="Skill", input={"skill": "tidy-notes"}),))
PLAIN_STEP = Step(when=When(no_skill="tidy-notes"), text="I look for myself.")
TIDY = Conversation(name="tidy", prompt="^Tidy the notes", steps=(SKILL_STEP, PLAIN_STEP, Step(text="Tidied.")))
COUNT = Conversation(name="count", prompt="^Count", steps=(Step(text="One."), Step(text="Two.")))
SCRIPT = Script(conversations=(TIDY, COUNT))


def chosen(value: dict[str, Any]) -> tuple[str | None, int | None, str | None]:
    choice = choose(SCRIPT, value)
    name = choice.conversation.name if choice.conversation else None
    return name, choice.position, choice.step.text if choice.step else None


def test_first_request_gets_the_first_step_of_the_conversation_that_has_its_prompt() -> None:
    assert chosen(request("Count the files")) == ("count", 0, "One.")


def test_step_is_the_number_of_answers_since_the_prompt() -> None:
    assert chosen(request("Count the files", said(), result())) == ("count", 1, "Two.")


def test_follow_up_prompt_starts_its_own_conversation() -> None:
    messages = (said(), result(), said(), asked("Count the files"), said(), result())
    assert chosen(request("Tidy the notes", *messages)) == ("count", 1, "Two.")


def test_newest_prompt_without_a_conversation_leaves_the_earlier_one_in_charge() -> None:
    assert chosen(request("Count the files", said(), asked("Resume directly"))) == ("count", 1, "Two.")


@pytest.mark.parametrize(
    "note", ["<system-reminder>\nCount\n</system-reminder>", "Base directory for this skill: /x\n\nCount"]
)
def test_notes_of_the_cli_are_not_prompts(note: str) -> None:
    script = Script(conversations=(Conversation(name="any", prompt="Count", steps=(Step(text="x"),)),))
    assert choose(script, request("Sum", asked(note))).conversation is None


def test_skill_body_beside_a_tool_result_is_not_a_prompt() -> None:
    script = Script(conversations=(Conversation(name="any", prompt="Tidy the notes", steps=(Step(text="x"),)),))
    choice = choose(script, request("Tidy the notes", said(), result()))
    assert (choice.position, choice.step, choice.complaint) == (1, None, "conversation 'any' has no step 1")


def test_unknown_prompt_is_named_as_such() -> None:
    choice = choose(SCRIPT, request("Sing"))
    assert (choice.conversation, choice.complaint) == (None, "no scripted conversation has this prompt")


def test_request_without_messages_has_no_conversation() -> None:
    assert choose(SCRIPT, {"messages": "none"}).conversation is None


def test_arms_differ_by_the_roster_and_nothing_else() -> None:
    with_skill, without = request("Tidy the notes", skills=True), request("Tidy the notes")
    assert choose(SCRIPT, with_skill).step is SKILL_STEP
    assert choose(SCRIPT, without).step is PLAIN_STEP
    later = (said(), result())
    assert chosen(request("Tidy the notes", *later, skills=True)) == ("tidy", 1, "Tidied.")
    assert chosen(request("Tidy the notes", *later)) == ("tidy", 1, "Tidied.")


def test_last_step_repeats_only_where_the_conversation_says_so() -> None:
    endless = COUNT.model_copy(update={"repeat_last": True})
    value = request("Count", *(said() for _ in range(5)))
    assert choose(Script(conversations=(endless,)), value).step == COUNT.steps[1]
    assert choose(SCRIPT, value).step is None


@given(st.integers(min_value=0, max_value=20), st.integers(min_value=0, max_value=5))
def test_position_depends_on_answers_not_on_other_messages(answers: int, notes: int) -> None:
    later = [m for _ in range(answers) for m in (said(), result())] + [result() for _ in range(notes)]
    assert choose(SCRIPT, request("Count the files", *later)).position == answers


def test_roster_lists_the_skills_of_its_own_paragraph_by_slug() -> None:
    assert roster(request("x", skills=True)) == ("tidy-notes", "plain-skill", "demo:demo-skill")
    assert roster(request("x")) == ()


def test_working_directory_is_read_from_the_environment_text() -> None:
    assert working_directory(request("x")) == "/srv/w1/project"
    assert working_directory({"messages": [asked("hello")]}) is None


def test_model_cannot_tell_the_roster_or_the_directory() -> None:
    words = "skills are available for use with the Skill tool:\n\n- mine: x\n - Primary working directory: /mine"
    value: dict[str, Any] = {"messages": [asked("hello"), said(words)]}
    assert (roster(value), working_directory(value)) == ((), None)


def test_directory_is_filled_into_text_and_nested_input() -> None:
    tool = ToolUse(name="Many", input={"a": ["{cwd}/x", 1], "b": {"c": "{cwd}"}, "d": "{other}"})
    filled = fill(Step(text="In {cwd}.", tools=(tool,)), request("x"))
    assert filled.text == "In /srv/w1/project."
    assert filled.tools[0].input == {"a": ["/srv/w1/project/x", 1], "b": {"c": "/srv/w1/project"}, "d": "{other}"}


def test_slot_stays_where_the_request_tells_no_directory() -> None:
    step = Step(text="In {cwd}.")
    assert fill(step, {"messages": []}) == step


@pytest.mark.parametrize(
    ("status", "kind"), [(401, "authentication_error"), (429, "rate_limit_error"), (529, "overloaded_error")]
)
def test_error_has_the_documented_type_of_its_status(status: int, kind: str) -> None:
    error = ApiError(status=status, message="no")
    assert error.body() == {"type": "error", "error": {"type": kind, "message": "no"}}


def test_error_type_can_be_another_and_unknown_statuses_are_api_errors() -> None:
    assert ApiError(status=400, type="billing_error").kind == "billing_error"
    assert ApiError(status=599).kind == "api_error"


@pytest.mark.parametrize(
    "fields", [{}, {"error": {"status": 529, "times": 2}}, {"when": {"skill": "a"}}, {"delay_s": 1}]
)
def test_step_that_says_nothing_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="needs thinking, text or tools"):
        Step.model_validate(fields)


def test_step_that_only_ever_fails_needs_nothing_to_say() -> None:
    assert Step(error=ApiError(status=500)).text is None
    assert Step(stream_error=StreamError()).text is None


def test_when_without_a_skill_is_refused() -> None:
    with pytest.raises(ValidationError, match="needs skill or no_skill"):
        When()


def test_pattern_must_be_a_regular_expression() -> None:
    with pytest.raises(ValidationError, match="is not a regular expression"):
        Conversation(name="bad", prompt="(", steps=(Step(text="x"),))


def test_conversations_must_have_different_names() -> None:
    with pytest.raises(ValidationError, match="different names"):
        Script(conversations=(COUNT, COUNT))
