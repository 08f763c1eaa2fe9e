"""`template.json`: what one immutable template repository holds, written when it is whole."""

from __future__ import annotations

from skilltrial.data.models import Kept

TEMPLATE_SCHEMA = 1


class TemplateRecord(Kept):
    """One built template. Its repository lies beside the record, and so does what git cannot carry (`extras/`)."""

    schema_version: int = TEMPLATE_SCHEMA
    eval_id: str
    condition: str
    digest: str  # of all that went in, as planned
    baseline: str  # commit id of refs/skilltrial/baseline; every environment starts there
    tree: str  # tree id of that commit
    branch: str
    codebase_skills: tuple[str, ...]  # slugs of skills that the codebase or the fixtures bring along, sorted
    extras: bool  # fixtures hold repositories of their own, or empty folders
    notes: tuple[str, ...] = ()
