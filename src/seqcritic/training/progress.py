"""Where a run stands: all of its state that is not a tensor. It goes into the checkpoint as JSON, exactly."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Progress:
    """Counters, the best score so far, and the sums behind the next line of metrics.jsonl."""

    phase: int = 0  # index into the run's list of phases
    update: int = 0  # updates done in this phase
    total_updates: int = 0
    examples: int = 0  # position in the stream of training examples
    compute: float = 0.0  # in likelihood updates, by the costs of the recipe
    evaluated_at: int = -1  # update of this phase at which the last evaluation was made
    best_score: float | None = None  # of this phase
    best_update: int = 0
    stale_evaluations: int = 0  # evaluations since the best one
    curve: list[list[float]] = field(default_factory=list)  # of this phase: update and validation score
    td_errors: list[float] = field(default_factory=list)  # mean of each interval between evaluations
    explained_variance: float | None = None  # of held-out returns by the critic, at the last evaluation
    td_sum: float = 0.0
    td_count: int = 0
    sums: dict[str, float] = field(default_factory=dict)
    num_summed: int = 0
    seconds: float = 0.0  # of training, evaluations included
    metrics_bytes: int = 0  # length of metrics.jsonl that belongs to this state
    sharpening: float = 1.0  # what the actor's logits have been multiplied by since its pre-training
    finished: bool = False

    def start_phase(self, phase: int) -> None:
        """Turn to another phase; counts over the whole run go on."""
        fresh = Progress(
            phase=phase,
            total_updates=self.total_updates,
            examples=self.examples,
            compute=self.compute,
            seconds=self.seconds,
            metrics_bytes=self.metrics_bytes,
            sharpening=self.sharpening,
        )
        self.__dict__.update(fresh.__dict__)

    def add(self, measurements: dict[str, float]) -> None:
        """Add one update's measurements to the sums."""
        for name, value in measurements.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
        self.num_summed += 1
        if "td_error" in measurements:
            self.td_sum += measurements["td_error"]
            self.td_count += 1

    def take_means(self) -> dict[str, float]:
        """Return the means since the last call and clear the sums."""
        means = {name: total / self.num_summed for name, total in self.sums.items()}
        self.sums, self.num_summed = {}, 0
        return means

    def close_interval(self) -> None:
        """Append the mean TD error since the last evaluation to the history."""
        if self.td_count:
            self.td_errors.append(self.td_sum / self.td_count)
            self.td_sum, self.td_count = 0.0, 0

    def counts(self) -> dict[str, float]:
        """Return how far the run is, as every record of its metrics says it."""
        return {name: getattr(self, name) for name in ("update", "total_updates", "examples", "compute")}

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain JSON values; Python writes floats so that they read back exactly."""
        return asdict(self)
