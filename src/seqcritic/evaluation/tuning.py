"""Choosing the length reward ρ of a beam search on the validation set.

Pruning does not depend on ρ, so one search that runs to its maximum length finds the hypotheses of every ρ; each
candidate then only ranks them anew. The grid grows while its best value lies on its edge.
"""

from __future__ import annotations

from seqcritic.contracts.task import Task
from seqcritic.decoding.search import Search, find_several
from seqcritic.errors import UserError
from seqcritic.evaluation.evaluate import score_predictions
from seqcritic.evaluation.run import load_for_evaluation
from seqcritic.progress import Bar, set_up_logging
from seqcritic.settings.io import Overrides
from seqcritic.settings.tree import DeviceName
from seqcritic.training.model import Model, Places

STEP = 0.2
FIRST_GRID = 11  # 0 to 2
LARGEST = 50  # the last step, ρ = 10
ALL = 1_000_000  # hypotheses: none is dropped, so no search stops early


def tune_length_reward(
    place: Places | Model,
    width: int,
    overrides: Overrides = (),
    device: DeviceName = "auto",
    refill: bool = False,
) -> tuple[float, dict[float, float]]:
    """Return the best ρ of a run or model on the validation set, and the score of every ρ tried."""
    set_up_logging()
    if width == 1:
        raise UserError("beam: greedy search has no length reward to tune; give a width of at least 2")
    model, task = load_for_evaluation(place, overrides, device)
    return tune_model(model, task, width, refill)


def tune_model(
    model: Model, task: Task, width: int, refill: bool = False, label: str = ""
) -> tuple[float, dict[float, float]]:
    """Return the best ρ of a model on the validation set of a task, and the score of every ρ tried.

    `label` stands before the title of the bar.
    """
    metric = model.score
    valid = task.evaluation_set("valid")
    search = Search(width, refill=refill)
    with Bar(f"{label}{search.describe()} on valid", len(valid), "sentences") as bar, model.predicting(search):
        found = [
            hypotheses
            for batch in bar.over(valid.batches, len)
            for hypotheses in find_several(model.actor, batch.sources, batch.source_mask, search, ALL)
        ]

    def score(rho: float) -> float:
        best = [
            # As beam search ranks them: what met its maximum length comes after all that ended, but not with refill.
            max(hypotheses, key=lambda each: (refill or each.finished, each.log_probability + rho * len(each.tokens)))
            for hypotheses in found
        ]
        return score_predictions([task.codec.decode(each.tokens) for each in best], valid, metric).score

    sign = 1 if metric.higher_is_better else -1
    scores: dict[float, float] = {}
    while True:
        index = len(scores)
        rho = round(STEP * index, 6)  # 0.2 · 3 would be 0.6000000000000001
        scores[rho] = score(rho)
        # Of equals the smallest ρ: where the edge of the grid is no better, it stops growing.
        best = max(scores, key=lambda value: sign * scores[value])
        if index >= LARGEST or (index + 1 >= FIRST_GRID and best != rho):
            return best, scores
