"""A world small enough to enumerate: three tokens, at most three steps, every sequence and every value exact."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from seqcritic.contracts.batch import Batch
from seqcritic.contracts.score import Scorable, rewards_at_end, rewards_from_prefixes
from seqcritic.data.vocabulary import END
from seqcritic.decoding.sampling import Sample
from seqcritic.models.gru.actor import RecurrentActor
from seqcritic.models.gru.dropout import Masks
from seqcritic.models.gru.settings import GruActorSettings
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.tensors import rows as all_rows
from seqcritic.tensors.packed import Packed

NUM_TOKENS = 3
SIZES = GruActorSettings(embedding=4, hidden=5, attention=3, initial_range=None)
NUM_STEPS = 3


def make_actor(seed: int = 0, dropout: float = 0.0) -> RecurrentActor:
    """Return a small float64 actor with weights large enough for a lopsided policy."""
    generator = torch.Generator().manual_seed(seed)
    return RecurrentActor(SIZES.model_copy(update={"dropout": dropout}), NUM_TOKENS, NUM_TOKENS, generator).double()


def held_masks(actor: RecurrentActor) -> Masks | None:
    """Return what a method that is given a fresh generator drops of the one source; nothing without dropout."""
    return actor.draw_masks(1, torch.Generator())


def make_batch() -> Batch:
    """Return one pair of a source and the reference (1, 2)."""
    sources, references = torch.tensor([[2, 1, 0]]), torch.tensor([[1, 2, END]])
    everywhere = torch.ones(1, 3, dtype=torch.bool)
    return Batch(sources, everywhere, references, everywhere)


def all_sequences() -> list[tuple[int, ...]]:
    """Return every complete sequence: closed by its first end token, or cut after three steps."""
    sequences = set()
    for tokens in itertools.product(range(NUM_TOKENS), repeat=NUM_STEPS):
        stop = tokens.index(END) + 1 if END in tokens else NUM_STEPS
        sequences.add(tokens[:stop])
    return sorted(sequences)


@dataclass(frozen=True)
class World:
    """All sequences as one padded batch, with the actor's view of them, differentiable."""

    sequences: list[tuple[int, ...]]
    tokens: Tensor  # [N, T]
    mask: Tensor  # [N, T]
    logits: Tensor  # [N, T, V]
    states: Tensor  # [N, T, H]
    rewards: Tensor  # [N, T]

    @property
    def sequence_probabilities(self) -> Tensor:
        """p(Ŷ) of every sequence, [N]."""
        token_log_probabilities = torch.log_softmax(self.logits, 2).gather(2, self.tokens[:, :, None])[:, :, 0]
        return torch.where(self.mask, token_log_probabilities, 0.0).sum(1).exp()

    @property
    def expected_return(self) -> Tensor:
        """V = Σ p(Ŷ) R(Ŷ)."""
        return (self.sequence_probabilities * self.rewards.sum(1)).sum()

    def exact_values(self, bonus: Tensor | None = None) -> Tensor:
        """Q(a; Ŷ_1..t-1) of every action at every step of every sequence, [N, T, V], by enumeration.

        `bonus` [N, T]: what is earned beside the rewards from each token of each sequence on.
        """
        probabilities = self.sequence_probabilities.detach()
        values = torch.zeros(*self.tokens.shape, NUM_TOKENS, dtype=torch.float64)
        for row, sequence in enumerate(self.sequences):
            for step in range(len(sequence)):
                for action in range(NUM_TOKENS):
                    prefix = (*sequence[:step], action)
                    rows = [n for n, other in enumerate(self.sequences) if other[: step + 1] == prefix]
                    weights = probabilities[rows]
                    returns = self.rewards[rows, step:].sum(1) + (0 if bonus is None else bonus[rows, step])
                    values[row, step, action] = (weights * returns).sum() / weights.sum()
        return values

    def sample_of(self, rows: Sequence[int]) -> Sample:
        """Return some sequences as the sampler would have returned them."""
        chosen = list(rows)
        part = (chosen, slice(0, max(len(self.sequences[row]) for row in chosen)))
        mask, probabilities = self.mask[part], torch.softmax(self.logits[part].detach(), 2)
        entropies = torch.special.entr(probabilities).sum(2)
        packed = Packed.of(probabilities, mask)
        token_log_probabilities = probabilities.gather(2, self.tokens[part][:, :, None])[:, :, 0].log()
        return Sample(self.tokens[part], mask, packed, self.states[part].detach(), entropies, token_log_probabilities)


def make_world(actor: RecurrentActor, shaping: bool = True, masks: Masks | None = None) -> World:
    """Enumerate everything the actor, with these masks, can say to the one source, with edit-distance rewards."""
    batch = make_batch()
    sequences = all_sequences()
    tokens = torch.tensor([[*sequence, *[END] * (NUM_STEPS - len(sequence))] for sequence in sequences])
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    mask = torch.arange(NUM_STEPS) < lengths[:, None]
    memory = all_rows.repeat(actor.encode(batch.sources, batch.source_mask, masks), len(sequences))
    logits, states = actor.score(memory, tokens)
    words = (mask & (tokens != END)).sum(1)
    references = batch.references.expand(len(sequences), -1)
    evaluated = Scorable.of(tokens, words, references, torch.full((len(sequences),), 2))
    prefixes = EditDistanceScore().prefix_scores(evaluated).double()
    rewards = rewards_from_prefixes(prefixes, mask) if shaping else rewards_at_end(prefixes[:, -1], mask)
    return World(sequences, tokens, mask, logits, states, rewards)


def gradients(loss: Tensor, network: nn.Module) -> list[Tensor]:
    """Return the gradient of a scalar for every weight, zeros where there is none."""
    parameters = list(network.parameters())
    found = torch.autograd.grad(loss, parameters, allow_unused=True, retain_graph=True)
    return [
        torch.zeros_like(parameter) if gradient is None else gradient
        for parameter, gradient in zip(parameters, found, strict=True)
    ]


def largest_difference(ours: list[Tensor], theirs: list[Tensor]) -> float:
    """Return the largest absolute difference of two lists of gradients."""
    return max(float((a - b).abs().max()) for a, b in zip(ours, theirs, strict=True))
