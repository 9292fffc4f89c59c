"""The losses on packed rows against the formulas of losses.py, in value and gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from seqcritic.contracts.batch import pad
from seqcritic.decoding.sampling import sample
from seqcritic.methods import fused_ops, losses, masked_losses
from seqcritic.models.gru.actor import RecurrentActor
from seqcritic.models.gru.settings import GruActorSettings
from seqcritic.tensors import rows as all_rows
from seqcritic.tensors.packed import Packed
from seqcritic.tensors.plain_loops import use_plain_loops
from seqcritic.tensors.values import Values
from seqcritic.testing.worlds import gradients, largest_difference

GENERATOR = torch.Generator().manual_seed(0)
MASK = torch.tensor([[True, True, True], [True, False, False], [False, False, False], [True, True, False]])
NUM_TOKENS = 5
TOKENS = torch.randint(NUM_TOKENS, MASK.shape, generator=GENERATOR)
WEIGHTS = torch.randn(2, *MASK.shape, dtype=torch.float64, generator=GENERATOR)
VALUES = 3 * torch.randn(*MASK.shape, NUM_TOKENS, dtype=torch.float64, generator=GENERATOR)
Sums = Callable[[Tensor], Tensor]


def make_outputs() -> Tensor:
    generator = torch.Generator().manual_seed(1)
    return (4 * torch.randn(*MASK.shape, NUM_TOKENS, dtype=torch.float64, generator=generator)).requires_grad_()


def weighted(*per_token: Tensor) -> Tensor:
    """Return a sum over the unmasked tokens in which each counts differently."""
    return sum(
        (torch.where(MASK, part, 0.0) * weights).sum() for part, weights in zip(per_token, WEIGHTS, strict=False)
    )  # type: ignore[return-value]


def soft_values(outputs: Tensor, temperature: float) -> Tensor:
    entropies = losses.entropies(torch.log_softmax(outputs, 2))
    return losses.expected_values(torch.softmax(outputs, 2), VALUES) + temperature * entropies


def packed(outputs: Tensor) -> Packed:
    return Packed.of(outputs, MASK)


PAIRS: dict[str, tuple[Sums, Sums]] = {
    "token_log_probabilities": (
        lambda outputs: weighted(masked_losses.token_log_probabilities(packed(outputs), TOKENS)),
        lambda outputs: weighted(losses.gather_chosen(torch.log_softmax(outputs, 2), TOKENS)),
    ),
    "likelihood_loss": (
        lambda outputs: masked_losses.likelihood_loss(packed(outputs), TOKENS, MASK),
        lambda outputs: losses.likelihood_loss(torch.log_softmax(outputs, 2), TOKENS, MASK),
    ),
    "expected value": (
        lambda outputs: weighted(masked_losses.soft_values(packed(outputs), Values(packed(VALUES)))),
        lambda outputs: weighted(soft_values(outputs, 0.0)),
    ),
    "soft value": (
        lambda outputs: weighted(masked_losses.soft_values(packed(outputs), Values(packed(VALUES)), 0.7)),
        lambda outputs: weighted(soft_values(outputs, 0.7)),
    ),
    "taken and penalties": (
        lambda outputs: weighted(*masked_losses.chosen_values_and_penalties(Values(packed(outputs)), TOKENS)),
        lambda outputs: weighted(losses.gather_chosen(outputs, TOKENS), losses.variance_penalty(outputs)),
    ),
    "taken alone": (
        lambda outputs: weighted(masked_losses.chosen_values_and_penalties(Values(packed(outputs)), TOKENS)[0]),
        lambda outputs: weighted(losses.gather_chosen(outputs, TOKENS)),
    ),
    "penalties alone": (
        lambda outputs: weighted(masked_losses.chosen_values_and_penalties(Values(packed(outputs)), TOKENS)[1]),
        lambda outputs: weighted(losses.variance_penalty(outputs)),
    ),
}


@pytest.mark.parametrize(("ours", "formula"), PAIRS.values(), ids=PAIRS)
def test_values_and_gradients_are_those_of_the_formulas(ours: Sums, formula: Sums):
    outputs = make_outputs()
    (our_gradient,) = torch.autograd.grad(ours(outputs), outputs)
    (gradient,) = torch.autograd.grad(formula(outputs), outputs)
    assert ours(outputs).item() == pytest.approx(formula(outputs).item(), abs=1e-10)
    assert torch.allclose(our_gradient, gradient, rtol=0, atol=1e-10)
    with use_plain_loops():
        assert ours(outputs).item() == pytest.approx(formula(outputs).item(), abs=1e-10)


def test_expected_values_find_the_rows_of_another_order():
    probabilities = torch.softmax(make_outputs().detach(), 2)
    turned = torch.arange(int(MASK.sum())).flip(0)
    rows = packed(probabilities)
    other = Packed(rows.rows[turned], rows.positions[turned], rows.shape)
    expected = torch.where(MASK, losses.expected_values(probabilities, VALUES), 0.0)
    assert torch.allclose(masked_losses.expected_values(other, Values(packed(VALUES))), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("num_rows", [1, 7, 64])
def test_products_summed_some_rows_at_a_time_are_the_same_numbers(num_rows: int, monkeypatch: pytest.MonkeyPatch):
    logits, values = torch.randn(2, num_rows, 900, generator=torch.Generator().manual_seed(2))
    before = values.clone()
    together = fused_ops.soft_values(logits, values, 0.7)
    monkeypatch.setattr(fused_ops, "AT_ONCE", 2 * 900)
    assert torch.equal(fused_ops.soft_values(logits, values, 0.7), together)
    assert torch.equal(values, before)
    assert torch.equal(fused_ops.soft_values(logits, values, 0.7, overwrites=True), together)


class Held(TorchDispatchMode):
    """Finds the most bytes that tensors made in it hold at once."""

    def __init__(self) -> None:
        super().__init__()
        self.most, self._alive = 0, dict[int, tuple[StorageWeakRef, int]]()

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        """Run an operation and look at what there is."""
        made = function(*arguments, **(named or {}))
        if isinstance(made, Tensor):
            storage = made.untyped_storage()
            self._alive[storage._cdata] = StorageWeakRef(storage), storage.nbytes()
        self._alive = {key: each for key, each in self._alive.items() if not each[0].expired()}
        self.most = max(self.most, sum(size for _, size in self._alive.values()))
        return made


def test_a_divergence_holds_two_tensors_as_large_as_the_logits(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(fused_ops, "AT_ONCE", 1000)
    num_tokens, size = int(MASK.sum()), 4000
    logits, others = torch.randn(2, num_tokens, size, generator=torch.Generator().manual_seed(3))
    rows = packed(torch.zeros(*MASK.shape, 1))
    log_others = rows._replace(rows=torch.log_softmax(others, dim=1))
    before = log_others.rows.clone()
    with Held() as held:
        found = masked_losses.divergences(rows._replace(rows=logits.requires_grad_()), log_others)
    assert 2 <= held.most / (4 * num_tokens * size) < 2.5, "p, and log p_0, whose place is taken by its difference"
    expected = losses.divergences(torch.log_softmax(logits, dim=1), before)
    torch.testing.assert_close(rows.take(found), expected)


@pytest.mark.parametrize("output_layer", [{}, {"output_width": 3}, {"tied": True}], ids=["own", "projected", "tied"])
def test_what_an_actor_has_drawn_itself_needs_no_second_output_layer(
    output_layer: dict[str, Any], monkeypatch: pytest.MonkeyPatch
):
    settings = GruActorSettings(embedding=4, hidden=5, attention=3, initial_range=None, **output_layer)
    actor = RecurrentActor(settings, NUM_TOKENS, NUM_TOKENS, torch.Generator().manual_seed(2)).double()
    memory = actor.encode(*pad([[1, 2, 3], [4], [2, 1]]))
    fixed = all_rows.detach(memory)
    drawn = sample(actor, fixed, torch.tensor([3, 6, 5]), torch.Generator().manual_seed(3))
    features, _ = actor.features(memory, drawn.tokens, drawn.mask)
    weights = torch.randn(drawn.tokens.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(4))
    expected = masked_losses.token_log_probabilities(actor.logits_of(features), drawn.tokens)
    expected_gradients = gradients((weights * expected).sum(), actor)
    monkeypatch.setattr(actor.decoder.output_layer, "forward", None)
    found = masked_losses.sampled_log_probabilities(actor, features, drawn)
    assert torch.allclose(found, expected, rtol=0, atol=1e-10)
    assert largest_difference(gradients((weights * found).sum(), actor), expected_gradients) < 1e-10


@pytest.mark.parametrize("num_rows", [0, 1, 4])
def test_gradients_are_those_of_finite_differences(num_rows: int):
    outputs = make_outputs().flatten(0, 1)[:num_rows].detach().requires_grad_()
    tokens, values = TOKENS.flatten()[:num_rows], VALUES.flatten(0, 1)[:num_rows]
    assert torch.autograd.gradcheck(lambda rows: fused_ops.token_log_probabilities(rows, tokens), outputs)
    assert torch.autograd.gradcheck(lambda rows: fused_ops.soft_values(rows, values, 0.7), outputs)
    assert torch.autograd.gradcheck(lambda rows: fused_ops.chosen_and_spread(rows, tokens), outputs)


def test_tokens_of_vanishing_probability_have_finite_logarithms():
    logits = torch.tensor([[0.0, -300.0, 3.0], [-1e4, 1e4, 0.0]], requires_grad=True)
    found = fused_ops.token_log_probabilities(logits, torch.tensor([1, 0]))
    assert torch.allclose(found, torch.log_softmax(logits, 1)[[0, 1], [1, 0]], rtol=1e-6)
    (gradient,) = torch.autograd.grad(found.sum(), logits)
    assert torch.allclose(gradient.sum(1), torch.zeros(2), atol=1e-6)
    soft = fused_ops.soft_values(logits, torch.ones(2, 3), 0.5)
    assert bool(torch.isfinite(soft).all())


def test_gradients_can_be_asked_for_twice():
    outputs = make_outputs()
    for ours, _ in PAIRS.values():
        loss = ours(outputs)
        first, second = (torch.autograd.grad(loss, outputs, retain_graph=True)[0] for _ in range(2))
        assert torch.equal(first, second)
