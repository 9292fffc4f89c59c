"""Checks of splitting raw text into words and of putting the spaces back."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest

from seqcritic.data.words import join_words, split_words

TATOEBA = Path(__file__).parents[3] / "shared" / "data" / "tatoeba-de-en"

SPLITS = [
    ("I don't know.", "I don 't know ."),
    ("We're Tom's; he'd say I'M LATE!", "We 're Tom 's ; he 'd say I 'M LATE !"),
    ("It’s John’s", "It ’s John ’s"),
    ("L'homme qu'il a vu aujourd'hui", "L' homme qu' il a vu aujourd' hui"),
    ("O'Brien's rock'n'roll", "O' Brien 's rock' n' roll"),
    ("the boys' toys", "the boys ' toys"),
    ("2,700 at 10:30, 3.14 (about $5.50)", "2,700 at 10:30 , 3.14 ( about $ 5.50 )"),
    ("-5 °C, well-known, 1990–1995", "-5 ° C , well-known , 1990–1995"),
    ("Ein- und Ausgabe -- nein!!", "Ein- und Ausgabe -- nein !!"),
    ("U.S. and z.B. www.example.com, a@b.org.", "U.S . and z.B . www.example.com , a@b.org ."),
    ("See https://example.com/a?b=c, please...", "See https://example.com/a?b=c , please ..."),
    ("„Straße“ «naïve» Größe_2", "„ Straße “ « naïve » Größe_2"),
    ("cafe\u0301 हिन्दी ❤\ufe0f", "cafe\u0301 हिन्दी ❤\ufe0f"),
    ("  white\u00a0space\t here ", "white space here"),
    ("", ""),
]

ROUND_TRIPS = [
    "I don't know; we're not Tom's friends, he'd said.",
    'He said, "No!" and "Yes, I am."',
    "She said 'hello' to the boys' teacher (twice).",
    "„Das ist gut“, sagte er: „Stimmt's?“",
    'Er sagte: „Ich werde es tun."',
    "“Well,” she said, “it’s 50% of 2,700.”",
    "Il m'a dit «bonjour» aujourd'hui.",
    "»So«, sagte er, ‚nicht‘.",
    "¿Qué? ¡No! [sic] {x} and/or #1",
    "It costs $5.50 or 5 € or £3...",
    "Mach' einfach weiter!",
    "'Twas the night.",
    "Ein- und Ausgabe, -5 and +3",
]


@pytest.mark.parametrize(("line", "words"), SPLITS)
def test_splitting(line: str, words: str) -> None:
    assert split_words(line) == words.split()


@pytest.mark.parametrize("line", ROUND_TRIPS)
def test_joining_restores_the_line(line: str) -> None:
    assert join_words(split_words(line)) == line


def test_splitting_loses_nothing_but_white_space() -> None:
    generator = random.Random(1)
    alphabet = "ab1 '’\"-.,:!?()„“«»@&/$€ \t\u0301\u200d\N{CJK UNIFIED IDEOGRAPH-6F22}😀"
    for _ in range(2000):
        line = "".join(generator.choices(alphabet, k=generator.randint(0, 30)))
        assert "".join(split_words(line)) == "".join(line.split())


def test_any_words_can_be_joined() -> None:
    generator = random.Random(2)
    words = ["a", "'", '"', "'s", "l'", "(", ")", ".", "/", "$", "5", "“", "<unk>", "»"]
    for _ in range(2000):
        chosen = generator.choices(words, k=generator.randint(0, 8))
        assert join_words(chosen).replace(" ", "") == "".join(chosen)


@pytest.mark.skipif(not TATOEBA.exists(), reason="the corpus is not part of the project")
@pytest.mark.parametrize(("language", "share"), [("en", 0.9995), ("de", 0.999)])
def test_nearly_all_sentences_survive_a_round_trip(language: str, share: float) -> None:
    with gzip.open(TATOEBA / f"train.{language}.gz", "rt", encoding="utf-8") as stream:
        lines = [" ".join(line.split()) for line in stream][:40_000]
    restored = sum(join_words(split_words(line)) == line for line in lines)
    assert restored / len(lines) > share
