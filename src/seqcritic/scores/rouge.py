"""ROUGE-L of every prefix, for a whole batch at once (Lin 2004).

ROUGE-L is the F-measure of precision LCS / i and recall LCS / |Y|, equally weighted: 2 · LCS / (i + |Y|), with LCS the
longest common subsequence. One row of its table a token of the prediction: L_i[j] is the LCS of its first i tokens and
the first j of the reference. Within a row the only chain is L_i[j] = max(L_i[j], L_i[j-1]), a running maximum, so the
only loop is over the steps of the longest prediction.

Shapes: B examples, T prediction tokens, U reference tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqcritic.scores.bleu import hold_last, token_matches


def prefix_subsequences(matches: Tensor) -> Tensor:
    """Return [B, T + 1] longest common subsequences of all prefixes and the whole reference from matches [B, T, U]."""
    num_examples, num_steps, width = matches.shape
    # Small exact integers: 16 bits move half the memory of 32.
    matches = matches.to(torch.int16)
    row = torch.zeros((num_examples, width + 1), dtype=torch.int16, device=matches.device)
    lengths = [row[:, -1]]
    for step in range(num_steps):
        candidate = torch.maximum(row[:, 1:], row[:, :-1] + matches[:, step])
        row = torch.cat([row[:, :1], torch.cummax(candidate, dim=1).values], dim=1)
        lengths.append(row[:, -1])
    return torch.stack(lengths, dim=1)


class RougeLScore:
    """R(Ŷ) = |Y| · ROUGE-L; `unknown` tokens never match.

    Times |Y|, a perfect prediction scores |Y| as with BLEU and the edit distance: one reward a token on average, so
    that learning rates and penalties carry over.
    """

    def __init__(self, unknown: int | None) -> None:
        self.unknown = unknown

    def prefix_scores(
        self, predictions: Tensor, prediction_lengths: Tensor, references: Tensor, reference_lengths: Tensor
    ) -> Tensor:
        """Return R [B, T + 1] of the prefixes, held constant after each prediction's last token."""
        common = prefix_subsequences(token_matches(predictions, references, reference_lengths, self.unknown))
        steps = torch.arange(common.shape[1], device=common.device)
        # Nothing against nothing has no tokens to divide by: its LCS of 0 makes it 0.
        tokens = (steps + reference_lengths[:, None]).clamp(min=1)
        scores = reference_lengths[:, None] * 2 * common.to(torch.float64) / tokens
        return hold_last(scores, prediction_lengths).to(torch.get_default_dtype())
