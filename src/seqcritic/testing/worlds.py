"""Worlds small enough to enumerate: every sequence that an actor can say to one source, every value exact.

The smallest has three tokens and at most three steps: fifteen sequences. What is an expectation elsewhere is a sum
here, so an estimator can be compared with what it estimates to the last digits of float64.

Shapes: N sequences, M drawn ones, T steps, V tokens, H the actor's view.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from seqcritic.contracts.actor import Actor, Masks
from seqcritic.contracts.batch import Batch
from seqcritic.contracts.score import Score
from seqcritic.data.vocabulary import END
from seqcritic.decoding.sampling import Sample
from seqcritic.methods.rollout import score_tokens
from seqcritic.models.gru.actor import RecurrentActor
from seqcritic.models.gru.settings import GruActorSettings
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.tensors import rows as all_rows
from seqcritic.tensors.packed import Packed

NUM_TOKENS = 3
NUM_STEPS = 3
# Without an initial range weights reach 1 / √width: in so small a network that makes some tokens far likelier.
SIZES = GruActorSettings(embedding=4, hidden=5, attention=3, initial_range=None)


def make_actor(seed: int = 0, dropout: float = 0.0, num_tokens: int = NUM_TOKENS) -> RecurrentActor:
    """Return a small float64 actor with weights large enough for a lopsided policy."""
    generator = torch.Generator().manual_seed(seed)
    return RecurrentActor(SIZES.model_copy(update={"dropout": dropout}), num_tokens, num_tokens, generator).double()


def held_masks(actor: Actor) -> Masks | None:
    """Return the masks that a method draws for the one source from a fresh generator; None without dropout."""
    return actor.draw_masks(1, torch.Generator())


def make_batch(reference: Sequence[int] = (1, 2)) -> Batch:
    """Return one pair of a source and a reference, for actors whose end token is 0."""
    sources, references = torch.tensor([[2, 1, END]]), torch.tensor([[*reference, END]])
    return Batch(sources, torch.ones_like(sources).bool(), references, torch.ones_like(references).bool())


def all_sequences(
    num_tokens: int = NUM_TOKENS, num_steps: int = NUM_STEPS, ends: Sequence[int] = (END,)
) -> list[tuple[int, ...]]:
    """Return every complete sequence: closed by its first end token, or cut after so many steps."""
    # A set: tuples that differ only behind their first end are one sequence.
    sequences = set()
    for tokens in itertools.product(range(num_tokens), repeat=num_steps):
        stop = next((position for position, token in enumerate(tokens) if token in ends), num_steps - 1)
        sequences.add(tokens[: stop + 1])
    return sorted(sequences)


@dataclass(frozen=True)
class Draw:
    """Some sequences of a world, as if drawn for its one pair; logits and views carry gradients to the actor."""

    tokens: Tensor  # [M, T]
    mask: Tensor  # [M, T], True up to and including the end token
    logits: Tensor  # [M, T, V]
    states: Tensor  # [M, T, H], the actor's views
    rewards: Tensor  # [M, T]

    @property
    def token_log_probabilities(self) -> Tensor:
        """log p(ŷ_t | Ŷ_1..t-1) [M, T]; nothing is meant outside the mask."""
        return torch.log_softmax(self.logits, 2).gather(2, self.tokens[:, :, None])[:, :, 0]

    @property
    def returns(self) -> Tensor:
        """R(Ŷ) [M]."""
        return self.rewards.sum(1)

    def as_sample(self) -> Sample:
        """Return the sequences as the sampler would have returned them."""
        # Constants, as those of a sampler are.
        probabilities = torch.softmax(self.logits.detach(), 2)
        return Sample(
            self.tokens,
            self.mask,
            Packed.of(probabilities, self.mask),
            self.states.detach(),
            torch.special.entr(probabilities).sum(2),
            probabilities.gather(2, self.tokens[:, :, None])[:, :, 0].log(),
        )


@dataclass(frozen=True)
class World:
    """All sequences as one padded batch, with the actor's view of them, differentiable."""

    actor: Actor
    batch: Batch  # one pair
    sequences: list[tuple[int, ...]]
    tokens: Tensor  # [N, T]
    mask: Tensor  # [N, T]
    logits: Tensor  # [N, T, V]
    states: Tensor  # [N, T, H]
    rewards: Tensor  # [N, T]

    @property
    def sequence_probabilities(self) -> Tensor:
        """p(Ŷ) of every sequence, [N]."""
        token_log_probabilities = self.draw(range(len(self.sequences))).token_log_probabilities
        return torch.where(self.mask, token_log_probabilities, 0.0).sum(1).exp()  # log p = 0 behind the end

    @property
    def expected_return(self) -> Tensor:
        """V = Σ p(Ŷ) R(Ŷ)."""
        return (self.sequence_probabilities * self.rewards.sum(1)).sum()

    def exact_gradients(self) -> list[Tensor]:
        """dV/dθ for every weight of the actor."""
        return gradients(self.expected_return, self.actor)

    def exact_values(self, bonus: Tensor | None = None) -> Tensor:
        """Q(a; Ŷ_1..t-1) of every token at every step of every sequence, [N, T, V], by enumeration.

        `bonus` [N, T]: what is earned beside the rewards from each token of each sequence on.
        """
        probabilities = self.sequence_probabilities.detach()

        def mean(rows: list[int], step: int) -> Tensor:
            weights = probabilities[rows]
            returns = self.rewards[rows, step:].sum(1) + (0 if bonus is None else bonus[rows, step])
            # Given the prefix and the token: the weights are those of the sequences that go on so.
            return (weights * returns).sum() / weights.sum()

        return self._over_continuations(mean)

    def exact_state_values(self) -> Tensor:
        """V(Ŷ_1..t-1) = Σ_a p(a) Q(a) before every step of every sequence, [N, T], by enumeration."""
        return (torch.softmax(self.logits.detach(), 2) * self.exact_values()).sum(2)

    def optimal_values(self) -> Tensor:
        """Q*(a; Ŷ_1..t-1), the most that can be earned from each token on, [N, T, V], by enumeration."""
        return self._over_continuations(lambda rows, step: self.rewards[rows, step:].sum(1).max())

    def optimal_completions(self, prefix: Sequence[int] = ()) -> list[tuple[int, ...]]:
        """Return the sequences of the highest score among those that begin so."""
        rows = self._beginning_with(tuple(prefix))
        returns = self.rewards.sum(1)[rows]
        # With room for rounding: rewards of equal scores need not add up to the same bits.
        return [self.sequences[row] for row, own in zip(rows, returns, strict=True) if own >= returns.max() - 1e-9]

    def draw(self, rows: Sequence[int]) -> Draw:
        """Return some sequences, no wider than the longest of them."""
        chosen = list(rows)
        # A sampler returns no column that all rows have left.
        part = (chosen, slice(0, max(len(self.sequences[row]) for row in chosen)))
        return Draw(self.tokens[part], self.mask[part], self.logits[part], self.states[part], self.rewards[part])

    def sample_of(self, rows: Sequence[int]) -> Sample:
        """Return some sequences as the sampler would have returned them."""
        return self.draw(rows).as_sample()

    def _beginning_with(self, prefix: tuple[int, ...]) -> list[int]:
        return [row for row, sequence in enumerate(self.sequences) if sequence[: len(prefix)] == prefix]

    def _over_continuations(self, combine: Callable[[list[int], int], Tensor]) -> Tensor:
        """Combine, for every token at every step of every sequence, all sequences that go on with it, [N, T, V]."""
        table = torch.zeros_like(self.logits, dtype=torch.float64, requires_grad=False)
        for row, sequence in enumerate(self.sequences):
            for step in range(len(sequence)):
                for token in range(table.shape[2]):
                    # Before the end each token of each prefix begins some sequence, so that none of these lists is
                    # empty.
                    table[row, step, token] = combine(self._beginning_with((*sequence[:step], token)), step)
        return table


def make_world(
    actor: Actor | None = None,
    shaping: bool = True,
    masks: Masks | None = None,
    *,
    batch: Batch | None = None,
    score: Score | None = None,
    num_steps: int = NUM_STEPS,
) -> World:
    """Enumerate everything that an actor, with these dropout masks, can say to the one pair of a batch.

    By default the small actor, the reference (1, 2) and the edit distance. `shaping`: every token is rewarded with what
    it adds to the score; without, the last one with all of it. For answers as long as training would draw them,
    `num_steps` is the length of the reference and three more (methods/rollout.py).
    """
    actor = make_actor() if actor is None else actor
    batch = make_batch() if batch is None else batch
    assert len(batch) == 1, "a world is of one pair"
    special = actor.special
    sequences = all_sequences(actor.num_tokens, num_steps, special.end)
    padded = [[*sequence, *[special.padding] * (num_steps - len(sequence))] for sequence in sequences]
    tokens, lengths = torch.tensor(padded), torch.tensor([len(sequence) for sequence in sequences])
    mask = torch.arange(num_steps) < lengths[:, None]
    memory = all_rows.repeat(actor.encode(batch.sources, batch.source_mask, masks), len(sequences))
    logits, states = actor.score(memory, tokens)
    many = batch.repeat(len(sequences))
    rewards = score_tokens(score or EditDistanceScore(), special, tokens, mask, many, shaping).to(logits.dtype)
    return World(actor, batch, sequences, tokens, mask, logits, states, rewards)


def gradients(loss: Tensor, network: nn.Module) -> list[Tensor]:
    """Return the gradient of a scalar for every weight, zeros where there is none."""
    parameters = list(network.parameters())
    # Kept, as several losses of one world share the graph of its actor.
    found = torch.autograd.grad(loss, parameters, allow_unused=True, retain_graph=True)
    return [
        torch.zeros_like(parameter) if gradient is None else gradient
        for parameter, gradient in zip(parameters, found, strict=True)
    ]


def largest_difference(ours: Sequence[Tensor], theirs: Sequence[Tensor]) -> float:
    """Return the largest absolute difference of two lists of gradients."""
    return max(float((a - b).abs().max()) for a, b in zip(ours, theirs, strict=True))
