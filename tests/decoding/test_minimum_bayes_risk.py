"""The choice of least risk against brute force over samples that are drawn one by one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch

from seqcritic.contracts.batch import pad
from seqcritic.contracts.score import Scorable, Score
from seqcritic.data.vocabulary import END
from seqcritic.decoding import minimum_bayes_risk
from seqcritic.decoding.minimum_bayes_risk import (
    Candidates,
    MinimumBayesRisk,
    draw_candidates,
    expected_utilities,
    find_by_risk,
)
from seqcritic.decoding.search import find_best
from seqcritic.errors import NonFiniteError
from seqcritic.models.gru.actor import RecurrentActor
from seqcritic.models.gru.settings import GruActorSettings
from seqcritic.scores.bleu import BleuScore
from seqcritic.scores.chrf import ChrfScore
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.scores.shared.function import as_score

SIZES = GruActorSettings(embedding=5, hidden=6, attention=5, initial_range=None)
SOURCES = [[1, 2, 3], [2], [3, 1, 1, 2, 3, 3], [1, 1], []]
LETTERS = "_abcde"


def make_actor(seed: int, end_bias: float = 0.0) -> RecurrentActor:
    actor = RecurrentActor(SIZES, 4, 6, torch.Generator().manual_seed(seed)).double()
    with torch.no_grad():
        for parameter in actor.parameters():
            parameter.mul_(2.0)
        actor.decoder.output_layer.bias[END] += end_bias
    return actor


def decode(tokens: Sequence[int]) -> str:
    return "".join(LETTERS[token] for token in tokens)


def same_letters(prediction: str, reference: str) -> float:
    return len(set(prediction) & set(reference)) - abs(len(prediction) - len(reference)) / 7


SCORES: dict[str, Score] = {
    "edit distance": EditDistanceScore(),
    "its share": EditDistanceScore(normalise=True),
    "bleu": BleuScore(),
    "chrf": ChrfScore(),
    "function": as_score(same_letters),
}


def score_alone(score: Score, prediction: list[int], reference: list[int]) -> float:
    """Return the score of one pair, in a batch of its own."""
    batch = Scorable(
        torch.tensor([prediction or [END]]),
        torch.tensor([len(prediction)]),
        torch.tensor([[reference or [END]]]),
        torch.tensor([[len(reference)]]),
        decode,
        lambda: [(decode(reference),)],
        lambda: ["?"],
    )
    return float(score.score(batch))


@pytest.mark.parametrize("name", SCORES)
def test_the_choice_is_that_of_brute_force(name: str, monkeypatch: pytest.MonkeyPatch):
    score, differing = SCORES[name], 0
    for seed, at_once in ((0, 1 << 23), (1, 40)):  # all pairs in one call, and many calls
        monkeypatch.setattr(minimum_bayes_risk, "COMPARED_AT_ONCE", at_once)
        actor, choice = make_actor(seed, 1.0), MinimumBayesRisk(12, score, seed)
        found = find_by_risk(actor, *pad(SOURCES), choice, decode)
        drawn = draw_candidates(actor, *pad(SOURCES), 12, seed)
        for best, candidates in zip(found, drawn, strict=True):
            samples = [
                tokens for tokens, count in zip(candidates.tokens, candidates.counts, strict=True) for _ in range(count)
            ]
            assert len(samples) == 12
            means = [sum(score_alone(score, one, other) for other in samples) / 12 for one in candidates.tokens]
            assert max(means) == pytest.approx(means[candidates.tokens.index(best)], abs=1e-6)
            differing += best != candidates.tokens[0]
    assert differing > 0, "the most frequent sample is not always the best"


def test_lower_is_better_scores_are_lowered():
    # By distances 1, 1 and 2 the one in the middle is best, though each is drawn once.
    drawn = [Candidates([[1, 1, 2], [1, 1, 1], [1, 3, 1]], [1, 1, 1])]
    score = EditDistanceScore()
    assert not score.higher_is_better
    (expected,) = expected_utilities(drawn, score, END)
    assert expected.tolist() == pytest.approx([3 - (0 + 1 + 2) / 3, 3 - 2 / 3, 3 - (2 + 1 + 0) / 3])
    # Counts are votes.
    (expected,) = expected_utilities([Candidates(drawn[0].tokens, [5, 1, 1])], score, END)
    assert int(expected.argmax()) == 0


def test_the_samples_of_a_source_are_its_own():
    actor = make_actor(2)
    together = draw_candidates(actor, *pad(SOURCES), 8, 5)
    for source, candidates in zip(SOURCES, together, strict=True):
        assert draw_candidates(actor, *pad([source]), 8, 5) == [candidates]
    assert draw_candidates(actor, *pad(SOURCES), 8, 6) != together
    twice = draw_candidates(actor, *pad([SOURCES[0], SOURCES[0]]), 8, 5)
    assert twice[0] == twice[1]


def test_samples_are_drawn_from_the_actor():
    actor = make_actor(3, 1.0)
    sources, mask = pad([[1, 2, 3]])
    (found,) = draw_candidates(actor, sources, mask, 20_000, 1)
    first = torch.softmax(actor.logits(actor.start(actor.encode(sources, mask))), dim=1)[0]
    counts = torch.zeros(6, dtype=torch.float64)
    for tokens, count in zip(found.tokens, found.counts, strict=True):
        counts[tokens[0] if tokens else END] += count
    assert torch.allclose(counts / 20_000, first, atol=0.015)
    assert found.counts == sorted(found.counts, reverse=True)


def test_pieces_of_a_batch_change_nothing(monkeypatch: pytest.MonkeyPatch):
    actor, choice = make_actor(4), MinimumBayesRisk(6, BleuScore())
    whole = find_best(actor, *pad(SOURCES), choice)
    monkeypatch.setattr(minimum_bayes_risk, "SAMPLED_AT_ONCE", 13)
    assert torch.equal(find_best(actor, *pad(SOURCES), choice), whole)


def test_one_sample_is_the_answer_whatever_it_is_compared_by():
    actor = make_actor(5)
    drawn = draw_candidates(actor, *pad(SOURCES), 1, 1)
    found = find_by_risk(actor, *pad(SOURCES), MinimumBayesRisk(1, EditDistanceScore()))
    assert found == [candidates.tokens[0] for candidates in drawn]


def test_scores_that_read_sources_are_given_them():
    seen = set()

    def told(prediction: str, reference: str, source: str) -> float:
        seen.add(source)
        return float(len(prediction))

    names = ["one", "two", "three", "four", "five"]
    actor = make_actor(6)
    found = find_by_risk(actor, *pad(SOURCES), MinimumBayesRisk(5, as_score(told)), decode, lambda: names)
    assert seen == set(names)
    drawn = draw_candidates(actor, *pad(SOURCES), 5, 1)
    assert [len(best) for best in found] == [max(map(len, candidates.tokens)) for candidates in drawn]


def test_the_signature_names_samples_utility_and_seed():
    assert MinimumBayesRisk(8, BleuScore(), 3).signature() == "search:mbr:8|utility:sentence-bleu+1:words|seed:3"
    assert MinimumBayesRisk(8, EditDistanceScore()).signature().startswith("search:mbr:8|utility:CER,rapidfuzz:")


def test_an_actor_that_is_not_finite_is_told():
    with pytest.raises(NonFiniteError):
        draw_candidates(make_actor(0, float("nan")), *pad(SOURCES), 3, 1)
