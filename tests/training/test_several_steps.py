"""A method may make several optimiser steps from one batch."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from method_worlds import NUM_TOKENS, SCORE, make_batch, make_settings
from seqcritic.contracts.batch import Batch
from seqcritic.contracts.method import Outcome
from seqcritic.contracts.method_registry import METHODS, register_method
from seqcritic.contracts.networks import Networks, NetworkSpec, polyak_update
from seqcritic.methods.masked_losses import likelihood_loss
from seqcritic.methods.method import RewardMethod
from seqcritic.training.learner import Learner, recipe_learner

RATE, SLOW = 0.05, 0.25
NUM_STEPS = 3


def loss_of(networks: Networks, batch: Batch) -> Tensor:
    actor = networks.actor
    features, _ = actor.features(
        actor.encode(batch.sources, batch.source_mask, None), batch.references, batch.reference_mask
    )
    return likelihood_loss(actor.logits_of(features), batch.references, batch.reference_mask)


class SeveralSteps(RewardMethod):
    """Likelihood, three steps a batch, each with a weight drawn for it."""

    name = "several-steps"
    trains = ("actor",)
    needs = (NetworkSpec("slow_actor", copy_of="actor", rate=SLOW),)

    def updates(
        self, networks: Networks, batch: Batch, generator: torch.Generator, progress: float
    ) -> Iterator[Outcome]:
        for step in range(NUM_STEPS):
            loss = loss_of(networks, batch)
            measurements = {"actor_loss": loss.detach()}
            if step == NUM_STEPS - 1:
                measurements["last_loss"] = loss.detach()
            yield Outcome(torch.rand((), generator=generator) * loss, measurements)


@pytest.fixture
def learner(monkeypatch: pytest.MonkeyPatch) -> Learner:
    monkeypatch.setattr(METHODS, "_classes", dict(METHODS._classes))
    register_method(SeveralSteps)
    return make_learner()


def make_learner() -> Learner:
    learner = recipe_learner(make_settings("several-steps"), NUM_TOKENS, NUM_TOKENS, SCORE)
    learner.start_phase("train")
    return learner


def test_every_loss_is_made_after_the_step_before_it_and_copies_follow_each(learner: Learner):
    networks, batch = copy.deepcopy(learner.networks), make_batch()
    seed = int(torch.randint(1 << 62, (), generator=torch.Generator().set_state(learner.generator.get_state())))
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(networks.actor.parameters(), lr=RATE, betas=(0.9, 0.999), fused=True)
    losses = []
    for _ in range(NUM_STEPS):
        loss = loss_of(networks, batch)
        losses.append(loss.item())
        optimiser.zero_grad(set_to_none=True)
        (torch.rand((), generator=generator) * loss).backward()
        optimiser.step()
        polyak_update(networks["slow_actor"], networks.actor, SLOW)
    measured = learner.update(batch, RATE)
    for name in ("actor", "slow_actor"):
        both = zip(learner.networks[name].parameters(), networks[name].parameters(), strict=True)
        assert all(torch.equal(mine, expected) for mine, expected in both)
    assert measured["actor_loss"] == pytest.approx(sum(losses) / NUM_STEPS)
    assert measured["last_loss"] == pytest.approx(losses[-1])
    assert losses[-1] < losses[0]


def test_a_run_resumes_between_batches_to_the_same_bits(learner: Learner):
    learner.update(make_batch(), RATE)
    stored = {group: {name: t.clone() for name, t in tensors.items()} for group, tensors in learner.tensors().items()}
    learner.update(make_batch(), RATE)
    again = make_learner()
    again.load_tensors(stored, "the checkpoint")
    again.update(make_batch(), RATE)
    one, other = learner.tensors(), again.tensors()
    assert one.keys() == other.keys()
    assert all(torch.equal(one[group][name], other[group][name]) for group in one for name in one[group])
    assert one["optimisers"]
