"""Windows of the training text: each once an epoch, the same at a position however reached, as noisy as asked."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from seqcritic.contracts.batch import Batch
from seqcritic.data.spelling import SpellingTask
from seqcritic.data.vocabulary import END, SPELLING_ALPHABET, Vocabulary
from seqcritic.data.windows import Windows
from seqcritic.errors import UserError
from seqcritic.settings.data import SpellingSettings

VOCABULARY = Vocabulary(SPELLING_ALPHABET)
LETTERS = SPELLING_ALPHABET[:26]
# Every window is another pair of letters, so that windows can be told apart.
SENTENCES = [first + second for first in LETTERS for second in LETTERS[:7]]


def windows(sentences: list[str], length: int = 2, minimum_length: int = 1, at_words: bool = False) -> Windows:
    return Windows(sentences, VOCABULARY, length, minimum_length, at_words)


def texts(tokens: torch.Tensor) -> list[str]:
    return ["".join(VOCABULARY.decode(row)) for row in tokens.tolist()]


def all_texts(chosen: Windows) -> list[str]:
    batch = chosen.examples(np.arange(len(chosen)), 0.0, torch.Generator())
    return texts(batch.references)


def equal(batch: Batch, other: Batch) -> bool:
    return torch.equal(batch.sources, other.sources) and torch.equal(batch.references, other.references)


@pytest.mark.parametrize(
    ("length", "minimum_length", "at_words", "expected"),
    [
        (5, 1, False, ["the c", "on a", "see", "a#b 2"]),
        (5, 4, False, ["the c", "on a", "a#b 2"]),
        (5, 5, False, ["the c", "a#b 2"]),
        (3, 1, True, ["the", "cat", "sat", "on ", "see", "a#b", "2 c"]),
        (4, 4, True, ["the ", "cat ", "on a", "a#b "]),
    ],
)
def test_which_windows_a_text_has(length: int, minimum_length: int, at_words: bool, expected: list[str]):
    sentences = ["The  cat sat", "on\ta", "", "see", "A-b 2 c"]
    assert all_texts(windows(sentences, length, minimum_length, at_words)) == expected


def test_the_counts_of_full_and_short_windows():
    chosen = windows(["abcd", "abc", "ab", "", "a"], length=3, minimum_length=2)
    assert (len(chosen), chosen.num_full, chosen.num_short) == (3, 2, 1)


@pytest.mark.parametrize("size", [1, 7, 32, 500])
def test_no_window_comes_twice_within_an_epoch(size: int):
    chosen = windows(SENTENCES)
    drawn: list[str] = []
    while len(drawn) < 3 * len(SENTENCES):
        drawn += texts(chosen.batch(len(drawn), size, seed=3, noise=0.5).references)
    epochs = [drawn[first : first + len(SENTENCES)] for first in range(0, 3 * len(SENTENCES), len(SENTENCES))]
    assert all(sorted(epoch) == sorted(SENTENCES) for epoch in epochs)
    assert epochs[0] != epochs[1]
    assert epochs[0] != SENTENCES


def test_a_batch_is_the_same_however_its_position_was_reached():
    walked, position = windows(SENTENCES), 5 * 32
    for step in range(5):
        walked.batch(step * 32, 32, seed=3, noise=0.5)
    reached = walked.batch(position, 32, seed=3, noise=0.5)
    assert equal(reached, windows(SENTENCES).batch(position, 32, seed=3, noise=0.5))
    back = windows(SENTENCES)
    back.batch(20 * 32, 32, seed=3, noise=0.5)
    assert equal(reached, back.batch(position, 32, seed=3, noise=0.5))


def test_seed_and_position_both_decide_a_batch():
    chosen = windows(SENTENCES)
    batch = chosen.batch(0, 32, seed=3, noise=0.5)
    assert not equal(batch, chosen.batch(0, 32, seed=4, noise=0.5))
    assert not equal(batch, chosen.batch(32, 32, seed=3, noise=0.5))


def test_noise_changes_from_epoch_to_epoch():
    chosen = windows(["abcdefghij" * 20], length=200)
    first, second = (chosen.batch(position, 1, seed=3, noise=0.5) for position in (0, 1))
    assert torch.equal(first.references, second.references)
    assert not torch.equal(first.sources, second.sources)


@pytest.mark.parametrize("noise", [0.0, 0.3, 0.5, 1.0])
def test_characters_are_replaced_at_the_rate_asked_for(noise: float):
    batch = windows(["e" * 200] * 300, length=200).batch(0, 300, seed=1, noise=noise)
    changed = (batch.sources != batch.references)[:, :200].double().mean().item()
    # One replacement in 42 draws the character that stood there; 60 000 characters leave ±0.01 at 5 σ.
    assert changed == pytest.approx(noise * (1 - 1 / len(SPELLING_ALPHABET)), abs=0.01 if noise else 0)
    assert batch.sources.min() >= END


def test_masks_cover_the_text_and_one_end_token():
    batch = windows(["abcd", "ab"], length=3).examples(np.array([0, 1]), 0.0, torch.Generator())
    assert batch.references.tolist() == [[1, 2, 3, END], [1, 2, END, END]]
    assert batch.reference_mask.tolist() == [[True] * 4, [True, True, True, False]]
    assert torch.equal(batch.source_mask, batch.reference_mask)


def test_noise_never_leaves_the_window():
    batch = windows(["abcd", "a"], length=4).batch(0, 2, seed=1, noise=1.0)
    outside = ~batch.source_mask | (torch.arange(5) == batch.source_mask.sum(1, keepdim=True) - 1)
    assert (batch.sources[outside] == END).all()
    assert (batch.sources[~outside] != END).all()


def test_the_fingerprint_sees_text_and_windows():
    prints = [
        windows(["abcd"], 3).fingerprint(),
        windows(["abce"], 3).fingerprint(),
        windows(["abcd"], 2).fingerprint(),
        windows(["abc d"], 3, at_words=True).fingerprint(),
        windows(["abc d"], 1, at_words=True).fingerprint(),
    ]
    assert len(set(prints)) == len(prints)
    assert windows(["ABCD "], 3).fingerprint() == prints[0]


@pytest.fixture
def data(tmp_path) -> SpellingTask:
    path = tmp_path / "text.txt"
    path.write_text("".join(f"{sentence} and more\n" for sentence in SENTENCES), encoding="utf-8")
    files = (str(path),)
    return SpellingTask(SpellingSettings(train=files, valid=files, test=files, noise=0.5, valid_size=40))


def test_the_noise_of_evaluation_is_fixed(data: SpellingTask):
    first, again = data.evaluation_set("test"), SpellingTask(data.settings).evaluation_set("test")
    assert first.sources == again.sources
    assert first.sources != first.references
    assert len(first.references) == len(SENTENCES)
    other = SpellingTask(data.settings.model_copy(update={"evaluation_seed": 1})).evaluation_set("test")
    assert other.sources != first.sources
    assert other.references == first.references
    assert data.evaluation_set("train").sources != first.sources


def test_a_training_sample_holds_windows_that_are_trained_on_with_fixed_noise(data: SpellingTask):
    everything, chosen = data.evaluation_set("train"), data.training_sample(5)
    assert len(chosen.references) == 5
    assert chosen.references[0] == everything.references[0]
    assert chosen.references[-1] == everything.references[-1]
    assert set(chosen.references) <= set(everything.references)
    assert chosen.sources == SpellingTask(data.settings).training_sample(5).sources != chosen.references
    other = SpellingTask(data.settings.model_copy(update={"evaluation_seed": 1})).training_sample(5)
    assert other.references == chosen.references
    assert other.sources != chosen.sources


def test_a_smaller_evaluation_set_is_spread_over_the_text(data: SpellingTask):
    references = data.evaluation_set("valid").references
    assert len(references) == len(set(references)) == 40
    whole = data.evaluation_set("test").references
    assert (references[0], references[-1]) == (whole[0], whole[-1])
    positions = [whole.index(reference) for reference in references]
    assert max(np.diff(positions)) - min(np.diff(positions)) <= 1


@pytest.mark.parametrize(
    ("line", "windows", "taken"),
    [
        ("", [], []),
        ("  \t ", [], []),
        ("ABC", ["abc abc ab"], ["abc"]),
        ("exactly10!", ["exactly10!"], ["exactly10!"]),
        ("one two three four", ["one two th", "two three ", "three four"], ["one two ", "thre", "e four"]),
        ("one two six", ["one two si", "ne two six"], ["one two", " six"]),
        ("unbreakablewords", ["unbreakabl", "akableword", "kablewords"], ["unbreaka", "blew", "ords"]),
    ],
)
def test_lines_are_cut_into_whole_windows_of_which_each_character_is_taken_once(
    line: str, windows: list[str], taken: list[str], data: SpellingTask
):
    cut = data.codec.cut(line)
    assert [window for window, _ in cut] == windows
    assert [window[counted] for window, counted in cut] == taken
    assert "".join(taken) == line.strip().lower()


@pytest.mark.parametrize("length", [1, 2, 3, 10, 30])
def test_every_character_of_a_long_line_counts_once_and_windows_are_full(length: int, data: SpellingTask):
    cutting = SpellingTask(data.settings.model_copy(update={"length": length}))
    for line in ("a bc def ghij klmno pqrstu vwxyz, a bc def.", "x" * 70, "a b c d e f g h i j k l m n o p q r s t"):
        cut = cutting.codec.cut(line)
        assert "".join(window[counted] for window, counted in cut) == line
        assert {len(window) for window, _ in cut} == {length}
        assert all(0 <= counted.start <= counted.stop <= length for _, counted in cut)


def test_text_with_nothing_long_enough_is_refused(data: SpellingTask):
    short = SpellingTask(data.settings.model_copy(update={"length": 40}))
    with pytest.raises(UserError, match=r"data\.valid: no sentence of .*text\.txt has 40 characters"):
        short.windows("valid")
    none = SpellingTask(data.settings.model_copy(update={"train": ()}))
    with pytest.raises(UserError, match=r"data\.train: no text given"):
        none.windows("train")
