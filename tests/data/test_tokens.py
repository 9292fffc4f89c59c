"""Checks of vocabularies: which tokens, which numbers, and text back from numbers."""

from __future__ import annotations

import json
import random
import subprocess
import sys

import pytest

from seqcritic.data.subwords import SubwordVocabulary, bounded_lines
from seqcritic.data.tokens import (
    TextVocabulary,
    WordVocabulary,
    count_words,
    learn_vocabulary,
    vocabulary_digest,
    vocabulary_from_dict,
)
from seqcritic.data.words import UNKNOWN_WORD, without_reserved
from seqcritic.errors import UserError
from seqcritic.scores.bleu import BleuScore
from seqcritic.scores.rouge_l import RougeLScore
from seqcritic.settings.data import TokenSettings

LINES = ["b b b a a c c", "d , <unk> <unk> <unk> <unk>", "A A", "Übergröße is nice 😀"]


def learn(settings: TokenSettings, lines: list[str] = LINES) -> TextVocabulary:
    return learn_vocabulary(lines, settings)


def words_of(settings: TokenSettings) -> list[str]:
    words: list[str] = learn(settings).to_dict()["words"]
    return words


@pytest.fixture(scope="module")
def subwords() -> TextVocabulary:
    lines = ["Das Wetter ist heute gut, nicht wahr?", "Übergrößen sind häufig."] * 20
    return learn(TokenSettings(kind="subwords", size=330), lines)


def test_most_frequent_words_first_and_ties_in_alphabetical_order() -> None:
    assert words_of(TokenSettings(kind="whitespace", size=5)) == ["b", "A", "a", "c", ","]
    assert words_of(TokenSettings(kind="whitespace", size=None, minimum_count=2)) == ["b", "A", "a", "c"]
    assert words_of(TokenSettings(kind="whitespace", size=2, lowercase=True)) == ["a", "b"]


def test_ids_of_end_unknown_and_words() -> None:
    vocabulary = learn(TokenSettings(kind="whitespace", size=3))
    assert len(vocabulary) == 5
    assert vocabulary.encode("b A a never <unk> <end>") == [2, 3, 4, 1, 1, 1]
    assert vocabulary.encode("") == []
    assert vocabulary.tokens([2, 1, 3, 0, 4]) == ["b", "<unk>", "A"]
    assert vocabulary.decode([2, 1, 3, 0, 4]) == "b ⁇ A"


def test_words_are_decoded_to_readable_text() -> None:
    line = "I don't know, Tom's (old) dog isn't here!"
    vocabulary = learn(TokenSettings(kind="words"), [line])
    ids = vocabulary.encode(line)
    assert vocabulary.tokens(ids)[:4] == ["I", "don", "'t", "know"]
    assert vocabulary.decode(ids) == line
    assert vocabulary.decode(vocabulary.encode("I don't like dogs.")) == "I don't ⁇ ⁇ ⁇"
    assert vocabulary.words("I like dogs.") == ["I", "like", "dogs", "."]


@pytest.mark.parametrize("kind", ["words", "whitespace"])
def test_an_unknown_word_is_one_word_to_every_score(kind: str) -> None:
    """Three wrong words for each would make any method look good that says another word instead."""
    vocabulary = learn(TokenSettings(kind=kind), ["an old dog , an old cat"])
    decoded = vocabulary.decode(vocabulary.encode("an elephant , an old mouse"))
    reference = "an old dog , an old cat"
    counts = BleuScore(tokenised=kind == "whitespace").statistics([decoded], [reference])
    assert counts[0, [4, 8]].tolist() == [6, 6], "words of the prediction"
    assert len(vocabulary.words(decoded)) == 6
    wrong = decoded.replace(UNKNOWN_WORD, "wrong")
    rouge = RougeLScore(unknown_word=UNKNOWN_WORD, tokenised=kind == "whitespace")
    found, expected = (rouge.statistics([text], [reference])[0, 0] for text in (decoded, wrong))
    assert found == expected < 100


@pytest.mark.parametrize("kind", ["words", "whitespace"])
def test_an_unknown_token_matches_no_part_of_any_text(kind: str) -> None:
    """A text may say UNK or <unk>, as if it meant the unknown word; a person would not read the same in both."""
    vocabulary = learn(TokenSettings(kind=kind), ["an old dog"])
    decoded = vocabulary.decode(vocabulary.encode("mice"))
    for reference in ("UNK", "<unk>", "unk", without_reserved(f"a {UNKNOWN_WORD}")):
        assert not set(decoded) & set(reference)
        assert BleuScore(tokenised=kind == "whitespace").statistics([decoded], [reference])[0, :4].sum() == 0
        rouge = RougeLScore(unknown_word=UNKNOWN_WORD, tokenised=kind == "whitespace")
        assert rouge.statistics([decoded], [reference])[0, 0] == 0


def test_what_follows_an_unknown_word_is_split_off_as_from_others() -> None:
    vocabulary = learn(TokenSettings(kind="words"), ["Tom's old dog, isn't it?"])
    for line in ("Tim's old dog.", "Tom mightn't it, it?"):
        words = [word if vocabulary.encode(word) != [1] else UNKNOWN_WORD for word in vocabulary.words(line)]
        assert UNKNOWN_WORD in words
        assert vocabulary.words(vocabulary.decode(vocabulary.encode(line))) == words


def test_lower_casing_is_part_of_the_vocabulary() -> None:
    vocabulary = learn(TokenSettings(kind="words", lowercase=True), ["STRASSE Straße"])
    assert vocabulary.decode(vocabulary.encode("strasse STRAßE")) == "strasse straße"
    assert vocabulary.words("Straße") == ["straße"]


def test_characters_keep_spaces_and_know_only_those_of_the_text() -> None:
    vocabulary = learn(TokenSettings(kind="characters"), ["ab  a\N{COMBINING ACUTE ACCENT}c", "a b"])
    assert vocabulary.to_dict()["words"] == [" ", "a", "b", "c", "\N{COMBINING ACUTE ACCENT}"]
    ids = vocabulary.encode(" b  x a ")
    assert vocabulary.tokens(ids) == ["b", " ", " ", "<unk>", " ", "a"]
    assert vocabulary.decode([*ids, 0, 2]) == "b  ⁇ a"
    assert vocabulary.words("don't go.") == ["don", "'t", "go", "."], "what a score of words counts"
    assert len(learn(TokenSettings(kind="characters", size=2), ["aab b c"])) == 4


def test_words_beyond_the_bound_are_forgotten_and_that_is_told(told: list[str]) -> None:
    lines = [["a", "b", "a", "c"], ["d", "a", "b"], ["e", "f", "a"], ["g", "a"]]
    counts = count_words(lines, 4)
    assert counts["a"] == 5
    assert len(counts) <= 4
    assert told == ["more than 4 different words: those seen at most 1 times so far were forgotten"]
    assert count_words(lines, 7) == {"a": 5, "b": 2, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1}


def test_words_that_come_late_do_not_reach_the_learning_of_subwords(told: list[str]) -> None:
    lines = ["ab  cd", "ab ä", "ab new", "ä cd  newer", "newest"]
    assert list(bounded_lines(lines, 6)) == ["ab  cd", "ab ä", "ab", "ä cd", ""]
    assert told == ["subwords are learnt from the first 3 different words, later ones are too rare"]
    assert list(bounded_lines(lines, 100)) == lines


def test_subwords_give_every_line_back(subwords: TextVocabulary) -> None:
    generator = random.Random(1)
    alphabet = "abä ß\t,.<>€漢😀\u0301\x00▁Ġ"
    lines = ["Das ist neu: <end> <unk> Ġ▁", "two  spaces\tand\ttabs", ""]
    lines += ["".join(generator.choices(alphabet, k=generator.randint(1, 40))).strip() for _ in range(500)]
    for line, ids in zip(lines, subwords.encode_all(lines), strict=True):
        assert subwords.decode(ids) == line
        assert all(2 <= number < len(subwords) for number in ids)


def test_subwords_of_known_words_are_few_and_shown_with_their_spaces(subwords: TextVocabulary) -> None:
    ids = subwords.encode("Das Wetter ist gut")
    assert subwords.tokens(ids) == ["▁Das", "▁Wetter", "▁ist", "▁gut"]
    assert subwords.decode([*ids, 0, 7]) == "Das Wetter ist gut"
    assert subwords.decode([ids[0], 1, ids[1]]) == "Das ⁇ Wetter"
    assert subwords.tokens([1]) == ["<unk>"]
    assert subwords.words("Das ist gut.") == ["Das", "ist", "gut", "."]


def test_parts_of_a_character_are_shown_apart(subwords: TextVocabulary) -> None:
    shown = subwords.tokens(subwords.encode("漢"))
    assert len(set(shown)) == 4
    assert "\N{REPLACEMENT CHARACTER}" not in "".join(shown)


def test_subwords_have_the_size_asked_for() -> None:
    lines = [f"{number:b} is {number}" for number in range(500)]
    assert len(learn(TokenSettings(kind="subwords", size=300), lines)) == 302


def test_subwords_are_lower_cased() -> None:
    vocabulary = learn(TokenSettings(kind="subwords", size=256, lowercase=True))
    assert vocabulary.decode(vocabulary.encode(" ÜBER alles ")) == "über alles"


@pytest.mark.parametrize("kind", ["whitespace", "words", "characters", "subwords"])
def test_vocabulary_survives_json(kind: str) -> None:
    vocabulary = learn(TokenSettings.model_validate({"kind": kind, "size": 300, "lowercase": True}))
    again = vocabulary_from_dict(json.loads(json.dumps(vocabulary.to_dict())))
    assert type(again) is type(vocabulary)
    assert again.encode_all(LINES) == vocabulary.encode_all(LINES)
    assert [again.decode(again.encode(line)) for line in LINES] == [
        vocabulary.decode(vocabulary.encode(line)) for line in LINES
    ]
    assert vocabulary_digest(again) == vocabulary_digest(vocabulary)


def test_digest_tells_vocabularies_apart() -> None:
    settings = [{"kind": "words"}, {"kind": "whitespace"}, {"lowercase": True}, {"size": 3}, {"kind": "subwords"}]
    digests = {vocabulary_digest(learn(TokenSettings.model_validate(chosen))) for chosen in settings}
    assert len(digests) == len(settings)


def test_another_process_learns_the_same() -> None:
    code = (
        "from seqcritic.data.tokens import *\n"
        "from seqcritic.settings.data import TokenSettings\n"
        "lines = [f'word{k * k % 97} und{k % 13}' for k in range(3000)]\n"
        "for kind in ('words', 'subwords'):\n"
        "    settings = TokenSettings(kind=kind, size=290)\n"
        "    print(vocabulary_digest(learn_vocabulary(lines, settings)))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, env={"PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_faults() -> None:
    with pytest.raises(ValueError, match="every word once"):
        WordVocabulary("words", False, ["a", "a"])
    with pytest.raises(UserError, match="version 0 of the word rules"):
        vocabulary_from_dict({"kind": "words", "rules": 0, "lowercase": False, "words": []})


def test_faults_in_the_text_pass_through_the_library() -> None:
    def lines() -> list[str]:
        raise UserError("a.de:7: not valid UTF-8")

    with pytest.raises(UserError, match="not valid UTF-8"):
        learn_vocabulary((line for _ in range(1) for line in lines()), TokenSettings(kind="subwords"))


def test_number_of_the_end_token_is_never_given_to_text(subwords: TextVocabulary) -> None:
    assert isinstance(subwords, SubwordVocabulary)
    assert 0 not in subwords.encode("<end>")
