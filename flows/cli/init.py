"""`skilltrial init`: a first eval beside a SKILL.md."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from skilltrial.flows.cli.output import emit_json


def init(skill_dir: Path, *, json: Annotated[bool, Parameter(negative="")] = False) -> int:
    """Write evals/evals.json with one valid eval beside a SKILL.md; an existing file is never touched.

    Parameters
    ----------
    skill_dir
        The folder that holds SKILL.md.
    json
        Print what was written as JSON.
    """
    from skilltrial.data.errors import StoreConflict
    from skilltrial.tasks.planning.campaign_file import EVALS_FILE
    from skilltrial.tasks.planning.evals import read_evals
    from skilltrial.tasks.planning.seed import seed_evals
    from skilltrial.tasks.planning.skill import EVALS_FOLDER, SKILL_FILE, read_skill

    folder = skill_dir.expanduser().absolute()
    folder = folder.parent if folder.name == SKILL_FILE else folder
    skill = read_skill(folder)
    path = folder / EVALS_FOLDER / EVALS_FILE
    path.parent.mkdir(exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as handle:
            handle.write(seed_evals(skill))
    except FileExistsError as error:
        raise StoreConflict(f"{path} exists already and was left as it is; `skilltrial validate` checks it") from error
    ids = [entry.id for entry in read_evals(path).evals]
    if json:
        emit_json({"path": str(path), "skill_name": skill.name, "evals": ids, "notes": skill.notes})
        return 0
    print(f"wrote {path}")
    for note in skill.notes:
        print(f"note: {note}")
    print(f"Make its prompt and assertions your own, then: skilltrial plan {shlex.quote(str(skill_dir))}")
    return 0
