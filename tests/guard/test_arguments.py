"""Options and operands."""

from __future__ import annotations

from skilltrial.tasks.guard.arguments import Arguments, Grammar, read


def test_clusters_values_and_operands() -> None:
    assert read(["-ab", "-ofile", "x", "-o", "y", "--", "-z"], Grammar("o")) == Arguments(
        (("-a", None), ("-b", None), ("-o", "file"), ("-o", "y")), ("x", "-z")
    )


def test_long_options_may_be_shortened_and_hold_their_value() -> None:
    found = read(["--out=f", "--targ", "d", "x"], Grammar(long=("--output", "--target-directory")))
    assert found.values("--output") == ["f"]
    assert found.values("--target-directory") == ["d"]
    assert found.operands == ("x",)


def test_attached_values_are_optional() -> None:
    assert read(["-i", "a", "-i.bak", "-ni"], Grammar(attached="i")).values("-i") == ["", ".bak", ""]


def test_the_first_operand_ends_the_options_of_a_wrapper() -> None:
    assert read(["-n", "5", "cmd", "-x"], Grammar("n", operands_last=True)).operands == ("cmd", "-x")


def test_what_only_a_run_tells_is_an_operand_or_a_value() -> None:
    assert read([None, "-o", None, "-"], Grammar("o")) == Arguments((("-o", None),), (None, "-"))
