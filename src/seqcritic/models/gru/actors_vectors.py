"""The actor's own vectors of tokens, by which a critic may read and value them without a matrix of its own.

    e(y) = E_y / ‖E_y‖,   Q̂(a) = e(a) · P x + b_a

E [V, D] is what the actor offers by `token_vectors`, held fixed: no gradient reaches it, it is no weight of the critic,
and a target copy holds the same one. The critic learns P [D, F] and one number for each token: with 250,000 tokens Adam
would otherwise keep gigabytes for rows that hardly a batch touches. Vectors are made one long, since models differ by
orders of magnitude in how long theirs are. Where the actor is trained its vectors move, and the critic learns on.

Shapes: V vocabulary, D their size, F features, N positions.
"""

from __future__ import annotations

from typing import TypeAlias

from torch import Tensor, nn
from torch.nn.functional import embedding as look_up
from torch.nn.functional import normalize

from seqcritic.contracts.actor import Actor
from seqcritic.contracts.critic import Held
from seqcritic.errors import UserError


class ActorsVectors(nn.Module):
    """In place of an embedding: looks up the actor's vectors, one long, without a weight of its own."""

    def __init__(self, actor: Actor) -> None:
        super().__init__()
        vectors = actor.token_vectors()
        if vectors is None:
            raise UserError(
                f"critic.embeddings=actor: {type(actor).__name__} offers no vectors of its tokens (by its "
                "token_vectors); set critic.embeddings=own"
            )
        # Not as a submodule: the actor's weights would become the critic's, and a target copy would copy them.
        self._held = Held(actor)
        self.num_embeddings, self.embedding_dim = vectors.shape

    @property
    def _vectors(self) -> Tensor:
        # Asked for anew: moving the actor to a device replaces its tensors.
        vectors: Tensor | None = self._held.network.token_vectors()
        assert vectors is not None, "it was asked for when the critic was built"
        return vectors.detach()

    @property
    def weight(self) -> Tensor:
        """The vectors of all tokens [V, D]."""
        return normalize(self._vectors, dim=1)

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the vectors [..., D] of tokens of any shape, without work for others."""
        # Looked up first: what is made one long is a row a token, not the table.
        return normalize(look_up(tokens, self._vectors), dim=-1)


TokenEmbedding: TypeAlias = nn.Embedding | ActorsVectors
