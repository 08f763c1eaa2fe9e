"""A benchmark for people: on a terminal, as Markdown and as rows of one flat table.

The verdict comes first and then what it rests on. Colour only repeats what a word says already.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from skilltrial.data.benchmark import Benchmark, ConditionSummary, Contrast, Figure, ValidityWarning
from skilltrial.tasks.analysis.floor import probability_text

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

_STYLES: Final = {"improved": "bold green", "regressed": "bold red", "invalid": "bold red"}
_SHOWN_EVALS: Final = 30
_HALF_BAR: Final = 8
_NOT_KNOWN: Final = "–"


def render(benchmark: Benchmark, *, home: Path | None = None) -> RenderableType:
    """The summary for a terminal of 80 columns or more; `home` is named as the place of the tables."""
    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    parts: list[RenderableType] = [Text(_headline(benchmark), style="bold")]
    for contrast in benchmark.contrasts:
        verdict = contrast.verdict.value
        title = (f"{_pair(contrast)}: ", "bold"), (verdict.upper(), _STYLES.get(verdict, "bold"))
        parts += [Text(), Text.assemble(*title), Padding(Text(contrast.reason), (0, 0, 0, 2))]
        parts += [Padding(Text(line), (0, 0, 0, 2)) for line in _figures(contrast)]
        parts += [Padding(_evals_table(contrast), (0, 0, 0, 2))]
    parts += [Text(), _conditions_table(benchmark)]
    if benchmark.validity_warnings:
        parts += [Text(), Text("Validity", style="bold")]
        parts += [Padding(Text(_warning_line(warning)), (0, 0, 0, 2)) for warning in benchmark.validity_warnings]
    parts += [Text(), *map(Text, _footer(benchmark))]
    if home is not None:
        # a path is copied from a terminal in one piece: printed with crop=False, it is broken nowhere
        parts += [Text(line, no_wrap=True, overflow="ignore") for line in _places(benchmark, home)]
    return Group(*parts)


def markdown(benchmark: Benchmark) -> str:
    """The summary as Markdown."""
    lines = [f"# {_headline(benchmark)}", ""]
    for contrast in benchmark.contrasts:
        lines += [f"## {_pair(contrast)}: **{contrast.verdict.value}**", "", contrast.reason, ""]
        lines += [f"* {line}" for line in _figures(contrast)]
        lines += ["", f"| eval | {contrast.treatment} | {contrast.control} | difference |", "|---|--:|--:|--:|"]
        lines += [f"| {' | '.join(row)} |" for row in _eval_rows(contrast)]
        lines += [""]
    lines += ["## Arms", "", f"| {' | '.join(_ARM_COLUMNS)} |", f"|---|{'--:|' * (len(_ARM_COLUMNS) - 1)}"]
    lines += [f"| {' | '.join(_arm_row(arm))} |" for arm in benchmark.conditions]
    if benchmark.validity_warnings:
        lines += ["", "## Validity", ""]
        lines += [f"* {_cell_text(_warning_line(warning))}" for warning in benchmark.validity_warnings]
    return "\n".join([*lines, "", *(f"{line}  " for line in _footer(benchmark))]) + "\n"


def table_rows(benchmark: Benchmark) -> list[dict[str, object]]:
    """One row for each eval of each contrast, after one row for all its evals together."""
    rows: list[dict[str, object]] = []
    for contrast in benchmark.contrasts:
        pair = _pair(contrast)
        rows.append(
            {
                "contrast": pair,
                "eval": "(all)",
                "treatment": None,
                "control": None,
                "difference": _rounded(contrast.effect),
                "cells": f"{sum(e.n_t for e in contrast.evals)} : {sum(e.n_c for e in contrast.evals)}",
                "verdict": contrast.verdict.value,
            }
        )
        rows += [
            {
                "contrast": pair,
                "eval": effect.eval_id,
                "treatment": _rounded(effect.treatment_mean),
                "control": _rounded(effect.control_mean),
                "difference": _rounded(effect.difference),
                "cells": f"{effect.n_t} : {effect.n_c}",
                "verdict": None,
            }
            for effect in contrast.evals
        ]
    return rows


def _headline(benchmark: Benchmark) -> str:
    versions = ", ".join(benchmark.harness.cli_versions) or benchmark.harness.planned_version or "version unknown"
    models = f", {', '.join(benchmark.harness.models)}" if benchmark.harness.models else ""
    return f"{benchmark.campaign}: skill {benchmark.skill_name} on {benchmark.harness.label} {versions}{models}"


def _pair(contrast: Contrast) -> str:
    return f"{contrast.treatment} − {contrast.control}"


def _figures(contrast: Contrast) -> Iterator[str]:
    if contrast.effect is None:
        yield f"effect: not known ({contrast.unavailable.get('effect', 'no reason recorded')})"
    else:
        spread = "SE not known" if contrast.se is None else f"SE {contrast.se:.3f}"
        untied = f"{contrast.n_untied} of {contrast.n_evals} evals differ"
        alike = f"all cells weighed alike {_signed(contrast.run_weighted)}"
        yield f"effect {contrast.effect:+.3f} ({spread}), {untied}; {alike}"
    if contrast.p_sign_flip is not None and contrast.p_sign is not None and contrast.floor is not None:
        adjusted = "" if contrast.p_holm in (None, contrast.p_sign_flip) else f", Holm {_p(contrast.p_holm)}"
        yield f"p {_p(contrast.p_sign_flip)} (sign-flip{adjusted}), {_p(contrast.p_sign)} (sign test)"
        yield f"smallest p: {_p(contrast.floor)} with these evals, {_p(contrast.possible_floor)} if none were tied"
    missing = contrast.missing
    if missing.missing_t or missing.missing_c:
        bounds = (
            f"effect between {_signed(missing.lowest)} and {_signed(missing.highest)} whatever they would have been"
        )
        yield f"without a score: {missing.missing_t} and {missing.missing_c} cells; {bounds}"
    if contrast.same_treatment:
        yield "both arms stage the same: this effect is the noise of the set-up"


def _evals_table(contrast: Contrast) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("eval", overflow="fold")
    for name in (contrast.treatment, contrast.control, "difference"):
        table.add_column(name, justify="right", overflow="fold")
    table.add_column(f"−1{' ' * (_HALF_BAR - 2)}0{' ' * (_HALF_BAR - 2)}+1", no_wrap=True)
    for row, effect in zip(_eval_rows(contrast), contrast.evals[:_SHOWN_EVALS], strict=False):
        table.add_row(*map(Text, row), Text(_bar(effect.difference)))
    if len(contrast.evals) > _SHOWN_EVALS:
        table.add_row(f"and {len(contrast.evals) - _SHOWN_EVALS} more in benchmark.json")
    return table


def _eval_rows(contrast: Contrast) -> Iterator[tuple[str, str, str, str]]:
    for effect in contrast.evals:
        yield (
            effect.eval_id,
            f"{_number(effect.treatment_mean)} ({effect.n_t})",
            f"{_number(effect.control_mean)} ({effect.n_c})",
            _signed(effect.difference),
        )


def _bar(difference: float | None) -> str:
    """The difference drawn from the middle: left is worse, right is better; empty: not known."""
    if difference is None:
        return ""
    length = min(_HALF_BAR, max(int(difference != 0), round(abs(difference) * _HALF_BAR)))
    left = "━" * length if difference < 0 else ""
    right = "━" * length if difference > 0 else ""
    return f"{left:>{_HALF_BAR}}│{right:<{_HALF_BAR}}"


_ARM_COLUMNS: Final = ("arm", "scored", "score", "seconds", "USD", "tokens in", "tokens out", "refused", "skill used")


def _conditions_table(benchmark: Benchmark) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for name in _ARM_COLUMNS:
        table.add_column(name, justify="left" if name == "arm" else "right", overflow="fold")
    for arm in benchmark.conditions:
        table.add_row(*_arm_row(arm))
    return table


def _arm_row(arm: ConditionSummary) -> tuple[str, ...]:
    """Means over the arm's scored cells."""
    listed = arm.skill_used
    # what a CLI sends again in each turn comes mostly from its cache: the parts add up to the prompt
    parts = (arm.input_tokens, arm.cache_read_tokens, arm.cache_creation_tokens)
    prompt = None if any(part.mean is None for part in parts) else sum(part.mean or 0.0 for part in parts)
    return (
        arm.condition,
        f"{arm.scored}/{arm.planned}",
        _number(arm.mean_of_evals, 3),
        _number(arm.duration_ms.mean, 1, scale=1000),
        _number(arm.cost_usd.mean, 3),
        _NOT_KNOWN if prompt is None else f"{prompt:,.0f}",
        _tokens(arm.output_tokens),
        _number(arm.denials.mean),
        f"{listed.true}/{listed.known}" if listed.known else _NOT_KNOWN,
    )


def _footer(benchmark: Benchmark) -> Iterator[str]:
    cells, totals = benchmark.cells, benchmark.totals
    excluded = ", ".join(f"{number} {outcome}" for outcome, number in cells.excluded.items())
    left_out = f", left out: {excluded}" if excluded else ""
    unsettled = f", {cells.unsettled} unsettled ({cells.not_dispatched} never dispatched)" if cells.unsettled else ""
    with_score = f"{cells.with_score} with a score"
    yield f"cells: {cells.planned} planned, {cells.settled} settled{unsettled}, {with_score}{left_out}"
    cost = "not told" if totals.cost_usd is None else f"${totals.cost_usd:.2f}"
    unknown = f" (not told for {totals.cost_unknown} attempts)" if totals.cost_unknown else ""
    minutes, seconds = divmod(round(totals.duration_ms / 1000), 60)
    yield f"cost: {cost}{unknown}; agent time {minutes}:{seconds:02d} in {totals.attempts} attempts"
    if cells.unsettled:
        yield f"next: `skilltrial status {benchmark.campaign}` shows the unsettled cells, the same run again tries them"


def _places(benchmark: Benchmark, home: Path) -> Iterator[str]:
    yield f"benchmark: {home / 'campaigns' / benchmark.campaign / 'benchmark.json'}"
    yield f"tables (`skilltrial tables` describes them): {home / 'tables'}"


def _warning_line(warning: ValidityWarning) -> str:
    shown = ", ".join(warning.cells[:3])
    more = f" and {warning.count - 3} more" if warning.count > 3 else ""
    return f"{warning.severity.value}: {warning.message}" + (f" [{shown}{more}]" if shown else "")


def _cell_text(text: str) -> str:
    """Text for Markdown: what could be read as mark-up is escaped."""
    for character in ("\\", "`", "*", "_", "[", "]", "<", "|"):
        text = text.replace(character, f"\\{character}")
    return text


def _number(value: float | None, digits: int = 2, scale: float = 1) -> str:
    return _NOT_KNOWN if value is None else f"{value / scale:.{digits}f}"


def _signed(value: float | None) -> str:
    return _NOT_KNOWN if value is None else f"{value:+.2f}"


def _tokens(figure: Figure) -> str:
    return _NOT_KNOWN if figure.mean is None else f"{figure.mean:,.0f}"


def _p(value: float | None) -> str:
    return _NOT_KNOWN if value is None else probability_text(value)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
