"""Scripts are checked whole, and every fault is named with its place."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skilltrial.tasks.dispatch.scripted.script import FAILURES, ScriptError, filled, parse, select
from tests.dispatch.scripted.agent import Agent, Json

KINDS = ", ".join(FAILURES)
STEP_KEYS = "when, at, sleep_s, think, say, tool, tools, event, fail, end"


def problems(*steps: object) -> list[str]:
    with pytest.raises(ScriptError) as caught:
        parse(json.dumps({"conversations": [{"match": "", "steps": list(steps)}]}), "s.json")
    return caught.value.problems


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ("say", "must be an object, found str"),
        ({"speak": "x"}, f"unknown key 'speak'; known: {STEP_KEYS}"),
        ({"say": 1}, ".say: must be a text, found 1"),
        ({"end": 1}, ".end: must be true or false, found 1"),
        ({"sleep_s": True}, ".sleep_s: must be a number, found True"),
        ({"sleep_s": -1}, ".sleep_s: must not be negative"),
        ({"at": "end"}, ".at: must be 'start', found 'end'"),
        ({"tool": {"name": "Bash"}}, ".tool: input is missing"),
        ({"tools": [{"name": "Bash", "input": {}}, {"input": {}}]}, ".tool: name is missing"),
        ({"tool": {"name": "B", "input": {}}, "tools": []}, ": has both tool and tools"),
        ({"when": {"skil": "x"}}, ".when: unknown key 'skil'; known: skill, no_skill, "),
        ({"when": {"repetition": ["1"]}}, ".when.repetition: must be a list whose entries are each a whole number"),
        ({"fail": {}}, f".fail.kind: unknown None; known: {KINDS}"),
        ({"fail": {"kind": "explode"}}, f".fail.kind: unknown 'explode'; known: {KINDS}"),
        ({"fail": {"kind": "crash", "seconds": 1}}, ".fail: unknown key 'seconds'; known: "),
        ({"fail": {"kind": "crash", "exit_code": "1"}}, ".fail.exit_code: must be a whole number, found '1'"),
        ({"fail": {"kind": "crash", "signal": "SIGNONE"}}, ".fail.signal: unknown 'SIGNONE'; such as SIGKILL"),
        ({"fail": {"kind": "crash", "times": 1}}, ".fail: times and counter go together"),
        ({"fail": {"kind": "hang", "child": "x"}}, ".fail.child: unknown 'x'; known: session, orphan, deaf"),
    ],
)
def test_faults_of_a_step(step: object, problem: str) -> None:
    (found,) = problems({"say": "fine"}, step)
    assert found.startswith("conversations[0].steps[1]")
    assert problem in found


def test_all_faults_are_reported_at_once() -> None:
    assert len(problems({"say": 1}, {"fail": {"kind": "x"}}, 3)) == 3


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ("{", "s.json: is not JSON: "),
        ("[]", "s.json: must be an object, found list"),
        ("{}", "s.json: conversations is missing"),
        ('{"conversations": []}', "s.json: conversations: must hold at least one"),
        ('{"conversations": [{"steps": []}]}', "s.json: conversations[0]: match is missing"),
        ('{"conversations": [{"match": "(", "steps": []}]}', "conversations[0].match: is no regular expression: "),
    ],
)
def test_faults_of_the_document(document: str, problem: str) -> None:
    with pytest.raises(ScriptError, match=re.escape(problem)):
        parse(document, "s.json")


def test_the_first_conversation_that_matches_is_taken() -> None:
    entries = [{"match": text, "steps": [{"say": text}]} for text in ("^a", "b", "")]
    conversations = parse(json.dumps({"conversations": entries}), "s.json")
    found = [select(conversations, prompt) for prompt in ("abc", "xb", "x")]
    assert [one.steps[0].say for one in found if one] == ["^a", "b", ""]
    assert select(conversations[:1], "x") is None


def test_the_process_names_the_fault_and_exits_with_two(agent: Agent) -> None:
    run = agent.script({"conversations": [{"match": "", "steps": [{"say": 1}]}]})
    place = f"{agent.root / 'script.json'}: conversations[0].steps[0].say: must be a text, found 1\n"
    assert (run.code, run.stdout, run.stderr) == (2, b"", place)


def test_the_process_says_when_no_conversation_matches(agent: Agent) -> None:
    run = agent.script({"conversations": [{"match": "^Sing", "steps": []}]}, prompt="Dance.")
    place = f"{agent.root / 'script.json'}: no conversation matches the prompt 'Dance.'\n"
    assert (run.code, run.stdout, run.stderr) == (2, b"", place)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def faults(document: object) -> list[str] | None:
    """The faults of a document; null when it can be read."""
    try:
        parse(json.dumps(document), "s.json")
    except ScriptError as error:
        return error.problems
    return None


@given(JSON)
def test_any_document_is_either_read_or_refused_with_a_reason(document: object) -> None:
    assert faults(document) != []


@given(st.dictionaries(st.sampled_from(["say", "tool", "tools", "when", "fail", "at", "sleep_s", "event"]), JSON))
def test_any_step_is_either_read_or_refused_with_a_reason(step: Json) -> None:
    assert faults({"conversations": [{"match": "", "steps": [step]}]}) != []


@given(JSON)
def test_values_without_placeholders_stay_as_they_are(value: object) -> None:
    assert filled(value, {"a placeholder nobody writes": "x"}) == value
