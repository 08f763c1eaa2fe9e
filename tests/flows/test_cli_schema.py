"""`skilltrial schema`."""

from __future__ import annotations

import orjson
import pytest

from skilltrial.flows.cli import app
from skilltrial.flows.cli.schema import json_schema, schema

NAMES = ("benchmark", "campaign", "evals", "plan", "attempt")


@pytest.mark.parametrize("name", NAMES)
def test_every_schema_is_one_json_document_that_forbids_unknown_fields(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert schema(name, json=True) == 0  # type: ignore[arg-type]
    found = orjson.loads(capsys.readouterr().out)
    assert found == json_schema(name)
    assert found["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert (found["type"], found["additionalProperties"]) == ("object", False)


def test_what_a_person_writes_may_leave_out_what_has_a_default() -> None:
    assert json_schema("campaign")["required"] == ["skill"]
    assert json_schema("evals")["required"] == ["skill_name", "evals"]


def test_what_skilltrial_writes_has_all_its_fields() -> None:
    found = json_schema("benchmark")
    assert set(found["required"]) == set(found["properties"]) - {"schema_version"}
    assert {"verdict", "reason", "effect", "unavailable"} <= set(found["$defs"]["Contrast"]["required"])


def test_the_command_line_knows_the_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert app(["schema", "evals"]) == 0
    assert orjson.loads(capsys.readouterr().out)["title"] == "EvalsFile"
