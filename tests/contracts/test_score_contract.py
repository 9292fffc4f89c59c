"""What every registered score must keep, and how a score is found by its name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import EntryPoint

import pytest
import torch

from seqcritic.contracts import registry
from seqcritic.contracts.registry import SCORES, Registry, register_score
from seqcritic.contracts.score import Scorable, Score, ScoreOptions
from seqcritic.errors import UserError
from seqcritic.settings.tree import ScoreSettings

WORDS = ["", "⁇", "the", "cat", "sat", "on", "a", "mat"]
UNKNOWN = 1
OPTIONS = ScoreOptions("words", UNKNOWN, "⁇", split=str.split, rules="test")
PREDICTIONS = [[2, 3, 4], [2], [], [7, 6, 5, 4, 3, 2], [1, 1]]
REFERENCES = [[2, 3, 4, 5], [3, 3], [2, 6, 7], [2, 3, 4, 5, 6, 7], [2, 2]]
CONSENSUS = ("CIDEr",)  # scores that take the mean over references, not the best
FURTHER = [[2, 3, 4], [2, 3], [5], [7, 6, 5], [3]]


def text_of(ids: list[int]) -> str:
    return " ".join(WORDS[each] for each in ids)


def padded(rows: list[list[int]]) -> torch.Tensor:
    return torch.tensor([row + [0] * (8 - len(row)) for row in rows])


def scorable(predictions: list[list[int]], *references: list[list[int]]) -> Scorable:
    """Predictions with one or more references each, as ids and as texts."""
    return Scorable(
        padded(predictions),
        torch.tensor([len(row) for row in predictions]),
        torch.stack([padded(rows) for rows in references], dim=1),
        torch.tensor([[len(row) for row in rows] for rows in references]).T,
        text_of,
        lambda: [tuple(text_of(row) for row in rows) for rows in zip(*references, strict=True)],
        lambda: ["source"] * len(predictions),
    )


@pytest.fixture(params=SCORES.names())
def score(request: pytest.FixtureRequest) -> Score:
    own = [(SCORES.find("bleu").build(OPTIONS), 1.0), (SCORES.find("ter").build(OPTIONS), 0.5)]
    options = replace(OPTIONS, parts=tuple(own)) if request.param == "weighted-sum" else OPTIONS
    found = SCORES.find(request.param).build(options)
    found.read_corpus(lambda: [list(rows) for rows in zip(REFERENCES, FURTHER, strict=True)])
    return found


@pytest.mark.parametrize("references", [[REFERENCES], [REFERENCES, FURTHER]], ids=["one", "two"])
def test_a_whole_prediction_scores_as_its_last_prefix_and_nothing_scores_nothing(
    score: Score, references: list[list[list[int]]]
):
    batch = scorable(PREDICTIONS, *references)
    prefixes = score.prefix_scores(batch)
    assert prefixes.shape == (5, 9)
    assert torch.equal(prefixes[:, -1], score.score(batch))
    assert not prefixes[:, 0].any()
    for row, prediction in enumerate(PREDICTIONS):
        for end in range(len(prediction) + 1):
            alone = scorable([prediction[:end]], *[[rows[row]] for rows in references])
            assert score.score(alone)[0] == prefixes[row, end]
        assert (prefixes[row, len(prediction) :] == prefixes[row, len(prediction)]).all()


def test_a_reference_that_stands_twice_changes_nothing(score: Score):
    once, twice = scorable(PREDICTIONS, REFERENCES), scorable(PREDICTIONS, REFERENCES, REFERENCES)
    assert torch.equal(score.prefix_scores(once), score.prefix_scores(twice))
    texts = [text_of(row) for row in PREDICTIONS]
    references = [text_of(row) for row in REFERENCES]
    single, double = (score.statistics(texts, given) for given in (references, [[each, each] for each in references]))
    assert (single == double).all()


def test_another_reference_is_as_good_as_the_first(score: Score):
    """A prediction that is the second reference is as right as one that is the only reference."""
    texts = [text_of(row) for row in FURTHER]
    both = [[text_of(first), text_of(second)] for first, second in zip(REFERENCES, FURTHER, strict=True)]
    found, best = (float(score.of_totals(score.statistics(texts, given).sum(axis=0))) for given in (both, texts))
    if score.name not in CONSENSUS:
        assert found == pytest.approx(best)
    only, several = (score.score(scorable(FURTHER, *given)) for given in ([REFERENCES], [REFERENCES, FURTHER]))
    assert score.name in CONSENSUS or (several >= only).all()
    assert (several > only).any()


def test_rewards_and_the_corpus_score_agree_which_is_better(score: Score):
    batch = scorable([[2, 3, 4, 5], [7, 7]], [[2, 3, 4, 5]] * 2)
    good, bad = score.score(batch).tolist()
    assert good > bad
    texts = "the cat sat on", "mat mat"
    # Beside another sentence: where all there is has a word, it tells nothing.
    references = ["the cat sat on", "a mat"]
    right, wrong = (float(score.of_totals(score.statistics([each, "a"], references)[0])) for each in texts)
    assert (right > wrong) == score.higher_is_better
    assert score.signature()[0].startswith("score:")
    assert score.description


def test_the_units_that_sums_divide_by_are_those_of_a_right_prediction(score: Score):
    """Of four words, what a right prediction is paid is one whole, and so is its corpus score."""
    batch = scorable([[2, 3, 4, 5]] * 2, [[2, 3, 4, 5], [6, 7, 2, 3]])
    paid, unit = score.score(batch)[0], score.reward_unit(batch)[0]
    whole = 1.5 if score.name == "weighted sum" else 1.0  # its weights: BLEU 1, TER 0.5
    assert (paid / unit).item() == pytest.approx(whole)
    statistics = score.statistics(["the cat sat on", "a"], ["the cat sat on", "a mat"])
    assert statistics.shape[1] == score.num_summands
    right = float(score.of_totals(statistics[0])) / score.corpus_unit
    assert right == pytest.approx(1 if score.higher_is_better else 0)


def test_a_score_that_promises_a_lookahead_has_one(score: Score):
    found = score.lookahead(scorable(PREDICTIONS, REFERENCES))
    assert (found is not None) == score.has_lookahead


class Own(SCORES.find("edit-distance")):  # type: ignore[misc]
    """A score of another package."""


@pytest.fixture
def unregistered() -> Iterator[None]:
    known = dict(SCORES._classes)
    yield
    SCORES._classes.clear()
    SCORES._classes.update(known)


@pytest.mark.usefixtures("unregistered")
def test_a_score_outside_the_package_registers_by_decorator():
    assert "own-score" not in SCORES.names()
    register_score("own-score")(Own)
    assert "own-score" in SCORES.names()
    assert SCORES.find("own-score") is Own
    with pytest.raises(UserError, match=r"two scores are called 'bleu': seqcritic\.scores\.bleu:BleuScore and"):
        register_score("bleu")(Own)


@pytest.mark.usefixtures("unregistered")
def test_a_score_outside_the_package_registers_by_entry_point(monkeypatch: pytest.MonkeyPatch):
    points = [
        EntryPoint("own-score", f"{__name__}:Own", "seqcritic.scores"),
        EntryPoint("broken", "absent_package:Own", "seqcritic.scores"),
    ]
    monkeypatch.setattr(registry, "entry_points", lambda group: points if group == "seqcritic.scores" else [])
    monkeypatch.setattr(SCORES, "_points", None)
    assert {"own-score", "broken", "bleu"} <= set(SCORES.names())
    assert SCORES.find("own-score") is Own
    with pytest.raises(UserError, match=r"cannot be loaded .absent_package:Own.: ModuleNotFoundError"):
        SCORES.find("broken")


def test_names_are_known_without_importing_what_they_name(monkeypatch: pytest.MonkeyPatch):
    fresh: Registry[Score] = Registry("score", "score.name", "seqcritic.scores")
    monkeypatch.delitem(sys.modules, "seqcritic.scores.bleu")
    assert "bleu" in fresh.names()
    assert "seqcritic.scores.bleu" not in sys.modules
    with pytest.raises(UserError, match=r"unknown name 'blue' \(did you mean 'bleu'\?\); known: bleu, "):
        fresh.find("blue")


def test_two_names_of_one_score_are_one_score():
    assert "token-error-rate" in SCORES.names()
    assert SCORES.find("token-error-rate") is SCORES.find("edit-distance")
    assert ScoreSettings(name="token-error-rate") == ScoreSettings(name="edit-distance")
