"""What a model that reads single words in letters, as one that pronounces them, makes of any line."""

from __future__ import annotations

from pathlib import Path

import pytest

from seqcritic import load_model, train
from seqcritic.data.codecs.text import TextCodec
from seqcritic.data.tokens import WordVocabulary
from seqcritic.decoding.search import Search
from seqcritic.settings.io import settings_from

LETTERS = "abcdefghijklmnopqrstuvwxyz'"
PHONEMES = WordVocabulary("whitespace", False, ["AH", "B"])
CODEC = TextCodec(WordVocabulary("characters", True, LETTERS), PHONEMES)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("pronounceable", ["pronounceable"]),
        ("  Two\tWORDS ", ["Two", "WORDS"]),
        ("well-known, U.S. 'quoted' 'em", ["well", "known", "U", "S", "quoted", "'em"]),
        ("don\N{RIGHT SINGLE QUOTATION MARK}t", ["don't"]),
        ("caf\u00e9 \u00c5ngstr\u00f6m stra\u00dfe \ufb01x", ["cafe", "angstrom", "strasse", "fix"]),
        ("42", []),
        ("?! ' -", []),
        ("", []),
    ],
)
def test_lines_are_cut_into_words_that_can_be_read(line: str, words: list[str]):
    assert [word for word, _ in CODEC.cut(line)] == words


def test_what_cannot_be_read_stays_in_its_place():
    line = "mp3 at 42% in \u041c\u043e\u0441\u043a\u0432\u0430!"
    pieces = CODEC.cut(line)
    assert [word for word, _ in pieces] == ["mp", "at", "in"]
    joined = CODEC.join(line, pieces, ["AH", "B", "AH B"], raw=False)
    assert joined == "AH | 3 | B | 42 | AH B | \u041c\u043e\u0441\u043a\u0432\u0430"
    assert CODEC.join("...", [], [], raw=False) == ""
    spells = TextCodec(CODEC.source, WordVocabulary("characters", False, "xy"))
    assert spells.join("one two", spells.cut("one two"), ["xy", "y"], raw=False) == "xy y"


@pytest.mark.parametrize(
    "source", [WordVocabulary("characters", True, "ab "), WordVocabulary("whitespace", True, ["a", "b"])]
)
def test_models_of_lines_read_them_whole(source: WordVocabulary):
    codec = TextCodec(source, PHONEMES)
    assert codec.cut("a-b 4") == [("a-b 4", slice(None))]
    assert codec.join("a-b 4", codec.cut("a-b 4"), ["AH B"], raw=False) == "AH B"


def test_a_trained_model_answers_every_line(tmp_path: Path):
    table = "".join(f"{a}{b}\t{a.upper()} {b.upper()}\n" for a in "abc" for b in "abc")
    (tmp_path / "words.tsv").write_text(table)
    files = {"pairs": [str(tmp_path / "words.tsv")]}
    tokens = {"source_tokens": {"kind": "characters", "lowercase": True}, "target_tokens": {"kind": "whitespace"}}
    sizes = {"embedding": 12, "hidden": 16, "attention": 8, "initial_range": None, "encoder_layers": 2}
    settings = settings_from(
        {
            "data": {"task": "translation", "train": files, "valid": files, "test": files, **tokens},
            "actor": sizes,
            "score": {"name": "token-error-rate"},
            "evaluation": {"also": ["exact-match"]},
            "method": {"name": "likelihood"},
            "phases": {"actor": {"updates": 150, "learning_rate": 0.02}, "train": {"updates": 0}},
            "training": {"batch": 9, "evaluate_every": 150},
        }
    )
    train(settings, out=tmp_path / "run")
    model = load_model(tmp_path / "run")
    assert model.predict(["ab", "CA-bb b\u00e0", "7", ""]) == ["A B", "C A | B B | B A", "7", ""]
    (best, _), *_ = model.predict_several(["Ac"], Search(width=3), 2)
    assert best[1] == "A C"
