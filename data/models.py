"""The two bases of every model: what people write, and what the store keeps."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

NonEmpty = Annotated[str, StringConstraints(min_length=1)]


class Written(BaseModel):
    """Base of everything a person writes: unknown fields are errors, values never change after reading."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Kept(BaseModel):
    """Base of what the store keeps: nothing unknown, nothing changed after it is made."""

    model_config = ConfigDict(extra="forbid", frozen=True)
