"""Every method must improve its warm start on a task that trains in seconds: eight words sent through noise.

The warm start is a likelihood actor stopped early; the critic is trained first where there is one. The measure is the
error rate of greedy predictions on fixed pairs.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from seqcritic.contracts.batch import Batch
from seqcritic.contracts.method_registry import registered_methods
from seqcritic.contracts.score import Scorable
from seqcritic.data.corruption import corrupt
from seqcritic.data.vocabulary import END
from seqcritic.decoding.sampling import greedy
from seqcritic.models.gru.actor import RecurrentActor
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.settings.io import load_recipe, with_method
from seqcritic.training.checkpoint import load_weights, weights_of
from seqcritic.training.learner import Learner, recipe_learner
from support import slow_but

NUM_SYMBOLS = 5
WORDS = torch.tensor([[1, 2, 3], [3, 1, 2], [2, 4, 4], [5, 5, 1], [4, 1, 5], [1, 5, 2], [2, 2, 2], [3, 4, 1]])
SCORE = EditDistanceScore(normalise=False)
BATCH, RATE = 64, 2e-3
NUM_WARM, NUM_CRITIC, NUM_TRAIN = 250, 400, 300
SLOW = {"self-critical": 500, "raml": 500}  # few samples beat greedy search; targets are noisy
LABELS = (*registered_methods(), "actor-critic+likelihood", "mixer+likelihood")
QUICK = (
    "reinforce",
    "self-critical",
    "minimum-risk",
    "actor-critic",
    "ppo",
    "beam-search-optimization",
    "raml",
)  # a family each
SIZES = [f"{network}.{size}=16" for network in ("actor", "critic") for size in ("embedding", "hidden", "attention")]


def draw(count: int, seed: int) -> Batch:
    """Return pairs of a corrupted word and the word."""
    generator = torch.Generator().manual_seed(seed)
    words = WORDS[torch.randint(len(WORDS), (count,), generator=generator)]
    ends = torch.full((count, 1), END)
    noisy = corrupt(words, 0.3, NUM_SYMBOLS, generator)
    mask = torch.ones(count, 4, dtype=torch.bool)
    return Batch(torch.cat([noisy, ends], 1), mask, torch.cat([words, ends], 1), mask)


def error_rate(actor: RecurrentActor) -> float:
    """Return the mean edit distance of greedy predictions, per token, in percent."""
    batch = draw(1000, seed=10**6)
    predictions = greedy(actor, batch.sources, batch.source_mask)
    lengths = actor.special.lengths(predictions, torch.ones_like(predictions, dtype=torch.bool))
    three = torch.full((1000,), 3)
    scores = EditDistanceScore(normalise=True).score(Scorable.of(predictions, lengths, batch.references, three))
    return 100 * (1 - float(scores.mean()))


def run(learner: Learner, phase: str, first: int, count: int) -> list[dict[str, float]]:
    """Make `count` updates of a phase on fresh pairs."""
    learner.start_phase(phase)
    return [learner.update(draw(BATCH, first + done), RATE, done / count) for done in range(count)]


def make_learner(label: str) -> Learner:
    settings = load_recipe("demo", [*SIZES, "method.gamma_theta=0.1", "method.gamma_phi=0.1"])
    return recipe_learner(with_method(settings, label), NUM_SYMBOLS + 1, NUM_SYMBOLS + 1, SCORE)


@pytest.fixture(scope="module")
def warm_start() -> dict[str, Tensor]:
    torch.set_num_threads(1)
    learner = make_learner("likelihood")
    run(learner, "actor", 0, NUM_WARM)
    return learner.actor_weights()


@pytest.fixture(scope="module")
def critics(warm_start) -> dict[bool, dict[str, Tensor]]:
    """The weights of critics of the warm start, by whether their values are soft; methods share them, as in compare."""
    trained = {}
    for label in ("actor-critic", "entropy-actor-critic"):
        learner = make_learner(label)
        load_weights(learner.networks.actor, warm_start, "warm start")
        explained = [measured["explained_variance"] for measured in run(learner, "critic", NUM_WARM, NUM_CRITIC)]
        assert np.mean(explained[-20:]) > np.mean(explained[:20]) + 0.1, "the critic learns to explain the return"
        trained[learner.settings.method.temperature > 0] = weights_of(learner.networks.critic)
    return trained


@pytest.mark.parametrize("label", slow_but(QUICK, LABELS))
def test_the_method_improves_its_warm_start(warm_start, critics, label):
    learner = make_learner(label)
    load_weights(learner.networks.actor, warm_start, "warm start")
    before = error_rate(learner.networks.actor)
    if learner.networks.critic is not None:
        load_weights(learner.networks.critic, critics[learner.settings.method.temperature > 0], "critic")
    run(learner, "train", NUM_WARM + NUM_CRITIC, SLOW.get(label, NUM_TRAIN))
    after = error_rate(learner.networks.actor)
    assert after < before - 1.0
