"""Errors as people type them: every kind does what it says, rates are kept, some lines stay right."""

from __future__ import annotations

import numpy as np
import pytest
from rapidfuzz.distance import OSA, Levenshtein

from seqcritic.contracts.codec import codec_from_dict
from seqcritic.data.codecs.spelling import SpellingCodec
from seqcritic.data.spelling import SpellingTask
from seqcritic.data.typing_noise import KINDS, NEIGHBOURS, TypingNoise
from seqcritic.errors import UserError
from seqcritic.settings.data import SpellingSettings, TypingSettings
from seqcritic.settings.io import settings_from

LINE = "the committee has received 42 letters, phoned a friend. it is ok!"
NONE = dict.fromkeys(KINDS, 0.0)


def typed(kind: str, seed: int) -> str:
    noise = TypingNoise(TypingSettings(**{**NONE, kind: 1.0}, clean=0, highest_rate=0.0005))
    draws = np.random.default_rng(seed)
    return next(found for _ in range(100_000) if (found := noise.corrupt(LINE, draws)) != LINE)


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_is_of_its_kind(kind: str):
    for seed in range(20):
        wrong = typed(kind, seed)
        (edit, *others) = Levenshtein.editops(LINE, wrong)
        if kind == "neighbours":
            assert not others
            assert wrong[edit.dest_pos] in NEIGHBOURS[LINE[edit.src_pos]]
        elif kind == "transpositions":
            assert OSA.distance(LINE, wrong) == 1
            assert sorted(wrong) == sorted(LINE)
        elif kind in ("omissions", "missing_spaces"):
            assert (edit.tag, others) == ("delete", [])
            assert (LINE[edit.src_pos] == " ") == (kind == "missing_spaces")
        elif kind in ("insertions", "split_words"):
            assert (edit.tag, others) == ("insert", [])
            assert (wrong[edit.dest_pos] == " ") == (kind == "split_words")
        elif kind == "doubled_letters":
            assert abs(len(wrong) - len(LINE)) == 1
            assert set(wrong) == set(LINE)
        else:
            assert len(others) < 4
        assert "42" in wrong
        assert wrong.endswith("!")


def test_lines_have_rates_of_their_own_and_some_none():
    noise = TypingNoise(TypingSettings(clean=0.4, highest_rate=0.2, **{**NONE, "omissions": 1}))
    draws = np.random.default_rng(3)
    lost = np.array([1 - len(noise.corrupt("a" * 200, draws)) / 200 for _ in range(2000)])
    # 0.4 of the lines, and the few whose rate is next to nothing.
    assert np.mean(lost == 0) == pytest.approx(0.4 + 0.6 / 200 / 0.2, abs=0.04)
    assert lost[lost > 0].mean() == pytest.approx(0.1, abs=0.01)
    assert lost.max() < 0.35


def test_the_task_pairs_errors_with_the_right_text_and_its_models_know_that_lengths_change():
    task = SpellingTask(SpellingSettings(length=40, typing=TypingSettings(clean=0, highest_rate=0.2)))
    first, again = (task.training_batch(64, 16, seed=2) for _ in range(2))
    assert first.sources.equal(again.sources)
    assert not first.sources.equal(task.training_batch(64, 16, seed=3).sources)
    assert first.source_mask.sum(dim=1).tolist() != first.reference_mask.sum(dim=1).tolist()
    texts = task.codec.texts(first.references)
    assert texts == SpellingTask(SpellingSettings(length=40)).codec.texts(first.references)
    assert all(Levenshtein.distance(*pair) < 20 for pair in zip(task.codec.texts(first.sources), texts, strict=True))
    assert "noise:typing." in "|".join(task.conditions("valid"))
    stored = codec_from_dict(task.codec.to_dict())
    assert isinstance(stored, SpellingCodec)
    assert stored.changes_length
    assert SpellingCodec(40).to_dict() == {"kind": "spelling", "length": 40}


@pytest.mark.parametrize(
    ("line", "written", "expected"),
    [
        ("Thhe ct \u2014 sat", "the cat # sat", "The cat \u2014 sat"),
        ("Thhe \u2014 ct", "the # cat", "The \u2014 cat"),
        ("HTE  \tEND", "the end", "THE  \tEND"),
        ("Xhe", "the", "The"),
        ("hel lo World", "hello world", "hello World"),
        ("Caf\u00e9 isgood", "caf# is good", "Caf\u00e9 is good"),
        ("Right as it is.", "right as it is.", "Right as it is."),
    ],
)
def test_characters_are_dropped_and_added_and_case_stays(line: str, written: str, expected: str):
    codec = SpellingCodec(40, changes_length=True)
    pieces = codec.cut(line)
    assert codec.join(line, pieces, [written], raw=False) == expected
    assert codec.join(line, pieces, [written], raw=True) == written


def test_noise_of_no_kind_is_refused():
    with pytest.raises(UserError, match=r"data\.typing: all kinds have the weight 0"):
        settings_from({"data": {"typing": NONE}})
