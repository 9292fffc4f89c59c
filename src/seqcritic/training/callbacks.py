"""What a user's own code may do while a run trains: look on, log elsewhere, or stop it.

    class StopWhenGood(Callback):
        def on_evaluation(self, run, scores):
            if scores["valid_score"] < 10:
                run.stop("good enough")

    train(settings, "runs/mine", callbacks=[StopWhenGood()])

Every event is told to the first process only. What a callback keeps for itself is not part of a checkpoint: after a
resume it is told of what follows, from `on_start` on.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

# For the types alone: run.py imports this module.
if TYPE_CHECKING:
    from seqcritic.training.run import Run


class Callback:
    """Does nothing at every event; a subclass overrides those it cares for."""

    def on_start(self, run: Run) -> None:
        """The run begins, or goes on from a checkpoint."""

    def on_phase(self, run: Run, phase: str) -> None:
        """A phase, `actor`, `critic` or `train`, begins or goes on."""

    def on_update(self, run: Run, measurements: Mapping[str, float]) -> None:
        """An update has been made; what it measured."""

    def on_evaluation(self, run: Run, scores: Mapping[str, float]) -> None:
        """The networks have been evaluated: `valid_score` and `best_score`, of a critic what it explains."""

    def on_record(self, run: Run, record: Mapping[str, Any]) -> None:
        """A line of metrics.jsonl has been written: means over some updates, or an evaluation."""

    def on_checkpoint(self, run: Run, folder: Path) -> None:
        """A checkpoint has been written."""

    def on_end(self, run: Run) -> None:
        """The run is finished and its model exported."""

    def on_error(self, run: Run, error: BaseException) -> None:
        """The run ends by an error, an interruption by a signal among them; it is raised afterwards."""
