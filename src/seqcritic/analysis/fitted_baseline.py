"""A linear baseline fitted by least squares: b_t = w · s_t + c nearest to the return, on samples of their own.

A run with a critic has no linear baseline. The one that REINFORCE would have learnt in the end is the least-squares
fit of the return on the actor's states. Its samples are not used again: a baseline that has seen the sample it is
subtracted from would bias the estimate.

Shapes: N tokens, H actor state.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from seqcritic.analysis.estimators import Subject, sample_examples
from seqcritic.contracts.batch import Batch
from seqcritic.methods.losses import returns_to_go
from seqcritic.models.baseline import LinearBaseline

TOKENS_PER_WEIGHT = 50


@torch.no_grad()
def fit_baseline(subject: Subject, batches: Sequence[Batch], generator: torch.Generator) -> LinearBaseline:
    """Return the best linear baseline for samples of these examples."""
    actor = subject.actor
    inputs, targets, num_tokens, num_wanted = [], [], 0, 1
    while num_tokens < num_wanted:
        for batch in batches:
            memory = actor.encode(batch.sources, batch.source_mask)
            rollout = sample_examples(subject, batch, memory, generator)
            mask = rollout.sample.mask
            inputs.append(rollout.sample.states[mask])
            targets.append(returns_to_go(rollout.rewards, mask)[mask])
            num_tokens += len(targets[-1])
            num_wanted = TOKENS_PER_WEIGHT * (inputs[-1].shape[1] + 1)
    states_NH, returns_N = torch.cat(inputs).cpu().double(), torch.cat(targets).cpu().double()
    design = torch.cat([states_NH, torch.ones_like(states_NH[:, :1])], dim=1)
    solution = torch.linalg.lstsq(design, returns_N[:, None], driver="gelsd").solution[:, 0]
    baseline = LinearBaseline(states_NH.shape[1]).to(inputs[0].dtype)
    baseline.linear.weight[0] = solution[:-1]
    baseline.linear.bias[0] = solution[-1]
    return baseline.to(actor.device)
