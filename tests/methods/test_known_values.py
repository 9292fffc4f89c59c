"""What a critic adds its values to: optimal completions, and for scores of texts the lookahead of BLEU."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from seqcritic.contracts.actor import SpecialTokens
from seqcritic.contracts.batch import Batch, RawTexts, pad
from seqcritic.contracts.method_registry import registered_methods
from seqcritic.contracts.networks import Networks
from seqcritic.contracts.parts import ResidualOn
from seqcritic.contracts.score import Array, References, Score, rewards_from_prefixes
from seqcritic.data.vocabulary import END
from seqcritic.methods import losses
from seqcritic.methods.lookahead import optimal_gains, perfect_ratios, token_lookaheads
from seqcritic.methods.rollout import prefix_scores
from seqcritic.scores.bleu import BleuScore
from seqcritic.scores.character_error_rate import CharacterErrorRate
from seqcritic.scores.chrf import ChrfScore
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.scores.shared.texts import Compared, TextScore
from seqcritic.scores.ter import TerScore
from seqcritic.settings.methods import method_section
from seqcritic.tensors.values import Columns
from seqcritic.testing.critics import TabularCritic, random_values
from seqcritic.testing.unbiased import assert_unbiased, expected_gradients, method_estimator
from seqcritic.testing.worlds import NUM_TOKENS, World, gradients, largest_difference, make_batch, make_world
from test_estimators import SCORE
from test_optimal_completion import brute_force

SPECIAL = SpecialTokens(end=(END,), padding=END)


# optimal completions


def gains_of(world: World) -> Tensor:
    batch = make_batch().repeat(len(world.sequences))
    return optimal_gains(SCORE, SPECIAL, world.tokens, world.mask, batch, NUM_TOKENS).padded().double()


def test_gains_of_the_best_completions_are_those_of_brute_force():
    world = make_world()
    found = gains_of(world)
    for row, sequence in enumerate(world.sequences):
        for step in range(len(sequence)):
            best = brute_force(sequence[:step], [(1, 2)], SCORE)[:NUM_TOKENS]
            assert found[row, step].tolist() == [value - best[END] for value in best]


@pytest.mark.parametrize("normalise", [False, True])
def test_the_end_is_worth_nothing_and_columns_are_those_of_all_tokens(normalise: bool):
    codec_references = [("x y", "z"), ("y", "y y z")]
    ids = {"x": 1, "y": 2, "z": 3}

    def encode(lines: Sequence[str]) -> list[list[int]]:
        return [[ids[word] for word in line.split()] for line in lines]

    texts = RawTexts.of(["", ""], codec_references, str, encode)
    batch = Batch(*pad([[1], [2]]), *pad(encode([own[0] for own in codec_references])), texts)
    tokens, mask = pad([[2, 1, 4, 3], [3]])
    score = EditDistanceScore(normalise=normalise, unknown=None)
    full = optimal_gains(score, SPECIAL, tokens, mask, batch, 6)
    earned = prefix_scores(score, SPECIAL, tokens, mask, batch)
    assert bool((full.packed.rows[:, END] == 0).all())
    # What is earned and what is still to be had is what the best completion scores: it never rises.
    for row, length in ((0, 4), (1, 1)):
        taken = full.of_tokens(tokens)[row, :length] + earned[row, :length]
        assert bool((taken[1:] <= taken[:-1] + 1e-6).all())
    columns = Columns(torch.tensor([END, 1, 2, 3]), 6)
    few = optimal_gains(score, SPECIAL, tokens, mask, batch, 6, columns)
    assert few.packed.rows.shape[1] == 5
    assert torch.equal(few.padded(), full.padded())


def add_to(world: World, rest: Tensor, residual_on: ResidualOn) -> Networks:
    critics = [TabularCritic(world, rest, residual_on=residual_on) for _ in range(2)]
    return Networks(world.actor, critic=critics[0], target_critic=critics[1])


@pytest.mark.parametrize("known", ["exact", "nothing"])
def test_actor_critic_with_optimal_values_and_what_they_lack_is_exact(known: str):
    """With f = Q − K the gradient is the exact one; with f = 0 it is that of Σ_a p(a) Q*(a), which is biased."""
    world = make_world()
    exact, best = world.exact_values(), gains_of(world)
    networks = add_to(world, exact - best if known == "exact" else torch.zeros_like(best), "optimal-completion")
    method = registered_methods()["actor-critic"](method_section()(name="actor-critic"), SCORE, True)
    estimator = method_estimator(method, networks, world)
    if known == "exact":
        assert_unbiased(estimator, world)
        return
    followed = (torch.softmax(world.logits, 2) * best).sum(2)
    followed = torch.where(world.mask, followed, 0.0).sum(1)
    expected = gradients(-(world.sequence_probabilities.detach() * followed).sum(), world.actor)
    assert largest_difference(expected_gradients(estimator, world), expected) < 1e-8
    with pytest.raises(AssertionError, match="biased"):
        assert_unbiased(estimator, world, tolerance=1e-3)


# scores of texts


class SevenTimes(TextScore):
    """Seven times |Y| less the edit distance, of texts: the world's score in another unit, without a lookahead."""

    def values(self, rows: Sequence[Compared]) -> list[float]:
        codes = {"a": 1, "b": 2}
        pairs = [([codes[c] for c in row.prediction], [codes[c] for c in row.references[0]]) for row in rows]
        predictions, references = (list(side) for side in zip(*pairs, strict=True))
        tokens, mask = pad(predictions)
        known = Batch(tokens, mask, *pad(references))
        return [7 * float(x) for x in prefix_scores(EditDistanceScore(), SPECIAL, tokens, mask, known)[:, -1]]

    def statistics(
        self, predictions: Sequence[str], references: Sequence[References], sources: Sequence[str] | None = None
    ) -> Array:
        raise NotImplementedError

    def of_totals(self, totals: Array) -> Array:
        raise NotImplementedError

    def signature(self) -> list[str]:
        return ["score:seven"]


def spelled(tokens: list[int]) -> str:
    return "".join("?ab"[token] for token in tokens)


def spelled_batch() -> Batch:
    texts = RawTexts.of(["ba"], [("ab",)], spelled, lambda lines: [[1, 2] for _ in lines])
    plain = make_batch()
    return Batch(plain.sources, plain.source_mask, plain.references, plain.reference_mask, texts)


@pytest.mark.parametrize(
    ("method", "knobs"),
    [("actor-critic", {"correction": 1.0}), ("reinforce-critic", {})],
    ids=["dial", "baseline"],
)
def test_what_is_known_of_a_score_of_texts_biases_nothing(method: str, knobs: dict[str, object]):
    world = make_world(batch=spelled_batch(), score=SevenTimes())
    networks = add_to(world, random_values(world), "lookahead")
    built = registered_methods()[method](method_section()(name=method, **knobs), SevenTimes(), True)
    assert_unbiased(method_estimator(built, networks, world), world, tolerance=1e-7)
    assert max(float(part.abs().max()) for part in world.exact_gradients()) > 0.1


def test_the_lookahead_of_a_score_of_texts_is_that_of_bleu_in_its_unit():
    world = make_world()
    batch = spelled_batch().repeat(len(world.sequences))
    ours = token_lookaheads(SevenTimes(), SPECIAL, world.tokens, world.mask, batch, NUM_TOKENS)
    bleu = token_lookaheads(BleuScore(None), SPECIAL, world.tokens, world.mask, batch, NUM_TOKENS)
    assert torch.allclose(ours.packed.rows.double(), 7 * bleu.packed.rows.double(), atol=1e-5)
    assert perfect_ratios(SevenTimes(), BleuScore(None), SPECIAL, spelled_batch()).tolist() == pytest.approx([7.0])


PIECES = [start + first + second for start in (" ", "") for first, second in itertools.product("bdkmrs", "aeiou")]


def pieces_batch(num_examples: int = 60) -> tuple[Batch, Tensor, Tensor]:
    """Random references of pieces of words, and predictions that are wrong in a quarter of their places."""
    draw = random.Random(5)

    def decode(tokens: list[int]) -> str:
        return "".join(PIECES[token - 1] for token in tokens).strip()

    references = [[draw.randint(1, len(PIECES)) for _ in range(draw.randint(4, 10))] for _ in range(num_examples)]
    predictions = []
    for reference in references:
        wrong = [draw.randint(1, len(PIECES)) if draw.random() < 0.15 else token for token in reference]
        predictions.append([token for token in wrong if draw.random() > 0.1])
    texts = RawTexts.of(["" for _ in references], [(decode(own),) for own in references], decode, lambda lines: [])
    return Batch(*pad(references), *pad(references), texts), *pad(predictions)


@pytest.mark.parametrize("score", [ChrfScore(), TerScore(), CharacterErrorRate()], ids=lambda score: score.name)
def test_with_its_scale_less_is_left_to_learn(score: Score):
    """The variance of what the network has to learn: returns less what is known of the token that was taken."""
    batch, tokens, mask = pieces_batch()
    rewards = rewards_from_prefixes(prefix_scores(score, SPECIAL, tokens, mask, batch), mask)
    returns = losses.returns_to_go(rewards, mask)
    counted = mask & ~SPECIAL.is_end(tokens)
    num_tokens = len(PIECES) + 1
    scaled = token_lookaheads(score, SPECIAL, tokens, mask, batch, num_tokens).of_tokens(tokens)
    unscaled = token_lookaheads(BleuScore(None), SPECIAL, tokens, mask, batch, num_tokens).of_tokens(tokens)
    alone, with_scale, without = (
        float((returns - known)[counted].var()) for known in (torch.zeros_like(scaled), scaled, unscaled)
    )
    assert with_scale < 0.9 * alone
    ratio = float(perfect_ratios(score, BleuScore(None), SPECIAL, batch).mean())
    if abs(ratio - 1) > 0.1:  # chrF is times |Y|, as BLEU is
        assert with_scale < 0.95 * without
