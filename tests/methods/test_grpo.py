"""GRPO: its advantages and its clipping by hand, what it equals at one step, and its steps from one batch."""

from __future__ import annotations

import copy

import pytest
import torch

from method_worlds import NUM_TOKENS, SCORE, make_batch, make_networks, make_settings
from seqcritic.contracts.method import Outcome
from seqcritic.contracts.networks import Networks
from seqcritic.methods import losses
from seqcritic.methods.build import build_method
from seqcritic.methods.experience import gather_experience, score_again
from seqcritic.methods.masked_losses import token_log_probabilities
from seqcritic.settings.io import settings_from
from seqcritic.testing.worlds import gradients, largest_difference
from seqcritic.training.learner import Learner, recipe_learner

ONCE = {"samples": 3, "divides_by_spread": False, "steps": 1}


def outcome_of(method: str, networks: Networks, **changes: object) -> Outcome:
    made = build_method(make_settings(method, **changes), "train", SCORE)
    return made(networks, make_batch(), torch.Generator().manual_seed(0), 0.0)


@pytest.mark.parametrize("weight", [0.0, 0.3])
def test_one_step_without_division_is_reinforce_multisample_times_its_share(weight: float):
    networks = make_networks(make_settings("grpo"))
    ours = outcome_of("grpo", networks, grpo=ONCE, likelihood_weight=weight)
    theirs = outcome_of(
        "reinforce-multisample", networks, reinforce_multisample={"samples": 3}, likelihood_weight=weight
    )
    found, others = gradients(ours.loss, networks.actor), gradients(theirs.loss, networks.actor)
    likelihood = outcome_of("likelihood", networks)
    # (M − 1)/M of the rewards' part; the likelihood term has its weight whatever M is.
    shares = zip(others, gradients(likelihood.loss, networks.actor), strict=True)
    expected = [2 / 3 * (other - weight * own) + weight * own for other, own in shares]
    assert largest_difference(found, expected) < 1e-12
    assert ours.measurements["clipped_share"] == 0


def test_group_advantages_by_hand():
    returns = torch.tensor([[1.0, 2.0, 3.0, 6.0], [5.0, 5.0, 5.0, 5.0], [0.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    plain = losses.group_advantages(returns, divides_by_spread=False)
    assert plain.tolist() == [[-2.0, -1.0, 0.0, 3.0], [0.0] * 4, [0.0] * 4]
    divided = losses.group_advantages(returns, divides_by_spread=True)
    spread = (14 / 4) ** 0.5
    assert divided[0].tolist() == pytest.approx([-2 / spread, -1 / spread, 0, 3 / spread])
    assert divided[1:].tolist() == [[0.0] * 4] * 2, "nothing is divided by nothing"
    barely = torch.tensor([[0.1 + 0.2, 0.3, 0.3]], dtype=torch.float64)
    assert losses.group_advantages(barely, divides_by_spread=True).tolist() == [[0.0] * 3], "nor by rounding"


def test_clipping_by_hand():
    """Ratios 0.5, 1, 1.5 of good and of bad tokens, ε = 0.2: what went too far the right way has no gradient."""
    ratios = torch.tensor([[0.5, 1.0, 1.5], [0.5, 1.0, 1.5]], dtype=torch.float64)
    advantages = torch.tensor([[2.0], [-1.0]], dtype=torch.float64)
    now = ratios.log().requires_grad_()
    mask = torch.tensor([[True, True, True], [True, True, True]])
    loss = losses.clipped_loss(now, torch.zeros_like(ratios), advantages, mask, 0.2)
    # good: min(ρ, clip) = 0.5, 1, 1.2 times 2; bad: the lower of −ρ and −clip = −0.8, −1, −1.5
    assert loss.item() == pytest.approx(-(2 * (0.5 + 1 + 1.2) - (0.8 + 1 + 1.5)) / 2)
    (gradient,) = torch.autograd.grad(loss, now)
    # d/d log p = −A ρ / 2 where nothing is clipped
    assert gradient.tolist() == [pytest.approx([-0.5, -1.0, 0.0]), pytest.approx([0.0, 0.5, 0.75])]
    nothing = losses.clipped_loss(now, torch.zeros_like(ratios), advantages, mask & False, 0.2)
    assert nothing.item() == 0


@pytest.mark.parametrize("reward_dropout", ["held", "none"])
def test_the_steps_score_the_same_samples_with_the_weights_of_their_time(reward_dropout: str):
    plain = make_settings("grpo", grpo={"steps": 3}, reward_dropout=reward_dropout).model_dump(mode="json")
    plain["actor"]["dropout"] = 0.4
    settings = settings_from(plain)
    networks, batch = make_networks(settings), make_batch()
    method = build_method(settings, "train", SCORE)
    old = copy.deepcopy(networks)
    clipped = []
    for number, outcome in enumerate(method.updates(networks, batch, torch.Generator().manual_seed(0), 0.0)):
        again = torch.Generator().manual_seed(0)
        seen = gather_experience(old, batch, settings.method, SCORE, True, again, samples=4)
        sample = seen.rollout.sample
        returns = seen.rollout.rewards.sum(1).view(len(batch), 4)
        advantages = losses.group_advantages(returns, True).view(-1, 1)
        now = token_log_probabilities(score_again(networks, batch, seen, settings.method, again).logits, sample.tokens)
        expected = losses.clipped_loss(now, seen.token_log_probabilities.detach(), advantages, sample.mask, 0.2)
        assert outcome.measurements["actor_loss"].item() == pytest.approx(expected.item(), abs=1e-10)
        assert ("sampled_return" in outcome.measurements) == (number == 0)
        clipped.append(float(outcome.measurements["clipped_share"]))
        found = gradients(outcome.loss, networks.actor)
        assert largest_difference(found, gradients(expected, networks.actor)) < 1e-10
        with torch.no_grad():
            for parameter, gradient in zip(networks.actor.parameters(), found, strict=True):
                parameter -= 0.5 * gradient
    assert len(clipped) == 3
    assert clipped[0] == 0 < clipped[2]


@pytest.mark.parametrize(("method", "own"), [("grpo", {"grpo": {"steps": 3}}), ("ppo", {})])
def test_a_batch_of_several_steps_resumes_to_the_bit(method: str, own: dict[str, object]):
    tree = make_settings(method, likelihood_weight=0.1, kl_weight=0.1, **own).model_dump(mode="json")
    tree |= {"precision": "float64"}
    tree["actor"]["dropout"] = tree["critic"]["dropout"] = 0.3

    def begin() -> Learner:
        learner = recipe_learner(settings_from(tree), NUM_TOKENS, NUM_TOKENS, SCORE)
        learner.start_phase("train")
        return learner

    learner = begin()
    for _ in range(2):
        learner.update(make_batch(), 0.01)
    stored = copy.deepcopy(learner.tensors())
    steps = {int(tensor) for name, tensor in stored["optimisers"].items() if name.endswith("step")}
    assert steps == {6}, "three steps a batch"
    rest = [learner.update(make_batch(), 0.01) for _ in range(2)]
    other = begin()
    other.load_tensors(stored, "here")
    assert [other.update(make_batch(), 0.01) for _ in range(2)] == rest
    for name, tensor in learner.tensors()["networks"].items():
        assert torch.equal(tensor, other.tensors()["networks"][name])
