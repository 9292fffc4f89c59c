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

from seqcritic.scores.bleu import equal_places, hold_last, token_matches
from seqcritic.scores.score import Texts


def subsequence_table(matches: Tensor) -> Tensor:
    """Return L [B, T + 1, U + 1] of all prefixes of predictions and of references from matches [B, T, U]."""
    num_examples, num_steps, width = matches.shape
    # Small exact integers: 16 bits move half the memory of 32.
    matches = matches.to(torch.int16)
    row = torch.zeros((num_examples, width + 1), dtype=torch.int16, device=matches.device)
    rows = [row]
    for step in range(num_steps):
        candidate = torch.maximum(row[:, 1:], row[:, :-1] + matches[:, step])
        row = torch.cat([row[:, :1], torch.cummax(candidate, dim=1).values], dim=1)
        rows.append(row)
    return torch.stack(rows, dim=1)


def rouge_scores(common: Tensor, lengths: Tensor, reference_lengths: Tensor) -> Tensor:
    """Return |Y| · ROUGE-L from the LCS of predictions of so many tokens and their references."""
    # Nothing against nothing has no tokens to divide by: its LCS of 0 makes it 0.
    tokens = (lengths + reference_lengths).clamp(min=1)
    return (reference_lengths * 2 * common.to(torch.float64) / tokens).to(torch.get_default_dtype())


class RougeLScore:
    """R(Ŷ) = |Y| · ROUGE-L; `unknown` tokens never match.

    Times |Y|, a perfect prediction scores |Y| as with BLEU and the edit distance: one reward a token on average, so
    that learning rates and penalties carry over.
    """

    def __init__(self, unknown: int | None) -> None:
        self.unknown = unknown

    def prefix_scores(
        self,
        predictions: Tensor,
        prediction_lengths: Tensor,
        references: Tensor,
        reference_lengths: Tensor,
        reference_texts: Texts | None = None,
    ) -> Tensor:
        """Return R [B, T + 1] of the prefixes, held constant after each prediction's last token."""
        matches = token_matches(predictions, references, reference_lengths, self.unknown)
        common = subsequence_table(matches)[:, :, -1]
        steps = torch.arange(common.shape[1], device=common.device)
        return hold_last(rouge_scores(common, steps, reference_lengths[:, None]), prediction_lengths)

    def outlooks(self, predictions: Tensor, references: Tensor, reference_lengths: Tensor) -> Tensor:
        """Return R [B, T, U + 1] of the prefixes with one token more, made as long as the reference.

        The token leaves the LCS as it is, or, matched with an equal y_j, makes it L[j-1] + 1.
        """
        matches = token_matches(predictions, references, reference_lengths, self.unknown)
        rows = subsequence_table(matches[:, :-1])  # [B, T, U + 1]
        alike = equal_places(references, reference_lengths, self.unknown)
        places = torch.arange(references.shape[1], device=references.device)
        last = (alike * places).amax(dim=2)[:, None].expand(-1, rows.shape[1], -1)  # L grows with j: the best of equals
        matched = (rows.gather(2, last) + 1) * alike.any(dim=2)[:, None]  # [B, T, U]
        common = torch.maximum(rows[:, :, -1:], torch.nn.functional.pad(matched, (0, 1)))
        steps = torch.arange(1, predictions.shape[1] + 1, device=common.device)[:, None]
        targets = reference_lengths[:, None, None]
        return rouge_scores(common, torch.maximum(steps, targets), targets)
