"""The training beam of learning as search optimisation: a beam search that must not lose the reference.

At each step the K - 1 best incorrect expansions of the beam are ranked by log-probability. The reference's prefix must
beat the last of them, which then stands K-th (at its last token: the first), by a margin; if so, it and they live on.
If not, that is a violation: the rival is noted, and the search starts again from the reference's prefix alone. An
incorrect hypothesis that has ended keeps its position and its score.

Shapes: B examples, K positions of the beam (0 is the reference), T steps, V vocabulary, N violations.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from seqcritic.contracts.actor import Actor, Memory
from seqcritic.errors import NonFiniteError
from seqcritic.tensors import rows as all_rows


class Violations(NamedTuple):
    """Where the reference fell behind, in the order of the steps."""

    rows: Tensor  # [N], the example
    starts: Tensor  # [N], the first position after the last restart: all before is the reference's
    positions: Tensor  # [N], the last position
    tokens: Tensor  # [N, T], the rival, padding after `positions`


@torch.no_grad()
def find_violations(
    actor: Actor, memory: Memory, references: Tensor, mask: Tensor, width: int, margin: float
) -> Violations:
    """Search for the references [B, T] with a beam of `width` hypotheses, at least 2, and return all violations."""
    num_examples, num_steps = references.shape
    examples = torch.arange(num_examples, device=references.device)
    first_rows = examples[:, None] * width  # of each example in [B * K]
    memory = all_rows.repeat(memory, width)
    state = actor.start(memory)
    scores = torch.full((num_examples, width), -torch.inf, dtype=torch.float64, device=references.device)
    scores[:, 0] = 0
    padding = actor.special.padding
    tokens = torch.full((num_examples, width, num_steps), padding, dtype=torch.int64, device=references.device)
    starts = torch.zeros_like(examples)
    last_positions = mask.sum(dim=1) - 1
    found: list[Violations] = []
    for step in range(num_steps):
        steps = torch.log_softmax(actor.logits(state), dim=1).double().view(num_examples, width, -1)
        if step:
            steps = _close_ended(steps, actor.special.is_over(tokens[:, :, step - 1]), padding)
        reference_token = references[:, step]
        sums = scores[:, :, None] + steps
        reference_score = sums[examples, 0, reference_token]
        # Its own rival the reference cannot be.
        sums[examples, 0, reference_token] = -torch.inf
        best, at = sums.flatten(1).topk(width - 1, dim=1)  # [B, K - 1]
        if bool(torch.isnan(reference_score).any()):
            raise NonFiniteError("a log-probability of the searching actor is not a number")
        parents, chosen = at // steps.shape[2], at % steps.shape[2]

        # At its last token it must be first of all; before that it is enough not to fall off the beam.
        rank = torch.where(last_positions == step, 0, width - 2)
        rival_score = best[examples, rank]
        violated = (step <= last_positions) & (rival_score > -torch.inf) & (reference_score < rival_score + margin)
        rivals = tokens[examples, parents[examples, rank]]
        rivals[:, step] = chosen[examples, rank]
        at_once = violated.nonzero()[:, 0]
        found.append(Violations(at_once, starts[at_once], torch.full_like(at_once, step), rivals[at_once]))
        starts = torch.where(violated, step + 1, starts)

        parents = torch.cat([torch.zeros_like(parents[:, :1]), parents], dim=1)
        chosen = torch.cat([reference_token[:, None], chosen], dim=1)
        alone = violated[:, None] & (torch.arange(width, device=references.device) > 0)
        scores = torch.cat([reference_score[:, None], best], dim=1).masked_fill(alone, -torch.inf)
        tokens = tokens[examples[:, None], parents]
        tokens[:, :, step] = chosen
        if step + 1 < num_steps:
            state = actor.step(memory, all_rows.select(state, (first_rows + parents).flatten()), chosen.flatten())
    return Violations(*(torch.cat(fields) for fields in zip(*found, strict=True)))


def _close_ended(steps: Tensor, ended: Tensor, padding: int) -> Tensor:
    """Return log-probabilities [B, K, V] by which what has ended [B, K] goes on with padding, at no cost."""
    closed = torch.full_like(steps[0, 0], -torch.inf)
    closed[padding] = 0
    return torch.where(ended[:, :, None], closed, steps)
