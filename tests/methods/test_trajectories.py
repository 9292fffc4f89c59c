"""Speed changes nothing: whole trainings with the fast loops and with the plain loops agree."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch
from torch import Tensor

from seqcritic.contracts.batch import Batch
from seqcritic.data.vocabulary import END
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.settings.io import load_recipe, with_method
from seqcritic.settings.methods import method_labels
from seqcritic.tensors.plain_loops import use_plain_loops
from seqcritic.training.learner import recipe_learner

NUM_TOKENS, BATCH, NUM_UPDATES = 6, 4, 100
SIZES = [f"{network}.{size}=6" for network in ("actor", "critic") for size in ("embedding", "hidden", "attention")]


def draw(seed: int) -> Batch:
    """Return pairs of a random word of one to four letters and the word turned round."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 5, (BATCH,), generator=generator)
    words = torch.randint(1, NUM_TOKENS, (BATCH, 5), generator=generator)
    positions = torch.arange(5)
    sources = torch.where(positions < lengths[:, None], words, END)
    mask = positions <= lengths[:, None]
    references = torch.where(
        positions < lengths[:, None], words.gather(1, (lengths[:, None] - 1 - positions).clamp(min=0)), END
    )
    return Batch(sources, mask, references, mask)


def train(label: str, num_updates: int, dtype: torch.dtype, plain: bool) -> tuple[list[float], list[Tensor]]:
    """Return the losses of all updates and the final weights."""
    settings = load_recipe("demo", [*SIZES, "actor.initial_range=null", "critic.initial_range=null"])
    learner = recipe_learner(with_method(settings, label), NUM_TOKENS, NUM_TOKENS, EditDistanceScore(normalise=False))
    for network in learner.networks.named().values():
        network.to(dtype)
    learner.start_phase("train")
    with use_plain_loops() if plain else nullcontext():
        logged = [learner.update(draw(seed), 1e-3, seed / num_updates) for seed in range(num_updates)]
    name = "actor_loss" if "actor_loss" in logged[0] else "likelihood_loss"
    weights = [parameter for network in learner.networks.named().values() for parameter in network.parameters()]
    return [measured[name] for measured in logged], weights


@pytest.mark.parametrize("label", method_labels())
def test_a_training_in_float64_follows_the_plain_form(label):
    ours, our_weights = train(label, NUM_UPDATES, torch.float64, plain=False)
    theirs, their_weights = train(label, NUM_UPDATES, torch.float64, plain=True)
    assert ours == pytest.approx(theirs, rel=1e-8)
    assert ours[0] != ours[-1], "the training moves"
    for our, their in zip(our_weights, their_weights, strict=True):
        assert torch.allclose(our, their, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("label", method_labels())
def test_the_first_update_in_float32_follows_the_plain_form(label):
    ours, our_weights = train(label, 1, torch.float32, plain=False)
    theirs, their_weights = train(label, 1, torch.float32, plain=True)
    assert ours == pytest.approx(theirs, rel=1e-5)
    for our, their in zip(our_weights, their_weights, strict=True):
        assert torch.allclose(our, their, rtol=1e-5, atol=1e-5)
