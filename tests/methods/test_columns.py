"""Critics that value some tokens one by one and all others together, against the expansion to all tokens."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from method_worlds import NUM_TOKENS, SCORE, make_batch, make_networks, make_settings
from seqcritic.contracts.batch import Batch, pad
from seqcritic.contracts.critic import Critic
from seqcritic.contracts.method import Outcome
from seqcritic.contracts.method_registry import registered_methods
from seqcritic.contracts.networks import Networks
from seqcritic.data.vocabulary import END
from seqcritic.errors import UserError
from seqcritic.methods import fused_ops, losses, masked_losses
from seqcritic.methods.columns import choose_columns
from seqcritic.methods.policy_evaluation import CriticTraining
from seqcritic.models.gru.critic import RecurrentCritic
from seqcritic.settings.io import load_recipe
from seqcritic.settings.tree import Settings
from seqcritic.tensors.packed import Packed
from seqcritic.tensors.plain_loops import use_plain_loops
from seqcritic.tensors.values import Columns, Values
from seqcritic.testing.critics import TabularCritic
from seqcritic.testing.unbiased import expected_gradients, method_estimator
from seqcritic.testing.worlds import World, gradients, largest_difference, make_actor, make_world
from seqcritic.testing.worlds import make_batch as make_pair
from test_estimators import Estimator
from test_masked_losses import MASK, TOKENS, make_outputs, packed, weighted
from test_masked_losses import NUM_TOKENS as NUM_OUTPUTS

CRITIC_METHODS = ("actor-critic", "reinforce-critic", "entropy-actor-critic", "dagger")
every_choice = pytest.mark.parametrize("ids", [[1], [0, 2, 4], [0, 1, 2, 3, 4]], ids=["one", "some", "all"])


def make_rows(ids: list[int]) -> Tensor:
    generator = torch.Generator().manual_seed(5)
    return torch.randn(*MASK.shape, len(ids) + 1, dtype=torch.float64, generator=generator).requires_grad_()


def values_of(rows: Tensor, ids: list[int]) -> Values:
    return Values(Packed.of(rows, MASK), Columns(torch.tensor(ids), NUM_OUTPUTS))


@every_choice
@pytest.mark.parametrize("temperature", [0.0, 0.7])
@pytest.mark.parametrize("turned", [False, True])
def test_expected_values_and_their_gradient_are_those_of_all_tokens(ids: list[int], temperature: float, turned: bool):
    logits, rows = make_outputs(), make_rows(ids).detach()
    order = torch.arange(int(MASK.sum()))
    values = values_of(rows, ids)
    dense = values.padded()
    if turned:
        order = order.flip(0)
        values = values._replace(
            packed=Packed(values.packed.rows[order], values.packed.positions[order], values.packed.shape)
        )

    def ours() -> Tensor:
        return weighted(masked_losses.soft_values(packed(logits), values, temperature))

    expected = losses.expected_values(torch.softmax(logits, 2), dense)
    expected = weighted(expected + temperature * losses.entropies(torch.log_softmax(logits, 2)))
    assert ours().item() == pytest.approx(expected.item(), abs=1e-12)
    (found,), (gradient,) = (torch.autograd.grad(loss, logits) for loss in (ours(), expected))
    assert torch.allclose(found, gradient, rtol=0, atol=1e-12)
    with use_plain_loops():
        assert ours().item() == pytest.approx(expected.item(), abs=1e-12)
    if not temperature:
        probabilities = packed(torch.softmax(logits.detach(), 2))
        constant = weighted(masked_losses.expected_values(probabilities, values))
        assert constant.item() == pytest.approx(expected.item(), abs=1e-12)


@every_choice
def test_chosen_values_and_penalties_with_their_gradients_are_those_of_all_tokens(ids: list[int]):
    rows = make_rows(ids)

    def ours() -> tuple[Tensor, Tensor]:
        return masked_losses.chosen_values_and_penalties(values_of(rows, ids), TOKENS)

    dense = values_of(rows, ids).padded()
    theirs = losses.gather_chosen(dense, TOKENS), losses.variance_penalty(dense)
    for parts in (slice(0, 2), slice(0, 1), slice(1, 2)):
        expected = weighted(*theirs[parts])
        assert weighted(*ours()[parts]).item() == pytest.approx(expected.item(), abs=1e-12)
        (found,) = torch.autograd.grad(weighted(*ours()[parts]), rows)
        (gradient,) = torch.autograd.grad(expected, rows, retain_graph=True)
        assert torch.allclose(found, gradient, rtol=0, atol=1e-12)
        with use_plain_loops():
            assert weighted(*ours()[parts]).item() == pytest.approx(expected.item(), abs=1e-12)


@pytest.mark.parametrize("num_rows", [0, 3])
def test_gradients_are_those_of_finite_differences(num_rows: int):
    ids = torch.tensor([1, 3])
    logits = make_outputs().flatten(0, 1)[:num_rows].detach().requires_grad_()
    rows = make_rows([1, 3]).flatten(0, 1)[:num_rows].detach().requires_grad_()
    positions = torch.tensor([0, 2, 1])[:num_rows]
    assert torch.autograd.gradcheck(lambda given: fused_ops.column_values(given, rows.detach(), ids), logits)
    assert torch.autograd.gradcheck(lambda given: fused_ops.chosen_and_spread(given, positions, 3), rows)


def test_many_equal_values_are_not_lost_to_rounding():
    rows = torch.full((1, 4), 1000.0)
    rows[0, 0] = 1000.5
    columns = Columns(torch.tensor([0, 1, 2]), 30_000)
    found = fused_ops.chosen_and_spread(rows, torch.tensor([0]), columns.num_others)[1]
    exact = losses.variance_penalty(columns.expand(rows.double()))
    assert found.item() == pytest.approx(exact.item(), rel=1e-5)


def with_columns(settings: Settings, num: int | None, **changes: object) -> Settings:
    critic = settings.critic.model_copy(update={"columns": num, **changes})
    return settings.model_copy(update={"critic": critic})


def take_step(settings: Settings, networks: Networks, batch: Batch, method: str | None = None) -> Outcome:
    built = (CriticTraining if method == "critic" else registered_methods()[settings.method.name])(
        settings.method, SCORE, settings.score.shaping
    )
    return built(networks, batch, torch.Generator().manual_seed(6), 0.0)


def few_references() -> Batch:
    """Of the six tokens, references have the end and two others."""
    return Batch(*pad([[1, 2, 3], [4]]), *pad([[1, 2], [2]]))


def assert_same_step(ours: Outcome, our_networks: Networks, theirs: Outcome, their_networks: Networks) -> None:
    assert ours.measurements.keys() == theirs.measurements.keys()
    for name, measured in ours.measurements.items():
        assert float(measured) == pytest.approx(float(theirs.measurements[name]), abs=1e-12), name
    assert ours.loss.item() == pytest.approx(theirs.loss.item(), abs=1e-12)
    for name in ("actor", "critic"):
        found, expected = (
            gradients(outcome.loss, getattr(networks, name))
            for outcome, networks in ((ours, our_networks), (theirs, their_networks))
        )
        assert max(float(part.abs().max()) for part in expected) > 1e-4
        assert largest_difference(found[: len(expected)], expected) < 1e-12
        assert all(float(part.abs().max()) == 0 for part in found[len(expected) :]), "no token has the rest's value"


@pytest.mark.parametrize(
    ("method", "changes"),
    [
        (method, changes)
        for method in (*CRITIC_METHODS, "critic")
        for changes in ({}, {"dropout": 0.3}, {"tied": True}, {"residual_on": "lookahead"}, {"embeddings": "actor"})
        if method != "dagger" or "residual_on" not in changes  # which the settings refuse
    ],
    ids=str,
)
def test_with_a_column_for_every_token_a_step_is_that_of_all_tokens(method: str, changes: dict[str, object]):
    settings = make_settings("actor-critic" if method == "critic" else method)
    settings = with_columns(settings, None, **changes)
    full = with_columns(settings, NUM_TOKENS)
    networks, others = make_networks(full), make_networks(settings)
    first, second = (
        take_step(chosen, both, make_batch(), method) for chosen, both in ((full, networks), (settings, others))
    )
    if method == "critic":
        assert first.loss.item() == pytest.approx(second.loss.item(), abs=1e-12)
        found, expected = (gradients(step.loss, both.critic) for step, both in ((first, networks), (second, others)))
        assert largest_difference(found[: len(expected)], expected) < 1e-12
    else:
        assert_same_step(first, networks, second, others)


class ExpandedCritic(RecurrentCritic):
    """A critic that is asked for columns and answers for all tokens, each other one with the value of the rest."""

    num_asked = 0

    def masked_values(
        self,
        memory: Tensor,
        predictions: Tensor,
        actor_states: Tensor,
        mask: Tensor,
        columns: Columns | None = None,
    ) -> Values:
        assert columns is not None
        assert columns.num_others > 1, "or the test shows little"
        ExpandedCritic.num_asked += 1
        return Values(super().masked_values(memory, predictions, actor_states, mask, columns).expanded())


@pytest.mark.parametrize(
    "changes", [{}, {"dropout": 0.3}, {"residual_on": "lookahead"}, {"embeddings": "actor"}], ids=str
)
@pytest.mark.parametrize("method", ["actor-critic", "reinforce-critic", "entropy-actor-critic"])
def test_a_step_is_that_of_the_expanded_values(method: str, changes: dict[str, object]):
    settings = with_columns(make_settings(method, likelihood_weight=0.1), 2, **changes)
    networks, others = make_networks(settings), make_networks(settings)
    for critic in (others.critic, others.target_critic):
        critic.__class__ = ExpandedCritic
    before = ExpandedCritic.num_asked
    expanded = take_step(settings, others, few_references())
    assert ExpandedCritic.num_asked > before
    ours = take_step(settings, networks, few_references())
    assert_same_step(ours, networks, expanded, others)
    assert float(networks_gradient(ours, networks.critic.rest.weight).abs().max()) > 1e-4, "the rest learns"


def networks_gradient(outcome: Outcome, weight: Tensor) -> Tensor:
    return torch.autograd.grad(outcome.loss, weight, retain_graph=True)[0]


@pytest.mark.parametrize("expert", ["column", "rest"])
def test_the_expert_of_dagger_follows_columns_and_rest(expert: str):
    settings = with_columns(make_settings("dagger"), 2)
    networks = make_networks(settings)
    torch.nn.init.constant_(networks.critic.rest.bias, 50.0 if expert == "rest" else -50.0)
    outcome = take_step(settings, networks, few_references())
    assert bool(torch.isfinite(outcome.loss))
    found = gradients(outcome.loss, networks.actor.decoder.output_layer)[-1]  # of the biases: p − [a = expert]
    advised = set((found < 0).nonzero()[:, 0].tolist())
    assert advised
    assert advised <= {END, 1, 2} if expert == "column" else not advised & {END, 1, 2}


class ReadingCritic(RecurrentCritic):
    """A critic that reads a prediction from its beginning at every step, as the contract does without its own way."""

    start, step, next_values = Critic.start, Critic.step, Critic.next_values


def test_a_critic_that_cannot_step_answers_for_columns_too():
    critic = make_networks(with_columns(make_settings("dagger"), 2)).critic
    memory = critic.encode(*pad([[1, 2], [2]]))
    views = torch.randn(2, 2, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(7))
    columns, tokens = Columns(torch.tensor([0, 1, 4]), NUM_TOKENS), torch.tensor([3, 1])
    found = []
    for kind in (RecurrentCritic, ReadingCritic):
        critic.__class__ = kind
        state = critic.step(memory, critic.start(memory, views[0]), tokens, views[1])
        found.append(critic.next_values(memory, state, columns))
    assert found[0].packed.rows.shape == (2, 4)
    assert torch.allclose(found[0].packed.rows, found[1].packed.rows, rtol=0, atol=1e-12)
    assert torch.equal(found[0].packed.positions, found[1].packed.positions)


def test_the_columns_are_of_references_and_the_likeliest():
    critic = make_networks(with_columns(make_settings("actor-critic"), 4)).critic
    special = make_networks(make_settings("actor-critic")).actor.special
    references, mask = pad([[9, 2], [2]])
    batch = Batch(references, mask, references, mask)
    probabilities = torch.zeros(3, 12)
    probabilities[:, 7], probabilities[0, 5], probabilities[:, 2] = 0.3, 0.8, 0.1

    def choose(num: int | None) -> list[int] | None:
        critic.num_columns = num
        columns = choose_columns(critic, special, batch, probabilities)
        assert columns is None or columns.num_tokens == 12
        return None if columns is None else columns.ids.tolist()

    assert choose(None) is None
    assert choose(1) == [END, 2, 9], "references have theirs, however few are asked for"
    assert choose(4) == [END, 2, 7, 9], "three times 0.3 is more than once 0.8"
    assert choose(5) == [END, 2, 5, 7, 9]
    assert choose(99) == list(range(12))


class TabularColumns(TabularCritic):
    """A table of which only given columns are told one by one; all others have the value of the first of them."""

    num_columns = 2
    error = 0.0
    shared = True  # whether the others must really have one value

    def masked_values(
        self,
        memory: Tensor,
        predictions: Tensor,
        actor_states: Tensor,
        mask: Tensor,
        columns: Columns | None = None,
    ) -> Values:
        assert columns is not None
        dense = super().masked_values(memory, predictions, actor_states, mask).packed
        others = [token for token in range(columns.num_tokens) if token not in columns.ids.tolist()]
        assert others == [2, 3]
        rest = dense.rows[:, others]
        assert not self.shared or torch.allclose(rest[:, 0], rest[:, 1], rtol=0, atol=1e-12)
        rows = torch.cat([dense.rows[:, columns.ids], rest[:, :1] + self.error], dim=1)
        return Values(dense._replace(rows=rows), columns)


def twin_tokens() -> World:
    """A world of four tokens; 2 and 3 are in no reference and the actor cannot tell them apart."""
    actor = make_actor(num_tokens=4)
    output = actor.decoder.output_layer
    with torch.no_grad():
        for table in (actor.decoder.embedding.weight, output.weight, output.bias):
            table[3] = table[2]
    return make_world(actor, batch=make_pair((1, 1)))


def bias_of(estimator: Estimator, shared: bool, error: float) -> float:
    """The bias of an estimator whose critic is off by an error in the value of the rest."""
    world = twin_tokens()
    networks = estimator.networks(world)
    for critic in (networks.critic, networks.target_critic):
        critic.__class__ = TabularColumns
        critic.error, critic.shared = error, shared
    found = expected_gradients(method_estimator(estimator.method(), networks, world), world)
    return largest_difference(found, [-gradient for gradient in world.exact_gradients()])


@pytest.mark.parametrize("error", [0.0, 1.0])
def test_actor_critic_is_unbiased_where_the_rest_has_its_true_value(error: float):
    estimator = Estimator("actor-critic", table=World.exact_values)
    assert (bias_of(estimator, True, error) < 1e-8) == (error == 0)


@pytest.mark.parametrize("name", ["reinforce-critic", "actor-critic"])
def test_control_variates_of_columns_and_rest_cost_no_bias_whatever_they_are(name: str):
    knobs = (("correction", 1.0),) if name == "actor-critic" else ()
    estimator = Estimator(name, knobs=knobs, table=lambda world: world.exact_values().cos() * 3)
    assert bias_of(estimator, False, 1.0) < 1e-8


def test_the_number_of_columns_is_checked():
    assert load_recipe("demo", ["critic.columns=20"]).critic.columns == 20
    assert load_recipe("demo", ["critic.columns=null"]).critic.columns is None
    with pytest.raises(UserError, match=r"^critic.columns: "):
        load_recipe("demo", ["critic.columns=0"])
    with pytest.raises(UserError, match=r"^critic.columns: "):
        load_recipe("demo", ["critic.columns=10000001"])
