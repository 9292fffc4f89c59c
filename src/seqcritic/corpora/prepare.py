"""The published sets of a corpus from its original archives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from seqcritic.corpora.corpus import Corpus
from seqcritic.corpora.download import fetch
from seqcritic.corpora.output import DOWNLOAD_FOLDER, OutputFolder
from seqcritic.corpora.sets import SPLITS, Sets, file_names
from seqcritic.corpora.sources import Source, collect, describe_files, find_source, missing_files, source_of
from seqcritic.corpora.table import CORPORA
from seqcritic.errors import UserError
from seqcritic.progress import set_up_logging

ROWS = {"read": "read for training"} | {split: split for split in SPLITS}


@dataclass(frozen=True)
class Prepared:
    """Sets in a folder and what prepared.json says of them; `is_new` if this command has made them."""

    folder: Path
    record: Mapping[str, Any]
    is_new: bool


def prepare(name: str, out: str | Path, source: str | Path | None) -> Prepared:
    """Make the sets of the corpus `name` in the folder `out`.

    `source` is the archive, or a folder with archives or with the files themselves, or for some corpora the name of an
    installed package; without it the archives are fetched to `out/download`. Sets that are there already, from the same
    source, are left as they are.
    """
    set_up_logging()
    if name not in CORPORA:
        raise UserError(f"no corpus '{name}'; choose one of {', '.join(CORPORA)}")
    corpus = CORPORA[name]
    given = None if source is None else find_source(_place(source, corpus), corpus.key_of)
    with OutputFolder(Path(out)) as output:
        record = output.read_record(file_names(corpus.sides))
        if record is not None:
            _check_same(record, corpus, given, output.folder)
            return Prepared(output.folder, record, is_new=False)
        software = corpus.software()  # first, since a library that is missing is known before hours of fetching
        files = given or _fetch(corpus, output.folder / DOWNLOAD_FOLDER)
        described = describe_files(files)
        record = _make_sets(corpus, files, output)
        record["source"] = {
            "path": str(files.path.resolve()),
            "fetched_from": _addresses(corpus) if given is None else None,
            "files": described,
        }
        record["software"] = {"seqcritic": version("seqcritic"), "tokenizer": software}
        output.commit(record)
    return Prepared(output.folder, record, is_new=True)


def _place(source: str | Path, corpus: Corpus) -> Path:
    """Return where a source is: a path, or the file in an installed package that goes by its name."""
    path = Path(source)
    if corpus.package is None or str(source) != corpus.package.name or path.exists():
        return path
    found = corpus.package.find()
    if found is None:
        raise UserError(f"source: no file or folder '{source}', and no package of that name; {corpus.package.advice}")
    return found


def _fetch(corpus: Corpus, folder: Path) -> Source:
    try:
        return source_of(folder, fetch(corpus.downloads, folder), corpus.key_of)
    except UserError as error:
        if corpus.package is None:
            raise
        raise UserError(f"{error}; or {corpus.package.advice}") from None


def _make_sets(corpus: Corpus, source: Source, output: OutputFolder) -> dict[str, Any]:
    """Write the sets to the working folder and return what there is to say of them."""
    collection = collect(source, corpus.key_of, output.members)
    looked_for = corpus.missing(collection.files.keys())
    if looked_for is not None:
        raise missing_files(source, looked_for, collection.others)
    with Sets(output.sets, corpus.sides) as sets:
        built = corpus.build(collection.files, sets)
        if sets.count("train") == 0:
            left_out = ", ".join(f"{count:,} {fault}" for fault, count in built.left_out.items())
            raise UserError(f"source: {source.path}: nothing is left to train on: {left_out}")
        counts = {"read": built.num_read} | {split: sets.count(split) for split in SPLITS}
        files = sets.finish()
    return {
        "corpus": corpus.name,
        "settings": dict(corpus.settings),
        "counts": counts,
        "expected": {part: size.text for part, size in corpus.sizes.items()},
        # Told, not refused: sets of another edition are sets still.
        "differing": [part for part, size in corpus.sizes.items() if not size.admits(counts[part])],
        "left_out": built.left_out,
        "notes": built.notes,
        "files": files,
    }


def _check_same(record: Mapping[str, Any], corpus: Corpus, given: Source | None, folder: Path) -> None:
    """Refuse a folder with the sets of another corpus, other settings or another source."""
    if record["corpus"] != corpus.name:
        raise UserError(f"{folder} holds sets of {record['corpus']}, not of {corpus.name}; give another folder")
    if record["settings"] != corpus.settings:
        raise UserError(f"{folder} holds sets made with other settings, by another version; give another folder")
    origin = record["source"]
    if given is None and origin["fetched_from"] != _addresses(corpus):
        raise UserError(
            f"{folder} holds sets prepared from {origin['path']}, not from the network; "
            "name that as the source, or give another folder"
        )
    if given is not None and _digests(origin["files"]) != _digests(describe_files(given)):
        raise UserError(f"{folder} holds sets prepared from other files ({origin['path']}); give another folder")


def _addresses(corpus: Corpus) -> list[str]:
    return [download.address for download in corpus.downloads]


def _digests(files: list[dict[str, Any]]) -> list[str]:
    # By content alone: files that were renamed or moved are the same source.
    return sorted(file["sha256"] for file in files)


def summary(prepared: Prepared) -> list[str]:
    """Return what to print when the sets are there: sizes beside the published ones, and what to know of them."""
    record = prepared.record
    state = "prepared in" if prepared.is_new else "was prepared before, from the same source, in"
    lines = [f"{record['corpus']} {state} {prepared.folder}", "", *_table(prepared), ""]
    if record["left_out"]:
        faults = ", ".join(f"{count:,} {fault}" for fault, count in record["left_out"].items())
        lines.append(f"left out of training: {faults}")
    lines += [f"note: {note}" for note in record["notes"]]
    for part in record["differing"]:
        found, expected = record["counts"][part], record["expected"][part]
        lines.append(
            f"warning: {ROWS[part]}: {found:,}, not {expected}; the source is incomplete or another edition, "
            "so scores do not compare with published ones"
        )
    files = ", ".join(record["files"])
    return [*lines, f"files: {files}"]


def _table(prepared: Prepared) -> list[str]:
    rows = [("", "expected", "found")]
    for part, label in ROWS.items():
        rows.append((label, prepared.record["expected"].get(part, "-"), f"{prepared.record['counts'][part]:,}"))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [f"{a:{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}".rstrip() for a, b, c in rows]
