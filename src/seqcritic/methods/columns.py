"""Which tokens a critic values one by one, where it gives all others one value (tensors/values.py).

They are the tokens of the batch's references, which alone can be right, and those that the actor finds likeliest before
the first token of each example. One choice serves a whole batch, so that the critic's output is one dense product.

What was sampled has no part in the choice, for two reasons. A baseline or control variate must not know the token it is
subtracted for: if a token had a value of its own *because* it was drawn, reinforce-critic and `method.correction` would
be biased. And the rest has to learn: the returns of sampled tokens without a column are its only targets.

Shapes: B examples, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqcritic.contracts.actor import SpecialTokens
from seqcritic.contracts.batch import Batch
from seqcritic.contracts.critic import Critic
from seqcritic.tensors.values import Columns


def choose_columns(critic: Critic, special: SpecialTokens, batch: Batch, first: Tensor) -> Columns | None:
    """The columns for a batch; None for a critic that values all tokens.

    `first` [B, V]: the actor's probabilities before the first token, of any number of samples an example. There are
    `critic.num_columns` of them, or more where the references alone have more tokens.
    """
    if critic.num_columns is None:
        return None
    num_tokens = first.shape[1]
    chosen = torch.zeros(num_tokens, dtype=torch.bool, device=first.device)
    # `add_known` (lookahead.py) sets the value of an end to 0: of an end without a column, that of the rest.
    chosen[list(special.end)] = True
    lengths = special.lengths(batch.references, batch.reference_mask)
    references, lengths = batch.all_references(lengths, special)
    # Up to the lengths, for padding has no use for a column.
    mask = torch.arange(references.shape[2], device=lengths.device) < lengths[:, :, None]
    # Further references are encoded on the CPU, wherever the batch is.
    chosen[references[mask].to(chosen.device)] = True
    num_more = min(critic.num_columns, num_tokens) - int(chosen.sum())
    if num_more > 0:
        # Summed over the examples, as one choice serves them all; −1 is below any probability, so that none is taken
        # twice.
        likeliest = first.sum(dim=0).masked_fill(chosen, -1.0).topk(num_more).indices
        chosen[likeliest] = True
    # In rising order, in which `columns_of` searches them.
    return Columns(chosen.nonzero()[:, 0], num_tokens)
