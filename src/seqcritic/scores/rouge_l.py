"""ROUGE-L (Lin 2004): rewards of every prefix, for a whole batch at once; a corpus by rouge-score.

ROUGE-L counts the tokens of the longest common subsequence: 2 · LCS / (i + |Y|) of a prefix of i tokens. One row of its
table a token of the prediction: L_i[j] is the LCS of its first i tokens and the first j of the reference. Within a row
the only chain is L_i[j] = max(L_i[j], L_i[j-1]), a running maximum, so the only loop is over the steps of the longest
prediction.

Shapes: B examples, T prediction tokens, U reference tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqcritic.contracts.registry import register_score
from seqcritic.contracts.score import Scorable, hold_last
from seqcritic.scores.shared.matching import equal_positions, token_matches, tokens_of_all
from seqcritic.scores.shared.rouge import RougeScore, rouge_scores


def subsequence_table(matches: Tensor) -> Tensor:
    """Return L [B, T + 1, U + 1] of all prefixes of predictions and of references from matches [B, T, U]."""
    num_examples, num_steps, width = matches.shape
    # Small exact integers: 16 bits move half the memory of 32.
    matches = matches.to(torch.int16)
    row = torch.zeros((num_examples, width + 1), dtype=torch.int16, device=matches.device)
    rows = [row]
    for step in range(num_steps):
        candidate = torch.maximum(row[:, 1:], row[:, :-1] + matches[:, step])
        # Column 0, nothing of the reference, stays 0.
        row = torch.cat([row[:, :1], torch.cummax(candidate, dim=1).values], dim=1)
        rows.append(row)
    return torch.stack(rows, dim=1)


@register_score("rouge-l")
class RougeLScore(RougeScore):
    """R(Ŷ) = |Y| · ROUGE-L."""

    name = "ROUGE-L"
    library_name = "rougeL"

    def prefix_scores(self, batch: Scorable) -> Tensor:
        """Return R [B, T + 1] of the prefixes, held constant after each prediction's last token."""
        steps = torch.arange(batch.predictions.shape[1] + 1, device=batch.predictions.device)
        scale = batch.reference_lengths[:, :1]
        scores = []
        for references, lengths in zip(batch.references.unbind(1), batch.reference_lengths.unbind(1), strict=True):
            matches = token_matches(batch.predictions, references, lengths, self.unknown)
            # The last column is that of the whole reference, however long: padding never matches and so adds nothing.
            scores.append(rouge_scores(subsequence_table(matches)[:, :, -1], steps, lengths[:, None], scale))
        return hold_last(torch.stack(scores).amax(dim=0), batch.lengths)

    def lookahead(self, batch: Scorable) -> Tensor:
        """Return R [B, T, R · U + 1] of the prefixes with one token more, made as long as the shortest reference."""
        common = tokens_of_all(batch, lambda references, own: self._extended(batch.predictions, references, own))
        steps = torch.arange(1, batch.predictions.shape[1] + 1, device=common.device)[:, None]
        targets = batch.reference_lengths[:, :, None, None]
        lengths = torch.maximum(steps, targets.amin(dim=1, keepdim=True))
        return rouge_scores(common, lengths, targets, targets[:, :1]).amax(dim=1)

    def _extended(self, predictions: Tensor, references: Tensor, reference_lengths: Tensor) -> Tensor:
        """Return the LCS [B, T, U + 1] of the prefixes with one token more.

        The token leaves the LCS as it is, or, matched with an equal y_j, makes it L[j-1] + 1.
        """
        matches = token_matches(predictions, references, reference_lengths, self.unknown)
        rows = subsequence_table(matches[:, :-1])  # [B, T, U + 1]
        alike = equal_positions(references[:, None], reference_lengths[:, None], self.unknown)[:, 0]  # [B, U, U]
        positions = torch.arange(references.shape[1], device=references.device)
        last = (
            (alike * positions).amax(dim=2)[:, None].expand(-1, rows.shape[1], -1)
        )  # L grows with j: the best of equals
        # L[j-1] + 1, since entry j of a row has j tokens of the reference; 0 of padding and of unknown tokens.
        matched = (rows.gather(2, last) + 1) * alike.any(dim=2)[:, None]  # [B, T, U]
        # The last entry is of a token that the reference lacks: it leaves the LCS as it is.
        return torch.maximum(rows[:, :, -1:], torch.nn.functional.pad(matched, (0, 1)))
