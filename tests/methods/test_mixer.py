"""MIXER: likelihood at Δ = 0, REINFORCE at Δ ≥ T, and between them each on its own tokens."""

from __future__ import annotations

import pytest
import torch

from method_worlds import SCORE, make_batch, make_networks, make_settings
from seqcritic.contracts.method import Outcome
from seqcritic.contracts.networks import Networks
from seqcritic.methods import losses
from seqcritic.methods.build import build_method
from seqcritic.methods.experience import gather_experience
from seqcritic.methods.mixer import likelihood_steps
from seqcritic.settings.methods import MethodSettings
from seqcritic.testing.worlds import gradients, largest_difference

LENGTH = 4  # of the batch's references, the end token counted


def make_mixer(step: int, **changes: object) -> tuple[MethodSettings, Networks]:
    settings = make_settings("mixer", mixer={"step": step}, **changes)
    networks = make_networks(settings)
    torch.nn.init.normal_(networks.baseline.linear.weight, generator=torch.Generator().manual_seed(1))
    return settings, networks


def run(settings: object, networks: Networks, progress: float = 0.0, phase: str = "train") -> Outcome:
    return build_method(settings, phase, SCORE)(networks, make_batch(), torch.Generator().manual_seed(0), progress)


def assert_same(ours: Outcome, theirs: Outcome, networks: Networks) -> None:
    assert torch.allclose(ours.loss, theirs.loss, rtol=1e-14)
    for network in (networks.actor, networks.baseline):
        assert largest_difference(gradients(ours.loss, network), gradients(theirs.loss, network)) < 1e-15


@pytest.mark.parametrize("progress", [0.0, 0.9])
def test_step_0_is_likelihood(progress):
    settings, networks = make_mixer(step=0)
    ours = run(settings, networks, progress)
    assert_same(ours, run(settings, networks, phase="actor"), networks)
    assert ours.measurements["reinforced_fraction"] == 0


@pytest.mark.parametrize("changes", [{}, {"likelihood_weight": 0.3}, {"samples": 3}])
@pytest.mark.parametrize(("step", "progress"), [(LENGTH, 0.0), (9, 0.5), (2, 0.5), (1, 0.75)])
def test_a_step_of_the_whole_length_and_the_last_stage_are_reinforce_exactly(step, progress, changes):
    settings, networks = make_mixer(step, **changes)
    ours = run(settings, networks, progress)
    assert_same(ours, run(make_settings("reinforce", **changes), networks, progress), networks)
    assert ours.measurements["reinforced_fraction"] == 1
    assert "likelihood_loss" in ours.measurements or "likelihood_weight" not in changes


@pytest.mark.parametrize("samples", [1, 3])
def test_given_tokens_learn_by_likelihood_and_drawn_ones_by_reinforce(samples):
    settings, networks = make_mixer(step=1, samples=samples)
    batch, num_given = make_batch(), 2
    ours = run(settings, networks, progress=0.3)  # stage 2 of 4
    given = torch.full((len(batch) * samples,), num_given)
    seen = gather_experience(
        networks, batch, settings.method, SCORE, True, torch.Generator().manual_seed(0), num_given=given
    )
    sample = seen.rollout.sample
    repeated = batch.repeat(samples)
    assert torch.equal(sample.tokens[:, :num_given], repeated.references[:, :num_given])
    assert not torch.equal(sample.tokens[:, num_given], repeated.references[:, num_given])
    logits, _ = networks.actor.score(networks.actor.encode(batch.sources, batch.source_mask), batch.references)
    head = batch.reference_mask & (torch.arange(LENGTH) < num_given)
    likelihood = losses.likelihood_loss(torch.log_softmax(logits, 2), batch.references, head)
    tail = sample.mask & (torch.arange(sample.mask.shape[1]) >= num_given)
    returns = losses.returns_to_go(seen.rollout.rewards, sample.mask)
    baselines = networks.baseline(seen.states)
    reinforced = losses.reinforce_loss(seen.token_log_probabilities, returns, baselines.detach(), tail)
    baseline_loss = losses.mean_over_sequences((baselines - returns).square(), tail)
    expected = likelihood + reinforced + baseline_loss
    assert torch.allclose(ours.loss, expected, atol=1e-12)
    for network in (networks.actor, networks.baseline):
        assert largest_difference(gradients(ours.loss, network), gradients(expected, network)) < 1e-12


def test_the_stages_share_the_phase():
    """Eleven tokens, two a stage: six stages, the last of them all REINFORCE."""
    steps = [likelihood_steps(11, 2, progress) for progress in (0.0, 0.16, 0.17, 0.34, 0.51, 0.67, 0.83, 0.84, 0.999)]
    assert steps == [9, 9, 7, 5, 3, 1, 1, 0, 0]
    assert likelihood_steps(11, 0, 0.9) == 11
    assert likelihood_steps(1, 2, 0.0) == 0
