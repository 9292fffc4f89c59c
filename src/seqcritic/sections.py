"""What all sections of the settings share: immutability, and the types of their values."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


def _split(value: Any) -> Any:
    """Take `a.txt,b.txt` for a list of two paths."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


Paths = Annotated[tuple[str, ...], BeforeValidator(_split)]
Positive = Annotated[int, Field(ge=1)]
Factor = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Rate = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Several = Annotated[int, Field(ge=2)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Weight = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Section(BaseModel):
    """A part of the tree: immutable, and closed to unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)
