"""Rows with named columns: of csv, jsonl and parquet files, of folders of sounds, and of Hugging Face datasets.

Every row comes with its number, by which a fault is told: the line of a text file, the row of others.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from seqcritic.data.sounds import SUFFIXES
from seqcritic.data.text import read_lines
from seqcritic.errors import UserError
from seqcritic.settings.data import DatasetSettings

Row = Mapping[str, Any]
Numbered = tuple[int, Any]  # what should be a Row
ROWS_AT_ONCE = 1024
INFO_FILE = "dataset_info.json"  # of a folder that save_to_disk has written
SPLITS_FILE = "dataset_dict.json"


def read_jsonl(path: str, setting: str) -> Iterator[Numbered]:
    """Yield the records of a file with one JSON value a line."""
    for number, line in enumerate(read_lines(path, setting), start=1):
        try:
            yield number, json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{setting}: {path}:{number}: not valid JSON: {error}") from None


def read_csv(path: str, setting: str) -> Iterator[Numbered]:
    """Yield the rows of a file with commas, whose first line has the names of the columns."""
    # With line ends again, since a text in quotes may go over several lines; strict, to refuse what is no CSV.
    reader = csv.DictReader((f"{line}\n" for line in read_lines(path, setting)), strict=True)
    while True:
        try:
            row = next(reader, None)
        except csv.Error as error:
            raise UserError(f"{setting}: {path}:{reader.reader.line_num}: not valid CSV: {error}") from None
        if row is None and reader.line_num <= 1:
            raise UserError(f"{setting}: {path} has the names of its columns alone; give a file with at least one row")
        if row is None:
            return
        # DictReader's marks of a row with too many columns, and of one with too few.
        if None in row or None in row.values():
            names = len(reader.fieldnames or ())
            raise UserError(f"{setting}: {path}:{reader.line_num}: not the {names} columns that the first line names")
        yield reader.line_num, row


def read_parquet(path: str, setting: str) -> Iterator[Numbered]:
    """Yield the rows of a parquet file."""
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise UserError(
            f"{setting}: parquet files need the extra 'datasets': pip install 'seqcritic[datasets]'"
        ) from None
    number = 0
    try:
        with ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=ROWS_AT_ONCE):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except (ArrowException, OSError) as error:
        told = " ".join(str(error).split())
        raise UserError(f"{setting}: {path}: not a parquet file that can be read: {told}") from None
    if number == 0:
        raise UserError(f"{setting}: {path} is empty; give a file with at least one row")


READERS: dict[str, Callable[[str, str], Iterator[Numbered]]] = {
    ".jsonl": read_jsonl,
    ".csv": read_csv,
    ".parquet": read_parquet,
}


def sounds_with_texts(folder: str, setting: str) -> list[tuple[str, str]]:
    """Return the sounds below a folder with the text files beside them that say what is heard, in their order."""
    found = sorted(str(path) for path in Path(folder).rglob("*") if path.suffix.lower() in SUFFIXES)
    if not found:
        raise UserError(f"{setting}: {folder} is a folder without a .wav or .flac; name the text files in it")
    texts = [(path, str(Path(path).with_suffix(".txt"))) for path in found]
    for path, text in texts:
        if not os.path.isfile(text):
            raise UserError(f"{setting}: {path} has no {Path(text).name} beside it that says what is heard; write it")
    return texts


def field_of(row: Row, field: str, place: str, naming: str) -> Any:
    """Return a field of a row, or the field of a field; `naming` tells how fields are named."""
    if field in row:  # as it is named first: a column's name may have dots
        return row[field]
    first, _, rest = field.partition(".")
    inner = row.get(first)
    if rest and isinstance(inner, Mapping):
        return field_of(inner, rest, place, naming)
    known = ", ".join(map(str, row))
    raise UserError(f"{place}: no field '{field}', only {known}; name the fields by {naming}")


def open_dataset(settings: DatasetSettings, split: str) -> Any:
    """Return one split of a dataset, its sounds undecoded."""
    try:
        import datasets
    except ImportError:
        raise UserError("data.dataset needs the extra 'datasets': pip install 'seqcritic[datasets]'") from None
    name, wanted = settings.name, getattr(settings, split)
    try:
        if os.path.isfile(os.path.join(name, SPLITS_FILE)) or os.path.isfile(os.path.join(name, INFO_FILE)):
            whole = datasets.load_from_disk(name)
        else:
            whole = datasets.load_dataset(name, settings.config)
    except Exception as error:  # the library raises what its readers and the network raise
        told = " ".join(str(error).split())[:200]
        raise UserError(f"data.dataset: cannot load {name}: {told}") from None
    if isinstance(whole, datasets.DatasetDict):
        if wanted not in whole:
            raise UserError(
                f"data.{split}: the dataset {name} has no split '{wanted}', only {', '.join(whole)}; name it by "
                f"data.dataset.{split}, or give files"
            )
        whole = whole[wanted]
    elif split != "train":
        raise UserError(f"data.{split}: the dataset {name} has no splits; it trains. Give data.{split}.pairs=FILE")
    return undecoded(whole)


def undecoded(dataset: Any) -> Any:
    """Return a dataset whose sounds are given as the bytes of their files: decoding them needs another library."""
    from datasets import Audio

    for column, feature in dataset.features.items():
        if isinstance(feature, Audio):
            dataset = dataset.cast_column(column, Audio(decode=False))
    return dataset
