"""What to train on given pairs and a given machine, and why: tokens, lengths, sizes, regularisation, schedule.

The rules are few, and each says its reason in the recipe that `init` writes. benchmarks/evidence/init_grid.py compares
them with a grid on words with their phonemes and on sentences.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from seqcritic.data.tokens import learn_vocabulary
from seqcritic.progress import Bar
from seqcritic.settings.data import TokenSettings
from seqcritic.starting.survey import SideSurvey, Survey

CLOSED_SET = 500  # more different symbols than these are words
FEW_UNKNOWN = 0.02
FEW_WORDS = 3_000  # beyond these, an output layer over words costs more than it saves in steps
HELD_OUT, MOST_HELD_OUT = 0.05, 1_000
SAMPLED_LINES = 5_000  # enough to learn the subwords that lengths are counted in
LONGEST = 250
NUM_EVALUATIONS, PATIENCE = 20, 6
PAIRS_OF_SCHEDULE, EPOCHS_OF_SCHEDULE = 3_000, 30


@dataclass(frozen=True)
class Chosen:
    """A value, and in words why."""

    value: object
    why: str


@dataclass(frozen=True)
class Machine:
    """What a run will have to work with."""

    num_cores: int
    has_gpu: bool


@dataclass(frozen=True)
class Choice:
    """All that a recipe needs beside where the pairs are."""

    source_tokens: Chosen
    target_tokens: Chosen
    held_out: float
    maximum_length: Chosen
    length_factor: Chosen
    score: Chosen
    hidden: Chosen
    dropout: Chosen
    batch: int
    threads: int
    epochs: int
    actor_updates: Chosen
    critic_updates: int
    train_updates: int
    evaluate_every: int


def choose(survey: Survey, machine: Machine) -> Choice:
    """Return the settings for pairs and a machine."""
    sides = survey.source, survey.target
    tokens = [choose_tokens(side, survey.num_pairs) for side in sides]
    with Bar("counting tokens", len(sides), "sides") as bar:  # subwords are learnt for it
        lengths = [_lengths(side, chosen) for side, chosen in bar.over(zip(sides, tokens, strict=True))]
    num_target_tokens = round(survey.num_pairs * float(np.mean(lengths[1])))
    hidden, dropout = choose_sizes(num_target_tokens, machine)
    batch = 32 if survey.num_pairs < 10_000 else 64
    # With n pairs the passes fall as n^-0.4, so that the updates still rise, as n^0.6.
    epochs = round(EPOCHS_OF_SCHEDULE * (PAIRS_OF_SCHEDULE / survey.num_pairs) ** 0.4)
    epochs = min(max(epochs, 3), 60)
    updates = math.ceil(epochs * survey.num_pairs / batch / 100) * 100  # whole hundreds, for people
    return Choice(
        source_tokens=tokens[0],
        target_tokens=tokens[1],
        held_out=_held_out_share(survey.num_sources),
        maximum_length=_longest(lengths),
        length_factor=_factor(lengths),
        score=choose_score(survey.target, tokens[1]),
        hidden=hidden,
        dropout=dropout,
        batch=batch,
        threads=1 if machine.has_gpu or survey.num_pairs < 10_000 else min(machine.num_cores, 4),
        epochs=epochs,
        actor_updates=Chosen(updates, f"some {epochs} passes over {survey.num_pairs:,} pairs in batches of {batch}"),
        critic_updates=max(200, updates // 8),
        train_updates=max(400, updates // 4),
        evaluate_every=max(1, updates // NUM_EVALUATIONS),
    )


def choose_tokens(side: SideSurvey, num_pairs: int) -> Chosen:
    """Return what a token of one side should be, as settings."""
    symbols, _ = side.symbols
    # In raw text a word stands with and without punctuation marks, so that there are more symbols than words.
    bare = side.num_symbols <= min(CLOSED_SET, 1.2 * side.num_words)
    # A closed set has hardly anything new; words, of which a text always has new ones, are allowed ten times more.
    if symbols >= 2 and bare and side.unknown_symbols <= FEW_UNKNOWN / 10:
        why = f"{side.num_symbols} different symbols between spaces, next to none of them new in unseen lines"
        return Chosen({"kind": "whitespace", "size": None}, why)
    # More than a dozen characters between spaces are no words: a script such as Chinese has none between them.
    if symbols < 2 or side.characters[0] / symbols > 12:
        why = f"single words or text without spaces, in {side.num_characters} different characters"
        return Chosen({"kind": "characters", "size": None}, why)
    for size, share in side.unknown_words.items():
        if share <= FEW_UNKNOWN and size <= FEW_WORDS:
            why = f"the {size:,} most frequent words leave {100 * share:.1f} % of unseen text unknown"
            return Chosen({"kind": "words", "size": size}, why)
    size = 1_000 if num_pairs < 10_000 else 4_000 if num_pairs < 100_000 else 8_000 if num_pairs < 2_000_000 else 16_000
    share = side.unknown_words[10_000]  # one of the sizes that the survey has counted
    why = f"of unseen text {100 * share:.1f} % would be unknown words even with 10,000 of them; subwords know all"
    return Chosen({"kind": "subwords", "size": size}, why)


def choose_sizes(num_target_tokens: int, machine: Machine) -> tuple[Chosen, Chosen]:
    """Return width and dropout for so many tokens to learn from."""
    if num_target_tokens < 100_000:
        hidden, dropout = 128, 0.3
    elif num_target_tokens < 1_000_000:
        hidden, dropout = 256, 0.3
    else:
        hidden, dropout = 512 if machine.has_gpu else 256, 0.2
    seen = f"{num_target_tokens:,} tokens to learn from"
    place = "a GPU" if machine.has_gpu else f"{machine.num_cores} core(s)"
    return Chosen(hidden, f"{seen}, on {place}"), Chosen(dropout, f"{seen}: the fewer, the more is dropped")


def choose_score(target: SideSurvey, tokens: Chosen) -> Chosen:
    """Return the score to train for: that of sentences is BLEU, that of anything shorter counts errors."""
    assert isinstance(tokens.value, dict)
    if tokens.value["kind"] in ("words", "subwords") and target.symbols[0] >= 4:
        return Chosen("bleu", "targets are sentences")
    unit = "characters" if tokens.value["kind"] == "characters" else "symbols"
    return Chosen("token-error-rate", f"targets are short: wrong {unit} are counted")


def _lengths(side: SideSurvey, tokens: Chosen) -> list[int]:
    """Return the number of tokens of a sample of lines."""
    settings = TokenSettings.model_validate(tokens.value)
    # Every so many, not the first ones: files are often sorted.
    sample = list(islice(side.lines, 0, None, max(1, len(side.lines) // SAMPLED_LINES)))
    # A vocabulary of the sample itself: only how many tokens a line has is asked for.
    return [len(ids) for ids in learn_vocabulary(sample, settings).encode_all(sample)]


def _longest(lengths: Sequence[list[int]]) -> Chosen:
    # Both sides have the same places in their samples, so that pairs stay pairs.
    longer = [max(pair) for pair in zip(*lengths, strict=True)]
    # A tenth of room above nearly all of them, for what the sample has not seen.
    wanted = min(max(10, math.ceil(1.1 * float(np.quantile(longer, 0.995)))), LONGEST)
    share = float(np.mean(np.array(longer) > wanted))
    return Chosen(wanted, f"tokens; leaves out {100 * share:.1f} % of the training pairs, the costliest ones")


def _factor(lengths: Sequence[list[int]]) -> Chosen:
    """Return how many tokens a prediction may have for each of its source, ten more beside."""
    # Less the ten that length.extra adds whatever the source is.
    ratios = [(target - 10) / source for source, target in zip(*lengths, strict=True) if source]
    most = float(np.quantile(ratios, 0.999))
    # Rounded up to halves; 2 is the default of length.factor.
    return Chosen(
        max(2.0, math.ceil(2 * most) / 2), "a prediction may have this times the tokens of its source, and ten"
    )


def _held_out_share(num_sources: int) -> float:
    """Return which share of the sources validates, and which tests: 5 %, at most some 1,000, at least some 50."""
    share = min(HELD_OUT, MOST_HELD_OUT / num_sources)
    # At most a fifth for either set, however few there are: most are to train on. Two digits read better in a recipe.
    return float(f"{min(max(share, 50 / num_sources), 0.2):.2g}")
