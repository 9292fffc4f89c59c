"""The correction by enumeration: the bias that is left, and the η that `auto` finds against the best there is."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

from method_worlds import make_batch as several_examples
from seqcritic.contracts.method_registry import registered_methods
from seqcritic.contracts.networks import Networks
from seqcritic.errors import UserError
from seqcritic.methods import rollout
from seqcritic.methods.actor_critic import ActorCritic
from seqcritic.methods.correction import CORRECTION, HORIZON, REST, AutomaticCorrection, least_error, with_gradient
from seqcritic.methods.entropy_actor_critic import EntropyActorCritic
from seqcritic.settings.io import settings_from, with_method
from seqcritic.settings.methods import method_section
from seqcritic.testing.critics import random_values, wrong_values
from seqcritic.testing.unbiased import assert_unbiased, expected_gradients, method_estimator
from seqcritic.testing.worlds import World, gradients, largest_difference, make_actor, make_batch, make_world
from test_entropy_actor_critic import TEMPERATURE, entropy_sums
from test_estimators import SCORE, Estimator, Table
from test_gradients import make_networks, make_settings

NUM_BATCHES = 200


@pytest.fixture
def world() -> World:
    return make_world(make_actor())


def poor_table(world: World) -> Tensor:
    return wrong_values(world, noise=0.3)


def method_of(correction: float | str, **changes: object) -> ActorCritic:
    settings = method_section()(name="actor-critic", correction=correction, **changes)  # type: ignore[arg-type]
    return ActorCritic(settings, SCORE, True)


def networks_of(world: World, table: Table) -> Networks:
    return Estimator("actor-critic", table=table).networks(world)


def difference(ours: list[Tensor], theirs: list[Tensor]) -> list[Tensor]:
    return [a - b for a, b in zip(ours, theirs, strict=True)]


@pytest.mark.parametrize(("eta", "samples"), [(0.25, 1), (0.5, 2), (1.0, 1)])
def test_so_much_of_the_bias_is_left(eta, samples, world):
    networks = networks_of(world, random_values)
    exact = [-gradient for gradient in world.exact_gradients()]
    estimators = [method_estimator(method_of(each, samples=samples), networks, world) for each in (0.0, eta)]
    biases = [difference(expected_gradients(each, world, samples), exact) for each in estimators]
    assert largest_difference(biases[0], [torch.zeros_like(part) for part in exact]) > 0.1
    assert largest_difference(biases[1], [(1 - eta) * part for part in biases[0]]) < 1e-8


@pytest.mark.parametrize("eta", [0.0, 0.3, 1.0])
def test_with_exact_values_every_correction_gives_the_exact_gradient(eta, world):
    assert_unbiased(method_estimator(method_of(eta), networks_of(world, World.exact_values), world), world)


def test_it_corrects_the_regularised_return_with_any_soft_critic(world):
    networks = networks_of(world, random_values)
    changes = {"correction": 1.0, "entropy_actor_critic": {"temperature": TEMPERATURE}}
    method = EntropyActorCritic(method_section()(name="entropy-actor-critic", **changes), SCORE, True)
    found = expected_gradients(method_estimator(method, networks, world), world)
    again = make_world(networks.actor)
    entropy = (again.sequence_probabilities * entropy_sums(again)[:, 0]).sum()
    exact = gradients(-(again.expected_return + TEMPERATURE * entropy), networks.actor)
    assert largest_difference(found, exact) < 1e-8


def test_the_actor_itself_draws_where_there_is_a_correction():
    for correction, delayed in ((0.0, True), (0.5, False), ("auto", False)):
        settings = make_settings("actor-critic", correction=correction, gamma_theta=0.1)
        assert (make_networks(settings).delayed_actor is not None) == delayed


@pytest.mark.parametrize("wrong", [-0.1, 1.5, "half", True, float("nan")])
def test_values_that_are_no_share_are_refused(wrong):
    with pytest.raises(UserError, match=r"^method\.correction: a number from 0 to 1, or auto, not "):
        settings_from({"method": {"correction": wrong}})


@pytest.mark.parametrize("name", sorted(registered_methods().keys() - {"actor-critic", "entropy-actor-critic"}))
def test_methods_without_a_correction_refuse_it_but_a_comparison_may_hold_them(name):
    with pytest.raises(UserError, match=rf"^method\.correction: only .*leave it 0 for {name}$"):
        settings_from({"method": {"name": name, "correction": "auto"}})
    compared = settings_from({"method": {"correction": 0.5}})
    assert with_method(compared, name).method.correction == 0
    assert with_method(compared, "actor-critic").method.correction == 0.5


# auto


def test_the_least_error_by_hand():
    assert least_error(2.0, 20.0, 0.0, horizon=10) == 0.5  # 2 / (2 + 2)
    assert least_error(2.0, 20.0, -10.0, horizon=10) == 0.75  # (2 + 1) / (2 + 2): the noises cancel in part
    assert least_error(0.0, 20.0, 5.0) == 0.0
    assert least_error(1.0, 1.0, -90.0) == 1.0
    assert least_error(0.0, 0.0, 0.0) == 0.0


def test_it_is_least_of_a_grid():
    bias, variance, covariance, horizon = 0.3, 4.0, -0.7, 8.0
    errors = {
        eta: (1 - eta) ** 2 * bias + (2 * eta * covariance + eta**2 * variance) / horizon
        for eta in (step / 1000 for step in range(1001))
    }
    assert least_error(bias, variance, covariance, horizon) == pytest.approx(
        min(errors, key=errors.__getitem__), abs=1e-3
    )


def test_running_means_by_hand():
    automatic = AutomaticCorrection()
    automatic.observe({REST: torch.tensor([1.0, 0.0]), CORRECTION: torch.tensor([2.0, 0.0])})
    automatic.observe({REST: torch.tensor([1.0, 4.0]), CORRECTION: torch.tensor([0.0, 1.0])})
    # One batch before it, of weight 1: ‖(−2, 1)‖² / 2 and ⟨(0, 4), (−2, 1)⟩ / 2.
    assert automatic.variance == pytest.approx(2.5)
    assert automatic.covariance == pytest.approx(2.0)
    newer = 1 / 1.99  # the second weighs as the first / 0.99
    assert automatic.squared_weights == pytest.approx(newer**2 + (1 - newer) ** 2)
    assert automatic.means[CORRECTION].tolist() == pytest.approx([2 * (1 - newer), newer])
    square = 4 * (1 - newer) ** 2 + newer**2
    assert automatic.squared_bias == pytest.approx(max(0.0, square - automatic.squared_weights * 2.5), abs=1e-6)
    assert automatic.eta == 1.0, "too early to tell"


def draw_batches(
    method: ActorCritic, networks: Networks, world: World, samples: int, seed: int, patch: pytest.MonkeyPatch
) -> AutomaticCorrection:
    """Let the method see 200 batches of so many samples, the weights as they are, and return what it makes of them."""
    generator = torch.Generator().manual_seed(seed)
    probabilities = world.sequence_probabilities.detach()
    for _ in range(NUM_BATCHES):
        rows = torch.multinomial(probabilities, samples, replacement=True, generator=generator).tolist()
        patch.setattr(rollout, "sample", lambda *rest, rows=rows: world.sample_of(rows))
        method.observe(method(networks, make_batch(), torch.Generator(), 0.0).observations)
    assert method.automatic is not None
    return method.automatic


def gradients_of_sequences(world: World, networks: Networks, patch: pytest.MonkeyPatch) -> tuple[Tensor, Tensor]:
    """Return what each sequence gives: the gradient [N, P] without the correction, and that of the correction."""

    def of_all(eta: float) -> Tensor:
        found = []
        for row in range(len(world.sequences)):
            patch.setattr(rollout, "sample", lambda *rest, row=row: world.sample_of([row]))
            outcome = method_of(eta)(networks, make_batch(), torch.Generator(), 0.0)
            found.append(torch.cat([part.flatten() for part in gradients(outcome.loss, networks.actor)]))
        return torch.stack(found)

    plain = of_all(0.0)
    return plain, of_all(1.0) - plain


class Exact:
    """Squared bias, variance and covariance of a batch of so many samples, exactly, and the η of least error."""

    def __init__(self, world: World, networks: Networks, samples: int, patch: pytest.MonkeyPatch) -> None:
        probabilities = world.sequence_probabilities.detach()
        plain, correction = gradients_of_sequences(world, networks, patch)
        mean = probabilities @ correction
        away = correction - mean
        exact = -torch.cat([part.flatten() for part in world.exact_gradients()])
        self.squared_bias = float((probabilities @ plain - exact).square().sum())
        self.variance = float(probabilities @ away.square().sum(1)) / samples
        self.covariance = float(probabilities @ ((plain - probabilities @ plain) * away).sum(1)) / samples
        errors = torch.tensor([self.error(eta / 1000) for eta in range(1001)])
        self.best = int(errors.argmin()) / 1000

    def error(self, eta: float) -> float:
        """Return the mean squared error over the horizon, but for what does not depend on η."""
        noise = 2 * eta * self.covariance + eta**2 * self.variance
        return (1 - eta) ** 2 * self.squared_bias + noise / HORIZON


@pytest.mark.parametrize("samples", [1, 16])
@pytest.mark.parametrize("table", [World.exact_values, poor_table, random_values])
def test_auto_is_near_the_best_for_most_seeds(table, samples, world, monkeypatch):
    """For a critic that errs every seed is near; for an exact one some take what is left of the noise for a bias."""
    networks = networks_of(world, table)
    exact = Exact(world, networks, samples, monkeypatch)
    plain, correction = gradients_of_sequences(world, networks, monkeypatch)
    probabilities = world.sequence_probabilities.detach()
    off = []
    for seed in range(1, 21):
        generator, automatic = torch.Generator().manual_seed(seed), AutomaticCorrection()
        for _ in range(NUM_BATCHES):
            rows = torch.multinomial(probabilities, samples, replacement=True, generator=generator)
            automatic.observe({REST: plain[rows].mean(0), CORRECTION: correction[rows].mean(0)})
        off.append(abs(automatic.eta - exact.best))
    near = sum(each <= 0.05 for each in off)
    if table is not World.exact_values:
        assert near == 20
    else:
        assert near > 10
        assert sum(off) / 20 < 0.2


@pytest.mark.parametrize("samples", [1, 16, 1000])
@pytest.mark.parametrize("table", [World.exact_values, poor_table, random_values])
def test_auto_finds_the_correction_of_least_error(table, samples, world, monkeypatch):
    networks = networks_of(world, table)
    exact = Exact(world, networks, samples, monkeypatch)
    method = method_of("auto", samples=samples)
    automatic = draw_batches(method, networks, world, samples, 1, monkeypatch)
    assert automatic.eta == pytest.approx(exact.best, abs=0.05)


def test_auto_is_right_on_average_where_200_samples_tell_little(world, monkeypatch):
    """A critic whose bias is as long as the noise of some 12 batches: a single run of 200 samples is off by more."""
    networks = networks_of(world, lambda world: wrong_values(world, noise=0.1))
    exact = Exact(world, networks, 1, monkeypatch)
    assert 0.85 < exact.best < 0.95
    plain, correction = gradients_of_sequences(world, networks, monkeypatch)
    probabilities = world.sequence_probabilities.detach()
    found = []
    for seed in range(100):
        generator, automatic = torch.Generator().manual_seed(seed), AutomaticCorrection()
        for row in torch.multinomial(probabilities, NUM_BATCHES, replacement=True, generator=generator).tolist():
            automatic.observe({REST: plain[row], CORRECTION: correction[row]})
        found.append((automatic.eta, automatic.squared_bias, automatic.variance, automatic.covariance))
    etas, biases, variances, covariances = torch.tensor(found).T
    assert float(etas.mean()) == pytest.approx(exact.best, abs=0.05)
    assert float(biases.mean()) == pytest.approx(exact.squared_bias, rel=0.15)
    assert float(variances.mean()) == pytest.approx(exact.variance, rel=0.05)
    assert float(covariances.mean()) == pytest.approx(exact.covariance, abs=0.05 * exact.variance)


@pytest.mark.parametrize("frozen", [False, True], ids=["all weights", "some weights frozen"])
@pytest.mark.parametrize("changes", [{}, {"likelihood_weight": 0.1, "samples": 2}])
def test_the_gradient_with_auto_is_that_of_the_number_it_has_found(changes, frozen):
    outcomes = {}
    networks = make_networks(make_settings("actor-critic", correction="auto", **changes))
    for parameter in [*networks.actor.parameters()][::2] if frozen else []:
        parameter.requires_grad_(False)  # as those below an adapter are
    method = ActorCritic(make_settings("actor-critic", correction="auto", **changes).method, SCORE, True)
    for seed in range(30):
        outcome = method(networks, several_examples(), torch.Generator().manual_seed(seed), 0.0)
        method.observe(outcome.observations)
    assert method.automatic is not None
    eta = method.automatic.eta
    assert 0 < eta < 1
    fixed = ActorCritic(make_settings("actor-critic", correction=eta, **changes).method, SCORE, True)
    for name, each in (("auto", method), ("fixed", fixed)):
        own = copy.deepcopy(networks)
        outcome = each(own, several_examples(), torch.Generator().manual_seed(99), 0.0)
        outcome.loss.backward()
        trained = [part.grad for network in (own.actor, own.critic) for part in network.parameters()]  # type: ignore[union-attr]
        trained = [gradient for gradient in trained if gradient is not None]
        assert len(trained) > 5
        outcomes[name] = [outcome.loss.detach(), *trained]
        assert ("correction" in outcome.measurements) == (name == "auto")
    assert largest_difference(outcomes["auto"], outcomes["fixed"]) < 1e-10


def test_a_loss_with_a_known_gradient():
    weights = [torch.randn(2, 3, requires_grad=True), torch.randn(4, requires_grad=True)]
    gradient = torch.arange(10.0)
    loss = with_gradient(torch.tensor(7.0), weights, gradient)
    loss.backward()
    assert loss.item() == 7.0
    assert torch.equal(torch.cat([weight.grad.flatten() for weight in weights]), gradient)
