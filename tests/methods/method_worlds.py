"""Small networks and a batch of several references for tests of single methods, in float64."""

from __future__ import annotations

import torch

from seqcritic.contracts.batch import Batch
from seqcritic.contracts.networks import Networks
from seqcritic.data.vocabulary import END
from seqcritic.methods.build import build_networks
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.settings.io import settings_from
from seqcritic.settings.tree import Settings

NUM_TOKENS = 6
SCORE = EditDistanceScore(normalise=False)


def make_settings(method: str, **changes: object) -> Settings:
    sizes = {"embedding": 7, "hidden": 8, "attention": 5, "initial_range": None}
    knobs = {"name": method, "reward_dropout": "held", "gamma_theta": 0.1, **changes}
    return settings_from({"actor": sizes, "critic": sizes, "method": knobs})


def make_networks(settings: Settings) -> Networks:
    networks = build_networks(settings, NUM_TOKENS, NUM_TOKENS, torch.Generator().manual_seed(3))
    for network in networks.named().values():
        network.double()
    return networks


def make_batch(num_examples: int = 5) -> Batch:
    generator = torch.Generator().manual_seed(4)
    tokens = torch.randint(1, NUM_TOKENS, (num_examples, 4), generator=generator)
    tokens[:, -1] = END
    mask = torch.ones_like(tokens, dtype=torch.bool)
    return Batch(tokens.flip(0), mask, tokens, mask)
