"""The rectangle that a chart is drawn in."""

from dataclasses import dataclass

from seqcritic.report.scales import Range


@dataclass(frozen=True, slots=True)
class Frame:
    """A rectangle, and the range of values that its height stands for; what its width means is each chart's own."""

    left: float
    top: float
    right: float
    bottom: float
    values: Range

    def y(self, value: float) -> float:
        """Return the height at which a value is drawn."""
        return self.bottom - self.values.fraction(value) * (self.bottom - self.top)
