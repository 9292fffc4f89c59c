"""What a user's own code may do while a run trains: look on, log elsewhere, or stop it.

    class StopWhenGood(Callback):
        def on_evaluation(self, trainer, scores):
            if scores["valid_score"] < 10:
                trainer.stop("good enough")

    train(settings, "runs/mine", callbacks=[StopWhenGood()])

Every event is told to the first process only. What a callback keeps for itself is not part of a checkpoint: after a
resume it is told of what follows, from `on_start` on.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seqcritic.training.trainer import Trainer


class Callback:
    """Does nothing at every event; a subclass overrides those it cares for."""

    def on_start(self, trainer: Trainer) -> None:
        """The run begins, or goes on from a checkpoint."""

    def on_phase(self, trainer: Trainer, phase: str) -> None:
        """A phase, `actor`, `critic` or `train`, begins or goes on."""

    def on_update(self, trainer: Trainer, measurements: Mapping[str, float]) -> None:
        """An update has been made; what it measured."""

    def on_evaluation(self, trainer: Trainer, scores: Mapping[str, float]) -> None:
        """The networks have been judged: `valid_score` and `best_score`, of a critic what it explains."""

    def on_checkpoint(self, trainer: Trainer, folder: Path) -> None:
        """A checkpoint has been written."""

    def on_end(self, trainer: Trainer) -> None:
        """The run is finished and its model exported."""

    def on_error(self, trainer: Trainer, error: BaseException) -> None:
        """The run ends by an error, an interruption by a signal among them; it is raised afterwards."""
