"""What samples alone tell of a critic: the mean return, and the fraction of its variance that the critic explains.

    explained = 1 − Var(G_t − Q̂(ŷ_t)) / Var(G_t),   for a value function 1 − Var(G_t − V_t) / Var(G_t)

over all tokens of a draw, one sample for each example. Figures are means over draws; their standard errors are those of
the draws, the examples being fixed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from seqcritic.analysis.estimators import Subject, sample_examples
from seqcritic.analysis.state_values import ask
from seqcritic.contracts.batch import Batch
from seqcritic.contracts.networks import Networks
from seqcritic.methods.losses import returns_to_go
from seqcritic.methods.policy_evaluation import CriticTraining, fraction_explained
from seqcritic.report.diagnosis import Figure
from seqcritic.settings.methods import MethodSettings

NUM_DRAWS = 64
RETURN, EXPLAINED = "sampled_return", "explained_variance"


@torch.no_grad()
def sample_means(
    subject: Subject, batches: Sequence[Batch], settings: MethodSettings, generator: torch.Generator
) -> dict[str, Figure]:
    """Return both figures by name, from samples for this alone."""
    total = sum(len(batch) for batch in batches)
    draws: dict[str, list[float]] = {RETURN: [], EXPLAINED: []}
    for _ in range(NUM_DRAWS):
        found = [(_measure(subject, batch, settings, generator), len(batch)) for batch in batches]
        for name, values in draws.items():
            # By examples: batches may have different numbers of them.
            values.append(sum(own[name].item() * count for own, count in found) / total)
    return {name: _mean(values) for name, values in draws.items()}


def _measure(
    subject: Subject, batch: Batch, settings: MethodSettings, generator: torch.Generator
) -> Mapping[str, Tensor]:
    """Return both figures of one sample for each example of a batch."""
    actor = subject.actor
    if subject.state_values is not None:
        rollout = sample_examples(subject, batch, actor.encode(batch.sources, batch.source_mask), generator)
        mask, returns = rollout.sample.mask, returns_to_go(rollout.rewards, rollout.sample.mask)
        predicted = ask(subject.state_values, rollout.sample.tokens, mask, batch).to(returns.dtype)
        # Over unmasked tokens alone; of a critic `CriticTraining` measures the same.
        return rollout.measurements(batch) | {EXPLAINED: fraction_explained(predicted[mask], returns[mask])}
    # Its targets are not looked at, so that the critic itself may stand in for its target copy.
    critic = subject.token_critic
    networks = Networks(actor, critic=critic, target_critic=critic)
    return CriticTraining(settings, subject.score, subject.shaping)(networks, batch, generator, 0.0).measurements


def _mean(values: Sequence[float]) -> Figure:
    mean = sum(values) / len(values)
    # Of draws that are independent of each other, on the same examples.
    variance = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return Figure(mean, math.sqrt(variance / len(values)))
