"""A diagnosis of any actor with any critic, or with a value function of prefixes, against enumeration."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import Tensor

import seqcritic
from foreign_actors import NUM_TOKENS, SIZE, LstmActor, make_actor
from foreign_actors import make_batch as make_foreign_batch
from seqcritic import StateValues, UserError
from seqcritic.analysis.diagnose import Diagnosis, diagnose
from seqcritic.contracts.actor import Actor, LengthLimits
from seqcritic.contracts.batch import Batch, EvaluationSet
from seqcritic.contracts.critic import Critic, StateValueCritic
from seqcritic.errors import NonFiniteError
from seqcritic.models.gru.critic import RecurrentCritic
from seqcritic.models.gru.settings import GruCriticSettings
from seqcritic.report.diagnosis import DiagnosisRow, Figure
from seqcritic.report.pages import render_diagnosis
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.tensors.packed import Packed
from seqcritic.testing import ExactMoments, TabularCritic, TabularStateValues, World, make_world, wrong_values
from seqcritic.testing.exact_moments import make_baseline
from seqcritic.training.model import load_model

COPIES, DRAWS = 24, 320
SCORE = EditDistanceScore(normalise=False)


@pytest.fixture(autouse=True)
def short_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let samples end where the world does."""
    monkeypatch.setattr(Actor, "limits", LengthLimits(beyond_reference=1))


def run(world: World, critic: Critic | StateValues, **changes: object) -> DiagnosisRow:
    given = {"most_draws": DRAWS, "wanted_error": 1e-9, **changes}
    (row,) = diagnose(world.actor, critic, SCORE, world.batch.repeat(COPIES), **given).rows
    return row


def within(figure: Figure, exact: float, errors: float = 4.0) -> bool:
    assert math.isfinite(figure.error)
    return abs(figure.value - exact) <= errors * figure.error + 1e-9


def wrong_state_values(world: World) -> Tensor:
    """V [N, T] of wrong token values: it depends on the prefix alone."""
    return (torch.softmax(world.logits.detach(), 2) * wrong_values(world, 0.5)).sum(2)


def explained(world: World, table: Tensor) -> float:
    """1 − Var(G − V) / Var(G) over the tokens of all sequences, by their probabilities."""
    weights = (world.sequence_probabilities.detach()[:, None] * world.mask)[world.mask]
    weights = weights / weights.sum()
    returns = world.rewards.flip(1).cumsum(1).flip(1)[world.mask]

    def variance(values: Tensor) -> float:
        return float((weights * (values - (weights * values).sum()).square()).sum())

    return 1 - variance(returns - table[world.mask]) / variance(returns)


@pytest.mark.parametrize("kind", ["exact", "wrong"])
def test_a_value_function_is_measured_as_it_is(kind: str):
    world = make_world()
    table = world.exact_state_values() if kind == "exact" else wrong_state_values(world)
    row = run(world, TabularStateValues(world, table), gae_lambda=0.5, label="mine")
    exact = ExactMoments(world, table, make_baseline(), COPIES, 0.5)
    assert [one.name for one in row.estimators] == ["reinforce", "reinforce-critic", "gae"]
    for name in ("reinforce-critic", "gae"):  # the linear baseline is fitted, not the exact one
        assert within(row.estimator(name).variance, exact.variances[name])
        assert within(row.estimator(name).bias_square, exact.bias_squares[name])
    assert (exact.bias_squares["gae"] > 1e-9) == (kind == "wrong") == row.estimator("gae").is_biased
    assert within(Figure(row.explained_variance, row.explained_variance_error), explained(world, table), 5)
    assert within(Figure(row.mean_return, row.mean_return_error), world.expected_return.item())
    assert (row.title, row.updates, row.split) == ("mine (TabularStateValues, GAE of λ = 0.5)", None, "")
    assert row.followed.samples.value == 1


@pytest.mark.parametrize("shaping", [True, False])
def test_the_lookahead_of_exact_state_values_are_exact_token_values(shaping: bool):
    """Without shaping V forecasts the whole score; the token values that it leads to are the same ones."""
    world = make_world(shaping=shaping)
    row = run(world, TabularStateValues(world, world.exact_state_values()), shaping=shaping, most_draws=32)
    found = row.token_values
    assert found is not None
    assert found.correlation == pytest.approx(1.0, abs=0.1)
    assert abs(found.correlation - 1) < 4 * found.correlation_error
    assert found.critic_spread == pytest.approx(found.true_spread, rel=0.2)
    assert math.isnan(found.unlikely_favourites)


def test_a_value_function_that_knows_nothing_is_seen_to():
    world = make_world(shaping=False)
    row = run(world, TabularStateValues(world, torch.zeros_like(world.rewards)), shaping=False, most_draws=32)
    assert row.explained_variance == 0
    assert row.token_values is not None
    assert row.token_values.correlation < 0.9


def test_a_critic_of_tokens_is_measured_as_it_is():
    world = make_world()
    table = wrong_values(world, 0.3)
    row = run(world, TabularCritic(world, table))
    exact = ExactMoments(world, table, make_baseline(), COPIES)
    for name in ("reinforce-critic", "actor-critic", "corrected"):
        assert within(row.estimator(name).variance, exact.variances[name])
        assert within(row.estimator(name).bias_square, exact.bias_squares[name])
    assert row.followed.name == "actor-critic"
    assert row.token_values is not None
    assert 0 < row.token_values.correlation_error < 0.5


class Shifted(StateValues):
    """An off-by-one: entry t has read token t."""

    def values(self, tokens: Tensor, mask: Tensor, batch: Batch) -> Tensor:
        return tokens.double()


class Broken(StateValues):
    def __init__(self, found: Tensor) -> None:
        self.found = found

    def values(self, tokens: Tensor, mask: Tensor, batch: Batch) -> Tensor:
        return self.found.expand(tokens.shape) if self.found.dim() == 0 else self.found


def test_value_functions_that_cannot_be_diagnosed_are_told():
    world = make_world()
    with pytest.raises(UserError, match=r"of Shifted before a token change with that token; .* shift them by one"):
        run(world, Shifted())
    with pytest.raises(UserError, match=r"of Broken have the shape \[3\]; give one for each of the tokens, \[24, "):
        run(world, Broken(torch.zeros(3)))
    with pytest.raises(NonFiniteError, match="a value of the critic is not finite"):
        run(world, Broken(torch.tensor(torch.nan)))


class OfStates(StateValueCritic):
    """What a tabular value function says, as a critic."""

    reads_actor_states = True

    def __init__(self, given: TabularStateValues, num_tokens: int) -> None:
        super().__init__()
        self.given, self.num_tokens = given, num_tokens

    def read(self, batch: Batch, masks: object = None) -> Batch:
        return batch

    def encode(self, references: Tensor, mask: Tensor, masks: object = None) -> Tensor:
        return references

    def masked_state_values(self, memory: Batch, predictions: Tensor, actor_states: Tensor, mask: Tensor) -> Packed:
        assert actor_states.shape[:2] == predictions.shape
        return Packed.of(self.given.values(predictions, mask, memory)[:, :, None], mask)


def test_a_critic_of_states_is_diagnosed_as_the_value_function_that_it_is():
    """Of a critic of tokens that all share their state's value the actor-critic gradient would be 0."""
    world = make_world()
    function = TabularStateValues(world, wrong_state_values(world))
    changes = {"most_draws": 32, "gae_lambda": 0.5}
    row, plain = run(world, OfStates(function, world.logits.shape[2]), **changes), run(world, function, **changes)
    assert row.is_of_states
    assert row.method == "OfStates, GAE of λ = 0.5"
    assert [one.variance for one in row.estimators] == [one.variance for one in plain.estimators]
    assert row.explained_variance == plain.explained_variance
    assert row.token_values is not None
    assert plain.token_values is not None
    assert row.token_values.correlation == plain.token_values.correlation


def make_foreign() -> tuple[Actor, Critic]:
    actor, sizes = make_actor(LstmActor), {"embedding": 5, "hidden": 6, "attention": 4, "initial_range": None}
    critic = RecurrentCritic(GruCriticSettings(**sizes), NUM_TOKENS, SIZE, torch.Generator().manual_seed(2)).double()
    return actor, critic


def quick(actor: Actor, critic: Critic | StateValues, examples: object, **changes: object) -> Diagnosis:
    return diagnose(actor, critic, "edit-distance", examples, most_draws=32, **changes)


def test_an_actor_that_is_not_ours_is_diagnosed_and_left_as_it_was():
    actor, critic = make_foreign()
    actor.embedding.requires_grad_(False)  # type: ignore[operator, union-attr]
    actor.cell.eval()  # type: ignore[operator, union-attr]
    found = quick(actor, critic, [make_foreign_batch(actor.special)])
    (row,) = found.rows
    assert (row.title, row.examples) == ("LstmActor (RecurrentCritic)", 3)
    assert row.gradient_norm > 0
    assert (actor.training, actor.cell.training, critic.training) == (True, False, True)
    assert all(parameter.grad is None for parameter in actor.parameters())
    with pytest.raises(UserError, match="none of its weights can be trained"):
        quick(actor.requires_grad_(False), critic, [make_foreign_batch(actor.special)])


def test_pairs_sets_and_batches_are_examples(finished_run: Path):
    model = load_model(finished_run)
    actor, codec = model.actor, model.codec
    whole = model.task.evaluation_set("valid")
    pairs = list(zip(whole.sources, whole.references, strict=True))

    class Nothing(StateValues):
        def values(self, tokens: Tensor, mask: Tensor, batch: Batch) -> Tensor:
            return torch.zeros(tokens.shape)

    rows = [
        quick(actor, Nothing(), examples, codec=codec, num_examples=5).to_dict()["rows"][0]  # NaN does not equal NaN
        for examples in (pairs, whole, EvaluationSet.of(codec, *zip(*pairs, strict=True)))
    ]
    assert rows[0] == rows[1] == rows[2]
    assert rows[0]["examples"] == 5
    assert quick(actor, Nothing(), Batch.of(codec, ["a b"], ["a b"])).rows[0].examples == 1
    with pytest.raises(UserError, match="pairs of texts need the codec"):
        quick(actor, Nothing(), pairs)
    with pytest.raises(UserError, match="examples: none"):
        quick(actor, Nothing(), [])


def test_what_is_neither_a_run_nor_an_actor_with_its_critic_is_refused(finished_run: Path):
    actor, critic = make_foreign()
    with pytest.raises(UserError, match="NoneType is neither a Critic nor a StateValues"):
        diagnose(actor)  # type: ignore[call-overload]
    with pytest.raises(UserError, match="needs critic, score and examples"):
        diagnose(actor, critic)  # type: ignore[call-overload]
    with pytest.raises(UserError, match="takes critic, score and examples from the runs"):
        diagnose(finished_run, critic)  # type: ignore[call-overload]
    with pytest.raises(UserError, match="most_draws: at least 32"):
        diagnose(actor, critic, SCORE, make_foreign_batch(actor.special), most_draws=31)


def test_a_loaded_model_is_a_run_too(finished_run: Path):
    silent = {"num_examples": 4, "most_draws": 32}
    of_folder = seqcritic.diagnose(str(finished_run), **silent)
    assert seqcritic.diagnose(load_model(finished_run), **silent).rows == of_folder.rows


def test_the_page_and_the_file_hold_value_functions_beside_critics():
    world = make_world()
    rows = (
        run(world, TabularStateValues(world, wrong_state_values(world)), most_draws=32),
        run(world, TabularCritic(world, wrong_values(world)), most_draws=32),
    )
    for kept in (rows, rows[::-1], rows[:1]):
        found = Diagnosis(kept, {"python": "3"})
        assert Diagnosis.from_dict(found.to_dict()).to_dict() == found.to_dict()
        page = render_diagnosis(found)
        assert "one sample of GAE is as near" in page
        assert "the value function explains" in page
        assert "by the state that the token leads to" in page
