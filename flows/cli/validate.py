"""`skilltrial validate`: every problem of what a person wrote, at once."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from skilltrial.flows.cli.output import emit_json

if TYPE_CHECKING:
    from skilltrial.tasks.planning.validation import Checked


def validate(*paths: Path, json: Annotated[bool, Parameter(negative="")] = False) -> int:
    """Check evals.json files, campaign.toml files and skill folders, and list every problem.

    Exit codes: 0 no problem, 2 at least one.

    Parameters
    ----------
    paths
        Files or folders; the current folder if none is given.
    json
        Print the findings as JSON.
    """
    from skilltrial.tasks.planning.validation import check

    checked = [check(path) for path in paths or (Path(),)]
    total = sum(len(found.problems) for found in checked)
    if json:
        emit_json({"problems": total, "files": [_document(found) for found in checked]})
        return 2 if total else 0
    for found in checked:
        for problem in found.problems:
            print(problem)
        for note in found.notes:
            print(f"note: {note}")
        count = len(found.problems)
        print(f"{found.path}: {'no problem' if not count else f'{count} problem' + ('s' if count > 1 else '')}")
    return 2 if total else 0


def _document(found: Checked) -> dict[str, object]:
    problems = [{**asdict(problem), "value": _json_value(problem.value)} for problem in found.problems]
    return {"path": str(found.path), "kind": found.kind, "problems": problems, "notes": found.notes}


def _json_value(value: object) -> object:
    """A found value as JSON can hold it: texts without half surrogates, everything else in JSON's own types."""
    import json

    text = json.dumps(value, default=str, ensure_ascii=False)
    return json.loads(text.encode("utf-8", errors="replace"))
