"""Pairs of sentences from files, one at a time: two files line by line, TSV or JSONL, all plain or gzipped."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from seqcritic.data.text import read_lines
from seqcritic.data.words import without_reserved
from seqcritic.errors import UserError
from seqcritic.settings.data import PairFiles

# A model that had learnt to write line breaks would answer one line with two.
WITHOUT_LINES = str.maketrans("\r\n", "  ")


class Pair(NamedTuple):
    """A sentence and its translation as they stand in the files, where the translation stands, and other translations.

    The first translation is learnt from; scores know them all.
    """

    source: str
    target: str
    path: str
    line: int
    further: tuple[str, ...] = ()

    @property
    def targets(self) -> tuple[str, ...]:
        """All translations."""
        return (self.target, *self.further)


def named_files(files: PairFiles, key: str) -> list[tuple[str, str]]:
    """Return all files of a split with the setting that names each, after checking what needs no reading.

    A fault in the last file is better told before the first has been read for minutes.
    """
    named = [(path, f"{key}.{field}") for field in ("source", "target", "pairs") for path in getattr(files, field)]
    if not named:
        raise UserError(
            f"{key}: no text given; add {key}.source=FILE and {key}.target=FILE (plain or .gz, several with commas), "
            f"or {key}.pairs=FILE (.tsv or .jsonl)"
        )
    for path, setting in named:
        if os.path.isdir(path):
            raise UserError(f"{setting}: {path} is a folder; name the text files in it")
        if not os.path.isfile(path):
            # A pipe is refused too: the text is read several times.
            fault = "not a regular file" if os.path.exists(path) else "no such file"
            raise UserError(f"{setting}: {fault}: {path}; check the path, or give {setting}=FILE if it has moved")
    for path in files.pairs:
        _format_of(path, f"{key}.pairs")
    return named


def read_pairs(files: PairFiles, key: str) -> Iterator[Pair]:
    """Yield the pairs of a split in the order of its files; `key` is the setting, such as data.train."""
    named_files(files, key)
    for source, target in zip(files.source, files.target, strict=True):
        yield from map(clean_pair, _read_two_files(source, target, key))
    for path in files.pairs:
        setting = f"{key}.pairs"
        read = _read_tsv if _format_of(path, setting) == ".tsv" else _read_jsonl
        yield from map(clean_pair, read(path, setting))


def clean_pair(pair: Pair) -> Pair:
    """Return a pair in which nothing reads like an unknown token."""
    source, target, *further = map(without_reserved, (pair.source, *pair.targets))
    return Pair(source, target, pair.path, pair.line, tuple(further))


def pair_in_lines(source: Any, targets: Sequence[Any], path: str, line: int) -> Pair:
    """Return a pair of what has been found to be texts, without their line breaks."""
    ours, theirs, *further = (text.translate(WITHOUT_LINES) for text in (source, *targets))
    return Pair(ours, theirs, path, line, tuple(further))


def _format_of(path: str, setting: str) -> str:
    name = path.removesuffix(".gz")
    for suffix in (".tsv", ".jsonl"):
        if name.endswith(suffix):
            return suffix
    raise UserError(f"{setting}: {path}: the name must end in .tsv, .jsonl, .tsv.gz or .jsonl.gz")


def _read_two_files(source: str, target: str, key: str) -> Iterator[Pair]:
    lines = zip_longest(read_lines(source, f"{key}.source"), read_lines(target, f"{key}.target"))
    for number, (ours, theirs) in enumerate(lines, start=1):
        if ours is None or theirs is None:
            short, long = (source, target) if ours is None else (target, source)
            raise UserError(
                f"{key}: {short}:{number - 1} is its last line, but {long} goes on at line {number}; "
                "the two must have one translation a line"
            )
        yield Pair(ours, theirs, target, number)


def _read_tsv(path: str, setting: str) -> Iterator[Pair]:
    for number, line in enumerate(read_lines(path, setting), start=1):
        columns = line.split("\t")
        if len(columns) != 2:
            found = f"{len(columns)} columns between tabs, not the two of source and target"
            raise UserError(f"{setting}: {path}:{number}: {found if line.strip() else 'an empty line; remove it'}")
        yield Pair(columns[0], columns[1], path, number)


def _read_jsonl(path: str, setting: str) -> Iterator[Pair]:
    for number, line in enumerate(read_lines(path, setting), start=1):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{setting}: {path}:{number}: not valid JSON: {error}") from None
        given, wanted = (record.get("source"), record.get("target")) if isinstance(record, dict) else (None, None)
        targets = wanted if isinstance(wanted, list) and wanted else [wanted]
        if not all(map(is_text, (given, *targets))):
            raise UserError(
                f'{setting}: {path}:{number}: not an object with the texts "source" and "target"; several references '
                'are a list of texts in "target"'
            )
        yield pair_in_lines(given, targets, path, number)


def is_text(side: object) -> bool:
    """Return whether this is a string that can be written as UTF-8: JSON can escape half a surrogate pair."""
    if not isinstance(side, str):
        return False
    try:
        side.encode()
    except UnicodeEncodeError:
        return False
    return True
