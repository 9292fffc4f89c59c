"""Pairs of sentences from files and datasets, one at a time: two files line by line, two columns, named columns."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from seqcritic.data.sounds import is_sound, sound_path
from seqcritic.data.tables import READERS, Numbered, field_of, sounds_with_texts
from seqcritic.data.text import read_lines
from seqcritic.data.words import without_reserved
from seqcritic.errors import UserError
from seqcritic.settings.data import ColumnSettings, PairFiles

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


def named_files(files: PairFiles, key: str, origin: str = "") -> list[tuple[str, str]]:
    """Return all files of a split with the setting that names each, after checking what needs no reading.

    A fault in the last file is better told before the first has been read for minutes. `origin`: the command that makes
    the files, told where one is missing.
    """
    named = [(path, f"{key}.{field}") for field in ("source", "target", "pairs") for path in getattr(files, field)]
    if not named:
        raise UserError(
            f"{key}: no text given; add {key}.source=FILE and {key}.target=FILE (plain or .gz, several with commas), "
            f"or {key}.pairs=FILE (.tsv, .csv, .jsonl or .parquet), or data.dataset.name"
        )
    if any(os.path.isdir(path) for path in files.pairs):
        named = [each for path, setting in named for each in _files_of(path, setting, f"{key}.pairs")]
    for path, setting in named:
        if os.path.isdir(path):
            raise UserError(f"{setting}: {path} is a folder; name the text files in it")
        if not os.path.isfile(path):
            # A pipe is refused too: the text is read several times.
            fault = "not a regular file" if os.path.exists(path) else "no such file"
            advice = f"make it by '{origin}'" if origin else "check the path"
            raise UserError(f"{setting}: {fault}: {path}; {advice}, or give {setting}=FILE if it has moved")
    for path in files.pairs:
        if not os.path.isdir(path):
            _format_of(path, f"{key}.pairs")
    return named


def _files_of(path: str, setting: str, pairs: str) -> list[tuple[str, str]]:
    """Return a file, or, of a folder that may have sounds, the texts beside these."""
    if setting != pairs or not os.path.isdir(path):
        return [(path, setting)]
    return [(text, setting) for _, text in sounds_with_texts(path, setting)]


def read_pairs(files: PairFiles, key: str, columns: ColumnSettings | None = None, origin: str = "") -> Iterator[Pair]:
    """Yield the pairs of a split in the order of its files; `key` is the setting, such as data.train."""
    named_files(files, key, origin)
    columns = ColumnSettings() if columns is None else columns
    for source, target in zip(files.source, files.target, strict=True):
        yield from map(clean_pair, _read_two_files(source, target, key))
    for path in files.pairs:
        setting = f"{key}.pairs"
        yield from map(clean_pair, _read_both_sides(path, setting, columns))


def _read_both_sides(path: str, setting: str, columns: ColumnSettings) -> Iterator[Pair]:
    if os.path.isdir(path):
        return _read_sounds(path, setting)
    suffix = _format_of(path, setting)
    if suffix == ".tsv":
        return _read_tsv(path, setting)
    return read_rows(READERS[suffix](path, setting), columns, f"{setting}: {path}", path)


def refuse_idle(pairs: Iterable[Pair], key: str) -> None:
    """Refuse pairs that teach nothing: all of one source, or each its own target. No more are read than tell it."""
    first: Pair | None = None
    has_sources, has_targets = False, False
    for pair in pairs:
        if not (pair.source.strip() and pair.target.strip()):
            continue
        first = first or pair
        has_sources |= pair.source != first.source
        has_targets |= pair.target != pair.source
        if has_sources and has_targets:
            return
    if first is None:
        return  # what is left of pairs is told where they are counted
    place = f"{key}: {first.path}" if first.path else key
    if not has_sources:
        raise UserError(f"{place}: all pairs have the same source, {first.source!r}; give pairs of different sources")
    raise UserError(f"{place}: source and target are the same in all pairs; give what is to be written as the target")


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
    for suffix in (".tsv", *READERS):
        if name.endswith(suffix) and (suffix != ".parquet" or name == path):
            return suffix
    raise UserError(f"{setting}: {path}: the name must end in .tsv, .csv or .jsonl, plain or with .gz, or in .parquet")


def _read_two_files(source: str, target: str, key: str) -> Iterator[Pair]:
    # Where one file is shorter, every pair from some line on would be wrong, or lost without a word.
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
        # No quotes as in CSV: a .tsv of sentences has their quotation marks as they are.
        columns = line.split("\t")
        if len(columns) != 2:
            found = "no tab" if len(columns) == 1 else f"{len(columns)} columns between tabs"
            wanted = f"{found}; each line has to be a source, a tab and its target"
            raise UserError(f"{setting}: {path}:{number}: {wanted if line.strip() else 'an empty line; remove it'}")
        yield Pair(columns[0], columns[1], path, number)


def _read_sounds(folder: str, setting: str) -> Iterator[Pair]:
    for sound, text in sounds_with_texts(folder, setting):
        heard = " ".join(line.strip() for line in read_lines(text, setting))
        # As paths in tables are told: `locate_sound` joins both again.
        yield Pair(os.path.relpath(sound, os.path.dirname(text)), heard, text, 1)


def read_rows(rows: Iterable[Numbered], columns: ColumnSettings, place: str, path: str) -> Iterator[Pair]:
    """Yield the pairs of rows with named columns; `place` begins what is told of a fault, `path` is the pair's."""
    named = f'"{columns.source}" and "{columns.target}"'
    fault = f'not an object with the texts {named}; several references are a list of texts in "{columns.target}"'
    for number, row in rows:
        where = f"{place}:{number}"
        if not isinstance(row, Mapping):
            raise UserError(f"{where}: {fault}")
        given, wanted = (
            field_of(row, field, where, "data.columns.source and data.columns.target")
            for field in (columns.source, columns.target)
        )
        if is_sound(given):
            given = sound_path(given, where)
        # An empty list is no list of references: it is refused as not a text.
        targets = wanted if isinstance(wanted, list) and wanted else [wanted]
        if not all(map(is_text, (given, *targets))):
            raise UserError(f"{where}: {fault}")
        yield pair_in_lines(given, targets, path, number)


def locate_sound(pair: Pair, place: str) -> Pair:
    """Return a pair whose source is a file of its own right: a path in a table is told from the table's folder."""
    path = os.path.join(os.path.dirname(pair.path), pair.source)  # a path from the root stays as it is
    if not os.path.isfile(path):
        raise UserError(f"{place}: no sound {path}; check the path, which is told from the file's folder")
    return pair._replace(source=path)


def is_text(side: object) -> bool:
    """Return whether this is a string that can be written as UTF-8: JSON can escape half a surrogate pair."""
    if not isinstance(side, str):
        return False
    try:
        side.encode()
    except UnicodeEncodeError:
        return False
    return True
