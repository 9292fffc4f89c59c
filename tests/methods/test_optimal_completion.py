"""Optimal completions: the dynamic programme against all completions, and the losses against enumeration."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from rapidfuzz.distance import Levenshtein
from torch import Tensor

from seqcritic.contracts.actor import SpecialTokens
from seqcritic.contracts.batch import Batch, RawTexts
from seqcritic.contracts.method import Outcome
from seqcritic.contracts.networks import Networks
from seqcritic.contracts.score import Scorable
from seqcritic.errors import UserError
from seqcritic.methods import rollout
from seqcritic.methods.optimal_completion import OptimalCompletion, optimal_policy
from seqcritic.methods.optimal_values import optimal_values
from seqcritic.models.gru.actor import RecurrentActor
from seqcritic.scores.bleu import BleuScore
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.settings.io import settings_from
from seqcritic.settings.methods import method_section
from seqcritic.testing.worlds import (
    NUM_TOKENS,
    World,
    gradients,
    largest_difference,
    make_actor,
    make_batch,
    make_world,
)

END, LONGEST = 0, 4
SPECIAL = SpecialTokens(end=(END,), padding=END)
ORDINARY = (1, 2, 3)
UNKNOWN = 3
REFERENCES = [(), (1,), (1, 2), (2, 2, 1), (1, 3, 2), (3, 3), (3, 1, 3)]


def distance(prediction: tuple[int, ...], reference: tuple[int, ...], unknown: int | None) -> int:
    """The edit distance where an unknown token of the reference equals nothing."""
    return Levenshtein.distance(prediction, [-1 if token == unknown else token for token in reference])


def worth(prediction: tuple[int, ...], references: list[tuple[int, ...]], score: EditDistanceScore) -> float:
    """Minus the distance to the nearest reference, or the best share."""
    if score.normalise:
        return max(1 - distance(prediction, each, score.unknown) / max(len(each), 1) for each in references)
    return -min(distance(prediction, each, score.unknown) for each in references)


def brute_force(prefix: tuple[int, ...], references: list[tuple[int, ...]], score: EditDistanceScore) -> list[float]:
    """The best that any completion attains after each next token."""
    completions = [each for length in range(LONGEST + 1) for each in itertools.product(ORDINARY, repeat=length)]
    found = [worth(prefix, references, score)]  # the end
    for token in ORDINARY:
        found.append(max(worth((*prefix, token, *completion), references, score) for completion in completions))
    return found


def padded(sequences: list[tuple[int, ...]]) -> tuple[Tensor, Tensor]:
    width = max(len(each) for each in sequences) + 1
    tokens = torch.tensor([[*each, *[END] * (width - len(each))] for each in sequences])
    return tokens, torch.tensor([len(each) for each in sequences])


def values_of(
    prefixes: list[tuple[int, ...]], references: list[list[tuple[int, ...]]], score: EditDistanceScore
) -> Tensor:
    """What the dynamic programme says after every prefix, [number, V]."""
    tokens, lengths = padded(prefixes)
    given, given_lengths = padded([each for own in references for each in own])
    size = (len(prefixes), -1)
    evaluated = Scorable(tokens, lengths, given.view(*size, given.shape[1]), given_lengths.view(size))
    last = torch.arange(tokens.shape[1]) == lengths[:, None]
    return optimal_values(score, evaluated, last, 1 + len(ORDINARY), SPECIAL).rows


@pytest.mark.parametrize("unknown", [None, UNKNOWN])
@pytest.mark.parametrize("reference", REFERENCES)
def test_optimal_values_are_those_of_brute_force_over_all_completions(reference: tuple[int, ...], unknown: int | None):
    score = EditDistanceScore(normalise=False, unknown=unknown)
    prefixes = [each for length in range(4) for each in itertools.product(ORDINARY, repeat=length)]
    found = values_of(prefixes, [[reference]] * len(prefixes), score)
    assert found.tolist() == [brute_force(prefix, [reference], score) for prefix in prefixes]


@pytest.mark.parametrize("normalise", [False, True])
def test_of_several_references_the_nearest_counts(normalise: bool):
    score = EditDistanceScore(normalise=normalise)
    prefixes = [each for length in range(3) for each in itertools.product(ORDINARY, repeat=length)]
    for references in ([(1, 2), (2, 2, 1)], [(1,), (2, 3, 1)]):
        found = values_of(prefixes, [references] * len(prefixes), score)
        expected = torch.tensor([brute_force(prefix, references, score) for prefix in prefixes], dtype=found.dtype)
        assert torch.allclose(found, expected, atol=1e-6)


def test_the_policy_is_uniform_over_the_best_as_the_temperature_vanishes():
    values = torch.tensor([[-1.0, 0.0, 0.0, -1.0], [-3.0, -2.0, -3.0, -3.0]], dtype=torch.float64)
    uniform = optimal_policy(values, 0.0)
    assert uniform.tolist() == [[0.0, 0.5, 0.5, 0.0], [0.0, 1.0, 0.0, 0.0]]
    assert torch.allclose(optimal_policy(values, 0.02), uniform, atol=1e-12)
    warm = optimal_policy(values, 1.0)[0]
    total = 2 + 2 * math.exp(-1)
    assert warm.tolist() == pytest.approx([math.exp(-1) / total, 1 / total, 1 / total, math.exp(-1) / total])


# the method


def run(actor: RecurrentActor, batch: Batch, **own: object) -> Outcome:
    settings = method_section()(name="optimal-completion", optimal_completion=own, reward_dropout="held")
    return OptimalCompletion(settings, EditDistanceScore(), True)(Networks(actor), batch, torch.Generator(), 0.0)


def enumerated_values(world: World, references: list[tuple[int, ...]]) -> Tensor:
    """Q* [N, T, V] at every step of every sequence of the world, by brute force."""
    table = torch.zeros(*world.tokens.shape, NUM_TOKENS, dtype=torch.float64)
    for row, sequence in enumerate(world.sequences):
        for step in range(len(sequence)):
            values = brute_force(sequence[:step], references, EditDistanceScore())
            table[row, step] = torch.tensor(values[:NUM_TOKENS], dtype=torch.float64)
    return table


@pytest.mark.parametrize("several", [False, True], ids=["one reference", "two references"])
@pytest.mark.parametrize("own", [{}, {"temperature": 0.7}, {"objective": "values"}], ids=["best", "warm", "values"])
def test_its_expected_gradient_is_that_of_the_enumerated_loss(own, several, monkeypatch):
    actor, batch = make_actor(), make_batch()
    references = [(1, 2)]
    if several:
        texts = RawTexts.of(["x"], [("ab", "b")], str, lambda lines: [[2] for _ in lines])
        batch = Batch(batch.sources, batch.source_mask, batch.references, batch.reference_mask, texts)
        references.append((2,))
    world = make_world(actor)
    probabilities = world.sequence_probabilities.detach()
    total, loss = [torch.zeros_like(parameter) for parameter in actor.parameters()], 0.0
    for row, probability in enumerate(probabilities):
        monkeypatch.setattr(rollout, "sample", lambda *rest, row=row: world.sample_of([row]))
        outcome = run(actor, batch, **own)
        loss += probability.item() * outcome.loss.item()
        for sum_so_far, gradient in zip(total, gradients(outcome.loss, actor), strict=True):
            sum_so_far += probability * gradient
    values = enumerated_values(world, references)
    log_probabilities = torch.log_softmax(world.logits, 2)
    if own.get("objective") == "values":
        per_step = -(log_probabilities.exp() * values).sum(2)
    else:
        policy = optimal_policy(values.flatten(0, 1), own.get("temperature", 0.0)).view_as(values)
        per_step = (policy * (policy.clamp(min=1e-300).log() - log_probabilities)).sum(2)
    exact = (probabilities * torch.where(world.mask, per_step, 0.0).sum(1)).sum()
    assert loss == pytest.approx(exact.item(), abs=1e-10)
    assert largest_difference(total, gradients(exact, actor)) < 1e-10


def test_the_share_of_optimal_tokens_is_counted(monkeypatch):
    """Against (1, 2) all of (1, 2, end) is best, nothing of (end), and of (1, 1, end) all but the second 1."""
    actor = make_actor()
    world = make_world(actor)
    for sequence, share in [((1, 2, END), 1.0), ((END,), 0.0), ((1, 1, END), 2 / 3)]:
        row = world.sequences.index(sequence)
        monkeypatch.setattr(rollout, "sample", lambda *rest, row=row: world.sample_of([row]))
        assert run(actor, make_batch()).measurements["optimal_share"].item() == pytest.approx(share)


@pytest.mark.parametrize("name", ["bleu", "chrf", "rouge-l", "exact-match", "json:loads"])
def test_a_score_that_is_no_edit_distance_is_refused_in_one_line(name: str):
    with pytest.raises(UserError, match=r"^score\.name: optimal-completion can learn from edit-distance or .* alone"):
        settings_from({"method": {"name": "optimal-completion"}, "score": {"name": name}})
    with pytest.raises(UserError, match=r"^method\.name: optimal-completion knows"):
        OptimalCompletion(method_section()(name="optimal-completion"), BleuScore(), True)
    for fitting in ("edit-distance", "token-error-rate"):
        settings_from({"method": {"name": "optimal-completion"}, "score": {"name": fitting}})
