"""The mean of several actors of a run as its result: `training.average`."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from seqcritic.training.checkpoint import prefixed, under

Weights = dict[str, Tensor]


class KeptActors:
    """The weights of up to `size` evaluated actors of a phase, the best or the last, with their scores."""

    def __init__(self, size: int, best: bool, higher_is_better: bool) -> None:
        self.size = size
        self._best = best
        self._sign = 1 if higher_is_better else -1
        # In the order of their evaluations: the first is the oldest.
        self._kept: list[tuple[float, Weights]] = []

    def __len__(self) -> int:
        return len(self._kept)

    def add(self, score: float, weights: Weights) -> None:
        """Add an actor; where there are too many, drop the worst or the oldest."""
        self._kept.append((score, weights))
        if len(self._kept) > self.size:
            scores = [self._sign * score for score, _ in self._kept]
            # Of equals the oldest goes.
            del self._kept[scores.index(min(scores)) if self._best else 0]

    def clear(self) -> None:
        """Let all go: another phase begins."""
        self._kept.clear()

    def mean(self) -> Weights | None:
        """Return the mean of the weights; None where there are not at least two actors."""
        # One alone is of the only evaluation of its phase, and so is the best actor already.
        if len(self._kept) < 2:
            return None
        names = self._kept[0][1]
        return {name: _mean([weights[name] for _, weights in self._kept]) for name in names}

    def tensors(self) -> dict[str, Tensor]:
        """Return all of it as named tensors."""
        # float64, as a Python float: which is the worst must come out alike after a resume.
        found = {"scores": torch.tensor([score for score, _ in self._kept], dtype=torch.float64)}
        for place, (_, weights) in enumerate(self._kept):
            found |= prefixed(str(place), weights)
        return found

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore what `tensors` returned."""
        scores = tensors["scores"].tolist()
        self._kept = [(score, under(str(place), tensors)) for place, score in enumerate(scores)]


def _mean(tensors: list[Tensor]) -> Tensor:
    """Return the mean of weights; of counts, which have none, the last."""
    if not tensors[0].is_floating_point():
        return tensors[-1]
    return torch.stack(tensors).mean(dim=0)
