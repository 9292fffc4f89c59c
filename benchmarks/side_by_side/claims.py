"""A claim with what was measured for it: one row of the table and one object of the JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from side_by_side.figures import Ratio


@dataclass(frozen=True)
class Row:
    """What is claimed, what was measured, what is aimed at. A row without a target is there for information."""

    claim: str
    measured: float
    low: float  # quartiles over the rounds
    high: float
    unit: str = "×"
    target: float | None = None
    sense: Literal["at least", "at most"] = "at least"
    threads: int = 1
    clock: Literal["cpu", "wall", "none"] = "cpu"
    details: dict[str, Any] = field(default_factory=dict)  # what the figure was made from
    notes: tuple[str, ...] = ()

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        if self.target is None:
            return None
        return self.measured >= self.target if self.sense == "at least" else self.measured <= self.target

    def to_dict(self) -> dict[str, Any]:
        """Return the row for JSON."""
        return asdict(self) | {"met": self.met}

    @staticmethod
    def from_dict(tree: dict[str, Any]) -> Row:
        """Return the row that `to_dict` gave."""
        known = {name: value for name, value in tree.items() if name != "met"}
        return Row(**(known | {"notes": tuple(known.get("notes", ()))}))


def row(claim: str, ratio: Ratio, **rest: Any) -> Row:
    """Return a row whose figure is a measured ratio."""
    return Row(claim, ratio.value, ratio.low, ratio.high, **rest)
