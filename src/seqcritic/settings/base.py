"""What all sections of the settings share: immutability, and the types of their values."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from seqcritic.settings.bounds import LARGEST, LARGEST_SEED, MOST, MOST_AT_ONCE, WIDEST


def _split(value: Any) -> Any:
    """Take `a.txt,b.txt` for a list of two paths."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


Paths = Annotated[tuple[str, ...], BeforeValidator(_split)]
Count = Annotated[int, Field(ge=0, le=MOST)]
Positive = Annotated[int, Field(ge=1, le=MOST)]
Size = Annotated[int, Field(ge=1, le=WIDEST)]
Samples = Annotated[int, Field(ge=1, le=MOST_AT_ONCE)]
Several = Annotated[int, Field(ge=2, le=MOST_AT_ONCE)]
Seed = Annotated[int, Field(ge=0, le=LARGEST_SEED)]
Factor = Annotated[float, Field(gt=0, le=LARGEST, allow_inf_nan=False)]
Rate = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Weight = Annotated[float, Field(ge=0, le=LARGEST, allow_inf_nan=False)]
SignedWeight = Annotated[float, Field(ge=-LARGEST, le=LARGEST, allow_inf_nan=False)]


class Section(BaseModel):
    """A part of the tree: immutable, and closed to unknown keys."""

    # Frozen, so that one section can be the default of many trees.
    model_config = ConfigDict(extra="forbid", frozen=True)
