"""Products in bfloat16: the compiled ones against rounded factors, gradients against float64, what stays float32."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import pytest
import torch
from torch import Tensor, nn

from seqcritic import load_model
from seqcritic.contracts.batch import Batch, pad
from seqcritic.decoding.beam import beam_search
from seqcritic.decoding.sampling import greedy, sample
from seqcritic.methods.masked_losses import chosen_values_and_penalties, likelihood_loss, sampled_log_probabilities
from seqcritic.models.gru.actor import RecurrentActor
from seqcritic.models.gru.critic import RecurrentCritic
from seqcritic.models.gru.settings import GruActorSettings, GruCriticSettings
from seqcritic.models.products import bfloat16_products, linear
from seqcritic.native import products
from seqcritic.native.kernels import SWITCH
from seqcritic.native.products import PackedFactor, RoundedFactor, narrow_factor

NUM_TOKENS = 90
needs_instructions = pytest.mark.skipif(not products.describe().startswith("yes"), reason="no AVX512-BF16 here")


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape)))


@needs_instructions
@pytest.mark.parametrize(
    ("rows", "depth", "width"), [(1, 1, 1), (5, 7, 3), (13, 0, 20), (64, 130, 200), (193, 1031, 65)]
)
@pytest.mark.parametrize("left_turned", [False, True])
@pytest.mark.parametrize("right_turned", [False, True])
def test_the_instructions_multiply_as_rounded_factors_do(
    rows: int, depth: int, width: int, left_turned: bool, right_turned: bool
):
    left = numbers(depth, rows).t() if left_turned else numbers(rows, depth)
    right = numbers(width, depth).t() if right_turned else numbers(depth, width)
    bias, wider, expected = numbers(width), numbers(rows, 2 * width), numbers(rows, width)
    out, beside = wider[:, :width], wider[:, width:].clone()
    packed, rounded = narrow_factor(right), RoundedFactor(right)
    assert isinstance(packed, PackedFactor)
    for change in (
        lambda factor, to: factor.write(left, to, bias),
        lambda factor, to: factor.add(left, to),
        lambda factor, to: factor.write(left, to),
    ):
        change(packed, out)
        change(rounded, expected)
        torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5 * max(1, depth) ** 0.5)
    assert torch.equal(wider[:, width:], beside), "nothing is written past the last column"


@needs_instructions
def test_a_row_does_not_depend_on_the_others():
    left, factor = numbers(200, 100), narrow_factor(numbers(100, 70))
    together, alone = left.new_empty(200, 70), left.new_empty(1, 70)
    factor.write(left, together)
    for row in (0, 5, 191, 192, 199):
        factor.write(left[row : row + 1], alone)
        assert torch.equal(alone[0], together[row])


def random_batch() -> Batch:
    generator = torch.Generator().manual_seed(1)
    lengths = torch.randint(3, 9, (24,), generator=generator).tolist()
    lines = [torch.randint(1, NUM_TOKENS, (length,), generator=generator).tolist() for length in lengths]
    return Batch(*pad(lines), *pad([[*line, 0] for line in lines]))


def make_actor(**options: object) -> RecurrentActor:
    sizes = {"embedding": 40, "hidden": 48, "attention": 32, "initial_range": 0.3}
    generator = torch.Generator().manual_seed(3)
    return RecurrentActor(GruActorSettings(**sizes | options), NUM_TOKENS, NUM_TOKENS, generator)


def make_critic(**options: object) -> RecurrentCritic:
    sizes = {"embedding": 40, "hidden": 48, "attention": 32, "initial_range": 0.3}
    generator = torch.Generator().manual_seed(4)
    return RecurrentCritic(GruCriticSettings(**sizes | options), NUM_TOKENS, 48, generator)


def of_references(actor: RecurrentActor, batch: Batch) -> Tensor:
    memory = actor.encode(batch.sources, batch.source_mask)
    features, _ = actor.features(memory, batch.references, batch.reference_mask)
    return likelihood_loss(actor.logits_of(features), batch.references, batch.reference_mask)


def of_own_samples(actor: RecurrentActor, batch: Batch) -> Tensor:
    """The loss of REINFORCE, of samples that are the same whatever the precision."""
    memory = actor.encode(batch.sources, batch.source_mask)
    lengths = batch.reference_mask.sum(dim=1)
    given = (batch.references, lengths)
    drawn = sample(actor, memory, lengths, torch.Generator().manual_seed(5), given)
    features, _ = actor.features(memory, drawn.tokens, drawn.mask)
    weights = torch.arange(len(batch), device=batch.sources.device).remainder(3).sub(1)
    return (sampled_log_probabilities(actor, features, drawn).sum(dim=1) * weights).sum()


def of_values(critic: RecurrentCritic, batch: Batch) -> Tensor:
    memory = critic.encode(batch.references, batch.reference_mask)
    views = numbers(*batch.references.shape, 48).to(next(critic.parameters()).dtype)
    values = critic.masked_values(memory, batch.references, views, batch.reference_mask)
    chosen, penalties = chosen_values_and_penalties(values, batch.references)
    return (chosen.square() + penalties).sum()


def gradient(network: nn.Module, loss: Callable[..., Tensor], narrow: bool) -> Tensor:
    for weight in network.parameters():
        weight.grad = None
    with bfloat16_products() if narrow else nullcontext():
        total = loss(network, random_batch())
    assert total.dtype == next(network.parameters()).dtype
    total.backward()
    return torch.cat([weight.grad.double().flatten() for weight in network.parameters()])


@pytest.mark.parametrize("native", ["1", "0"])
@pytest.mark.parametrize(
    ("make", "options", "loss"),
    [
        (make_actor, {}, of_references),
        (make_actor, {"tied": True}, of_references),
        (make_actor, {"output_width": 24}, of_references),
        (make_actor, {"encoder": "window"}, of_references),
        (make_actor, {}, of_own_samples),
        (make_critic, {}, of_values),
    ],
)
def test_gradients_are_within_the_rounding_of_bfloat16(
    make: Callable[..., nn.Module],
    options: dict[str, object],
    loss: Callable[..., Tensor],
    native: str,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv(SWITCH, native)
    narrow = gradient(make(**options), loss, narrow=True)
    exact = gradient(make(**options).double(), loss, narrow=False)
    error = float((narrow - exact).norm() / exact.norm())
    assert 1e-4 < error < 0.01, "narrow, and no worse than that"
    assert torch.cosine_similarity(narrow, exact, dim=0) > 0.9999


def test_weights_are_made_ready_once_and_again_when_they_change(monkeypatch: pytest.MonkeyPatch):
    made: list[Tensor] = []
    make = products.narrow_factor
    monkeypatch.setattr("seqcritic.models.products.narrow_factor", lambda matrix: made.append(matrix) or make(matrix))
    inputs, weight = numbers(3, 4), nn.Parameter(numbers(5, 4))
    with bfloat16_products(), torch.no_grad():
        first = linear(inputs, weight)
        linear(inputs, weight)
        linear(inputs.t(), weight[:3, :3])  # another form of it
        linear(inputs.t(), weight[:3, :3])
        assert len(made) == 2
        weight.mul_(2)
        assert torch.equal(linear(inputs, weight), 2 * first)
    with bfloat16_products():
        linear(inputs, weight)
    assert len(made) == 4


def test_nothing_is_narrow_where_it_is_not_asked_for():
    inputs, weight, bias = numbers(3, 4), numbers(5, 4), numbers(5)
    expected = nn.functional.linear(inputs, weight, bias)
    with bfloat16_products():
        assert not torch.equal(linear(inputs, weight, bias), expected)
        wide = linear(inputs.double(), weight.double(), bias.double())
    assert torch.equal(linear(inputs, weight, bias), expected)
    assert torch.equal(wide, nn.functional.linear(inputs.double(), weight.double(), bias.double()))


def test_steps_score_and_search_with_the_same_rounding():
    actor, batch = make_actor(output_width=24), random_batch()
    with bfloat16_products(), torch.no_grad():
        memory = actor.encode(batch.sources, batch.source_mask)
        drawn = sample(actor, memory, batch.reference_mask.sum(dim=1), torch.Generator().manual_seed(5))
        logits, _ = actor.score(memory, drawn.tokens)
        found = beam_search(actor, batch.sources, batch.source_mask, 1)
        stepped = greedy(actor, batch.sources, batch.source_mask)
    scored = torch.log_softmax(logits, dim=2).gather(2, drawn.tokens[:, :, None])[:, :, 0]
    assert (scored - drawn.token_log_probabilities)[drawn.mask].abs().max() < 1e-5
    agreeing = [best[0].tokens[:3] == row[:3].tolist() for best, row in zip(found, stepped, strict=True)]
    assert sum(agreeing) >= 22, "the search sums in another order, which a near tie may notice"


def test_a_trained_model_predicts_the_same():
    model = load_model("spelling-paper")
    text = "every line has its own words and most of them are spelled as they should be but for a letter or two"
    lines = [text[first : first + 30] for first in range(0, len(text) - 30, 3)]
    lines += [line.replace(letter, other) for line in lines for letter, other in ("ea", "sz", "nm", "hj")]
    expected = model.predict(lines)
    with bfloat16_products():
        narrow = model.predict(lines)
    with bfloat16_products(predicting=True):
        assert model.predict(lines) == expected, "small matrices are multiplied in float32"
    assert sum(one == other for one, other in zip(narrow, expected, strict=True)) >= 0.98 * len(lines)


def test_predictions_multiply_narrowly_with_large_matrices_alone(monkeypatch: pytest.MonkeyPatch):
    actor, batch = make_actor(hidden=40, attention=16), random_batch()
    large = actor.decoder.output_layer.weight.numel()
    assert large > max(weight.numel() for weight in actor.parameters() if weight.numel() != large)
    monkeypatch.setattr("seqcritic.models.products.SMALL", large - 1)
    with torch.no_grad(), bfloat16_products(predicting=True):
        memory = actor.encode(batch.sources, batch.source_mask)
        state = actor.step(memory, actor.start(memory), batch.references[:, 0])
        logits = actor.logits(state)
    with torch.no_grad():
        exact = actor.step(memory, actor.start(memory), batch.references[:, 0])
        assert torch.equal(state.hidden, exact.hidden)
        assert 1e-4 < (logits - actor.logits(exact)).norm() / logits.norm() < 0.01
