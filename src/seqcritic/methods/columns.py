"""Which tokens a critic values one by one, where it gives all others one value (tensors/values.py).

What is learnt from must have a value of its own: the tokens of the samples, whose returns are the critic's targets, and
those of the references, which are the good ones. The actor's likeliest tokens come next: they have most weight in
Σ_a p(a) Q̂(a). One choice serves a whole batch, so that the critic's output is one dense product.

Shapes: B examples, M samples each, T tokens, U reference tokens, N counted tokens, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqcritic.contracts.actor import SpecialTokens
from seqcritic.contracts.critic import Critic
from seqcritic.data.batch import Batch
from seqcritic.tensors.values import Columns


def choose_columns(
    critic: Critic, special: SpecialTokens, batch: Batch, tokens: Tensor | None, probabilities: Tensor
) -> Columns | None:
    """The columns for a batch and its samples; None for a critic that values all tokens.

    `tokens`: those of the samples [N], None where there are none yet; `probabilities` [N, V]: the actor's. They are at
    least `critic.num_columns`, and more where references and samples alone have more.
    """
    if critic.num_columns is None:
        return None
    num_tokens = probabilities.shape[1]
    chosen = torch.zeros(num_tokens, dtype=torch.bool, device=probabilities.device)
    chosen[list(special.end)] = True
    chosen[batch.references[batch.reference_mask]] = True
    if tokens is not None:
        chosen[tokens] = True
    num_more = min(critic.num_columns, num_tokens) - int(chosen.sum())
    if num_more > 0:
        likeliest = probabilities.sum(dim=0).masked_fill(chosen, -1.0).topk(num_more).indices
        chosen[likeliest] = True
    return Columns(chosen.nonzero()[:, 0], num_tokens)
