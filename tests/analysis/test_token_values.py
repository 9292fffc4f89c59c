"""Critics' values beside true ones: the noise of sampled returns does not count as spread."""

from __future__ import annotations

import pytest
import torch

from seqcritic.contracts.actor import Actor, LengthLimits
from seqcritic.methods.token_values import advantages, compare_values, measure_token_values
from seqcritic.testing.exact_moments import make_subject
from seqcritic.testing.worlds import NUM_STEPS, make_actor, make_batch, make_world

WEIGHTS = torch.tensor([[0.7, 0.2, 0.1]], dtype=torch.float64)
TRUE = torch.tensor([[2.0, 1.0, -1.0]], dtype=torch.float64)


def test_squares_and_products_are_those_of_the_true_advantages_in_the_mean():
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(20_000, 3, 4, dtype=torch.float64, generator=generator) * torch.tensor([1.0, 2.0, 3.0])[:, None]
    returns = TRUE[:, :, None] + noise
    critic, weights = (0.5 * TRUE).expand(len(noise), 3), WEIGHTS.expand(len(noise), 3)
    squares, own, products = (found.mean().item() for found in compare_values(returns, critic, weights))
    exact = (WEIGHTS * advantages(TRUE, WEIGHTS).square()).sum().item()
    assert squares == pytest.approx(exact, abs=0.03)
    assert own == pytest.approx(0.25 * exact, rel=1e-9)
    assert products == pytest.approx(0.5 * exact, abs=0.03)
    uncorrected = (WEIGHTS * advantages(returns.mean(dim=2), WEIGHTS).square()).sum(dim=1).mean().item()
    assert uncorrected > exact + 0.3, "the noise would be seen"


def test_a_value_common_to_all_tokens_does_not_count():
    returns = TRUE[:, :, None].expand(1, 3, 4)
    found = compare_values(returns, TRUE + 100, WEIGHTS)
    assert found[0].item() == pytest.approx(found[1].item())
    assert found[2].item() == pytest.approx(found[0].item())


@pytest.mark.parametrize(("factor", "correlation"), [(1.0, 1.0), (0.5, 1.0), (-1.0, -1.0)])
def test_exact_values_agree_with_sampled_continuations(
    factor: float, correlation: float, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Actor, "limits", LengthLimits(beyond_reference=NUM_STEPS - 2))
    actor = make_actor()
    world = make_world(actor)
    subject = make_subject(world, factor * world.exact_values())
    found = measure_token_values(
        subject.actor, subject.critic, subject.score, [make_batch().repeat(100)], torch.Generator().manual_seed(1)
    )
    assert found.correlation == pytest.approx(correlation, abs=0.05)
    assert found.critic_spread == pytest.approx(abs(factor) * found.true_spread, rel=0.05)
    assert found.prefixes > 100
