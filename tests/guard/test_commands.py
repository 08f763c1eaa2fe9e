"""The table of commands is consistent in itself."""

from __future__ import annotations

import pytest

from skilltrial.tasks.guard.arguments import Grammar, read
from skilltrial.tasks.guard.commands import (
    INTERPRETERS,
    MODELS,
    SHELLS,
    WRAPPERS,
    Model,
    Operands,
    interpreter,
    targets_of,
)


def test_no_command_is_read_in_two_ways() -> None:
    kinds = [set(MODELS), set(WRAPPERS), set(SHELLS), set(INTERPRETERS)]
    assert sum(map(len, kinds)) == len(set().union(*kinds))


@pytest.mark.parametrize("name", sorted(MODELS))
def test_every_option_whose_value_is_written_takes_one(name: str) -> None:
    model = MODELS[name]
    for option in model.outputs:
        taken = option[1] in model.grammar.short if option[1] != "-" else option in model.grammar.long
        assert taken, option


def test_versions_of_an_interpreter_are_the_interpreter() -> None:
    assert interpreter("python3.12") is INTERPRETERS["python"]
    assert interpreter("pythonista") is None


def test_a_model_that_is_turned_off_writes_its_outputs_alone() -> None:
    model = Model(Operands.UNTOLD, Grammar("O"), outputs=("-O",), unless=("-O",))
    assert targets_of(model, read(["-O", "f", "x"], model.grammar)) == ["f"]
    assert targets_of(model, read(["x"], model.grammar)) == [None]
