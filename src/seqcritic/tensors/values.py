"""Values of tokens: one for every token of the vocabulary, or one for each of some columns and one for all others.

With 30,000 tokens a critic that values each of them computes mostly what no sample ever tells apart. It may answer
instead for C tokens, the columns, and give all others one value, the rest. Everything that is made of values is exact
for that form too: it is what the expansion to all V tokens would give, without its cost. With no column at all every
token has the same value: that of the state, V(Ŷ_1..t-1).

Shapes: B sequences, T tokens, N unmasked tokens, V vocabulary, C columns.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from seqcritic.tensors.packed import Packed


class Columns(NamedTuple):
    """The tokens that have a value of their own."""

    ids: Tensor  # [C], rising; none: all tokens share one value
    num_tokens: int  # V

    @property
    def num_others(self) -> int:
        """V − C, how many tokens share the value of the rest."""
        return self.num_tokens - len(self.ids)

    def columns_of(self, tokens: Tensor) -> Tensor:
        """The column of each token, of any shape; C, that of the rest, for a token without a column."""
        # The rest is then column 0, and there is no id to compare with.
        if not len(self.ids):
            return torch.zeros_like(tokens)
        # A token above the last id is searched for behind it; clamped, it is compared with an id it does not equal.
        found = torch.searchsorted(self.ids, tokens.contiguous()).clamp(max=len(self.ids) - 1)
        return torch.where(self.ids[found] == tokens, found, len(self.ids))

    def expand(self, rows: Tensor) -> Tensor:
        """Values [N, V] of all tokens from those [N, C + 1] of columns and rest."""
        # All tokens have the rest's value first, then those with a column get their own.
        return rows[:, -1:].repeat(1, self.num_tokens).index_copy(1, self.ids, rows[:, :-1])


class Values(NamedTuple):
    """Values at the unmasked tokens of a batch."""

    packed: Packed  # [N, V]; with columns [N, C + 1], the last being the rest: one product makes both
    columns: Columns | None = None

    @staticmethod
    def of_rows(rows: Tensor, columns: Columns | None = None) -> Values:
        """Values of B sequences at one step, from [B, V] or [B, C + 1]."""
        return Values(as_packed(rows), columns)

    @staticmethod
    def of_states(packed: Packed, num_tokens: int) -> Values:
        """Values of states [N, 1], which each of V tokens has."""
        nothing = torch.zeros(0, dtype=torch.int64, device=packed.rows.device)
        return Values(packed, Columns(nothing, num_tokens))

    @property
    def num_tokens(self) -> int:
        """V."""
        return self.packed.rows.shape[1] if self.columns is None else self.columns.num_tokens

    def detach(self) -> Values:
        """The same values as constants."""
        return self._replace(packed=self.packed.detach())

    def columns_of(self, tokens: Tensor) -> Tensor:
        """Where the rows have the value of each token, of any shape."""
        return tokens if self.columns is None else self.columns.columns_of(tokens)

    def of_tokens(self, tokens: Tensor) -> Tensor:
        """The values [B, T] of tokens [B, T], 0 where nothing counts."""
        positions = self.columns_of(self.packed.take(tokens))  # [N], of [B, T]
        return self.packed.spread(self.packed.rows.gather(1, positions[:, None])[:, 0])

    def expanded(self) -> Packed:
        """The values [N, V] of all tokens."""
        if self.columns is None:
            return self.packed
        return self.packed._replace(rows=self.columns.expand(self.packed.rows))

    def padded(self) -> Tensor:
        """The values [B, T, V] of all tokens, zeros where nothing counts."""
        return self.expanded().padded()

    def mean(self) -> Tensor:
        """The mean over all tokens of all rows."""
        rows = self.packed.rows
        if self.columns is None:
            return rows.mean()
        rest = rows[:, -1]
        # Σ_a Q(a) / V = rest + Σ_c (Q(c) − rest) / V
        return (rest + (rows - rest[:, None]).sum(dim=1) / self.num_tokens).mean()

    def range(self) -> tuple[Tensor, Tensor]:
        """The smallest and the largest value of any token."""
        smallest, largest = torch.aminmax(self._of_some_token())
        return smallest, largest

    def best(self, preferences: Packed) -> Tensor:
        """The token [N] of the highest value, in the order of the rows.

        Where the rest is highest, all tokens without a column are equally good: the one with the highest of
        preferences [N, V] is taken.
        """
        found = self._of_some_token().argmax(dim=1)
        if self.columns is None:
            return found
        ids = self.columns.ids
        others = (found == len(ids)).nonzero()[:, 0]  # rows where the rest is highest
        # Of these rows the clamped entry is wrong, and overwritten below.
        best = ids[found.clamp(max=len(ids) - 1)]
        if len(others):
            # Tokens with a column are worth less than the rest here, however much they are preferred.
            preferred = self.packed.align(preferences)[others].index_fill(1, ids, -torch.inf)
            best[others] = preferred.argmax(dim=1)
        return best

    def _of_some_token(self) -> Tensor:
        """The rows; without the column of the rest if every token has a column of its own."""
        rows = self.packed.rows
        # With C = V no token has the value of the rest, and it must win neither a maximum nor a minimum.
        return rows[:, :-1] if self.columns is not None and self.columns.num_others == 0 else rows


def as_packed(rows: Tensor) -> Packed:
    """Something of B sequences at one step, [B, F], packed in their order."""
    return Packed(rows, torch.arange(len(rows), device=rows.device), (len(rows), 1))
