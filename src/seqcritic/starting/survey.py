"""What pairs look like: lengths, alphabets, unknown words, duplicates. Nothing is decided here."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from seqcritic.data.held_out import held_out_for
from seqcritic.data.parallel import Pair, read_pairs, refuse_idle
from seqcritic.data.words import split_words
from seqcritic.errors import UserError
from seqcritic.progress import Bar
from seqcritic.settings.data import ColumnSettings, PairFiles

# More pairs than these are counted, but not looked at: they would tell nothing new.
MOST_SURVEYED = 300_000
# So many sources, chosen by their hash, stand for text that a vocabulary was not learnt from.
UNSEEN = {"valid": 0.1}
VOCABULARY_SIZES = (1_000, 3_000, 10_000, 30_000)


@dataclass(frozen=True)
class SideSurvey:
    """One side of all pairs. Symbols stand between spaces; words are those of raw text."""

    lines: Sequence[str]
    num_characters: int
    """Different ones."""
    characters: tuple[int, int]
    """Of a line: the median, and what 99 of 100 lines do not exceed."""
    num_symbols: int
    symbols: tuple[int, int]
    unknown_symbols: float
    """Share of the symbols in unseen lines that stand nowhere else."""
    num_words: int
    unknown_words: Mapping[int, float]
    """Share of the words in unseen lines that are not among the so many most frequent ones."""


@dataclass(frozen=True)
class Survey:
    """All pairs of some files."""

    num_pairs: int
    surveyed: Sequence[Pair]
    num_sources: int
    num_repeated: int
    """Pairs that stand before, word for word."""
    num_with_several: int
    """Sources with several different targets."""
    num_scattered: int
    """Those of them whose targets stand in several pairs."""
    num_equal: int
    """Pairs whose sides are the same."""
    num_empty: int
    """Pairs with an empty side, which training leaves out."""
    source: SideSurvey
    target: SideSurvey

    def num_shared(self, others: Iterable[Pair]) -> int:
        """Count those of other pairs whose source stands among these."""
        own = {pair.source for pair in self.surveyed}
        return sum(pair.source in own for pair in others)


def survey_files(files: PairFiles, key: str, columns: ColumnSettings | None = None) -> Survey:
    """Return what the pairs of some files look like; `key` is what a fault names."""
    read: list[Pair] = []
    num_pairs = 0
    with Bar("looking at the pairs", unit="pairs") as bar:
        for pair in bar.over(read_pairs(files, key, columns)):
            # Counted to the end, since sizes and schedule follow from how many there are.
            num_pairs += 1
            if len(read) < MOST_SURVEYED:
                read.append(pair)
    return survey_pairs(read, num_pairs, key)


def survey_pairs(read: Sequence[Pair], num_pairs: int, key: str) -> Survey:
    """Return what pairs look like; of `num_pairs` those that were `read` are looked at."""
    full = [pair for pair in read if pair.source.strip() and pair.target.strip()]
    if not full:
        place = f"{key}: {read[0].path}" if read else key
        raise UserError(f"{place}: no pair has both sides; give each source its target")
    refuse_idle(full, key)
    targets: dict[str, set[str]] = defaultdict(set)
    listed: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for pair in full:
        targets[pair.source].update(pair.targets)
        listed[pair.source].add(pair.targets)
    different = {(pair.source, pair.targets) for pair in full}
    num_equal = sum(pair.source == pair.target for pair in full)
    # As valid is held out: a source that stands several times is unseen in all of its places.
    unseen = [held_out_for(pair.source, UNSEEN) == "valid" for pair in full]
    return Survey(
        num_pairs,
        full,
        len(targets),
        len(full) - len(different),
        sum(len(found) > 1 for found in targets.values()),
        sum(len(found) > 1 for found in listed.values()),
        num_equal,
        len(read) - len(full),
        _survey_side([pair.source for pair in full], unseen),
        _survey_side([pair.target for pair in full], unseen),
    )


def _survey_side(lines: list[str], unseen: list[bool]) -> SideSurvey:
    symbols, words = [line.split() for line in lines], [split_words(line) for line in lines]
    all_symbols, unknown = _unknown_shares(symbols, unseen, (None,))
    all_words, unknown_words = _unknown_shares(words, unseen, VOCABULARY_SIZES)
    return SideSurvey(
        lines,
        len(set().union(*map(set, lines))),
        spread([len(line.strip()) for line in lines]),
        len(all_symbols),
        spread([len(line) for line in symbols]),
        unknown[None],
        len(all_words),
        {size: share for size, share in unknown_words.items() if size is not None},
    )


def _unknown_shares(
    lines: list[list[str]], unseen: list[bool], sizes: Sequence[int | None]
) -> tuple[Counter[str], dict[int | None, float]]:
    """Return how often each token stands, and the shares of unseen lines' tokens outside vocabularies of the others."""
    seen, new = Counter[str](), Counter[str]()
    for line, is_unseen in zip(lines, unseen, strict=True):
        (new if is_unseen else seen).update(line)
    total = max(sum(new.values()), 1)  # few pairs may have none unseen
    shares: dict[int | None, float] = {}
    for size in sizes:
        known = {token for token, _ in seen.most_common(size)}
        shares[size] = sum(count for token, count in new.items() if token not in known) / total
    return seen + new, shares  # all lines have told what there is; the shares are of those unseen


def spread(lengths: Sequence[int]) -> tuple[int, int]:
    """Return the median, and what 99 of 100 do not exceed."""
    # A length that some line has, rather than one between two of them.
    median, long = np.quantile(lengths, [0.5, 0.99], method="higher")
    return int(median), int(long)
