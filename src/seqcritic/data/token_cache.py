"""Training pairs encoded once into files that are mapped into memory.

A cache folder is named after all that decides its content: the files (by name, size, time of change and their first
and last bytes, as reading millions of pairs takes too long for every start), both vocabularies and the filter. It
appears in one step, complete, so processes that encode the same text at the same time do not see each other.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from seqcritic.contracts.batch import text_record
from seqcritic.data.packed_rows import MappedPackedRows, PackedRows, PackedRowsWriter, token_type
from seqcritic.data.parallel import Pair
from seqcritic.data.tokens import Encoder, vocabulary_digest
from seqcritic.errors import UserError
from seqcritic.files import cache_fault, seal, unseal, write_whole

# Raise this number with every change of the files' form.
CACHE_VERSION = 2
DESCRIPTION = "description.json"
TEMPORARY = ".tmp"
SIDES = ("source", "target")
ARRAYS = tuple(f"{side}.{part}" for side in SIDES for part in ("tokens", "offsets"))
TEXT_ARRAYS = ("pairs.text", "pairs.text.offsets")
BLOCK_BYTES = 1 << 16
ATTEMPTS = 10
CHUNK_PAIRS = 10_000
CHUNK_CHARACTERS = 1 << 23
# An encoding writes every few seconds; one that has been silent for so long was killed.
ABANDONED_SECONDS = 3600.0


@dataclass(frozen=True)
class PairFilter:
    """Which pairs training leaves out, by how many tokens they have."""

    maximum_length: int
    maximum_ratio: float | None

    def reason(self, source_length: int, target_length: int) -> str | None:
        """Return why a pair is left out, or None."""
        short, long = sorted((source_length, target_length))  # the ratio holds either way
        if short == 0:
            return "with an empty side"
        if long > self.maximum_length:
            return f"longer than {self.maximum_length} tokens"
        if self.maximum_ratio is not None and long > self.maximum_ratio * short:
            return f"with a length ratio above {self.maximum_ratio:g}"
        return None


@dataclass(frozen=True)
class EncodedPairs:
    """The pairs that training uses, and what became of the others.

    `texts`, where they were asked for, are the raw source and targets of the same pairs, a JSON list each. A pair has
    at most `num_references` targets, the first of which is encoded.
    """

    folder: Path | None  # None: in memory
    source: MappedPackedRows | PackedRows
    target: MappedPackedRows | PackedRows
    num_read: int
    skipped: dict[str, int]
    text_digest: str
    texts: MappedPackedRows | PackedRows | None = None
    num_references: int = 1

    def __len__(self) -> int:
        return len(self.source)

    def read_texts(self, rows: list[int]) -> list[tuple[str, tuple[str, ...]]]:
        """Return the raw source and targets of some pairs."""
        assert self.texts is not None
        try:
            records = [json.loads(text.tobytes()) for text in self.texts.take(np.array(rows, np.int32)).sequences()]
            return [(source, tuple(targets)) for source, *targets in records]
        except ValueError:
            raise UserError(f"{self.folder}: the stored text is damaged; delete the folder, it is made again") from None


def file_signature(path: str | Path) -> dict[str, Any]:
    """Return what tells a file from others without reading all of it."""
    with Path(path).open("rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        # Its two ends, its size and its time: reading all of many gigabytes at every start would take minutes.
        digest = hashlib.blake2b(stream.read(BLOCK_BYTES), digest_size=16)
        stream.seek(max(0, size - BLOCK_BYTES))
        digest.update(stream.read(BLOCK_BYTES))
        changed = os.fstat(stream.fileno()).st_mtime_ns
    return {"name": Path(path).name, "size": size, "changed": changed, "blocks": digest.hexdigest()}


def key_of(content: Any) -> str:
    """Return a name for all that decides a cached file."""
    return hashlib.blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=12).hexdigest()


def encoded_pairs(
    cache: Path,
    files: list[dict[str, Any]],
    vocabularies: tuple[Encoder, Encoder],
    pair_filter: PairFilter,
    read: Callable[[], Iterable[Pair]],
    with_texts: bool = False,
) -> EncodedPairs:
    """Return the pairs from the cache if it holds them whole, otherwise encode what `read` yields and cache it.

    Only scores of texts need the raw pairs beside the ids, which take as much room again.
    """
    digests = [vocabulary_digest(vocabulary) for vocabulary in vocabularies]
    # All that decides the arrays is in the name: a cache is never stale, only unused.
    key = key_of([CACHE_VERSION, files, digests, asdict(pair_filter)])
    # With texts in a folder of its own: what a process has mapped is never written to.
    folder = cache / f"pairs-{key}{'-texts' if with_texts else ''}"
    cached = open_folder(folder)
    if cached is not None:
        return cached
    temporary = _make_temporary(folder)
    try:
        _encode(temporary, vocabularies, pair_filter, read(), with_texts)
        _install(temporary, folder)  # in the same folder of the same disk, so that a rename does it
    except OSError as error:
        raise cache_fault(cache, error) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    for _ in range(ATTEMPTS):
        installed = open_folder(folder)
        if installed is not None:
            return installed
        time.sleep(0.1)  # another process may be putting its own in the place of a damaged one
    raise UserError(f"{folder}: the encoded text cannot be read back; check the disk")


def open_folder(folder: Path) -> EncodedPairs | None:
    """Return the pairs of a cache folder, or None where it is absent, incomplete or damaged in a way seen at once."""
    try:
        # Its digest covers the counts and the arrays' own; a description without one is none.
        description = unseal(json.loads((folder / DESCRIPTION).read_text(encoding="utf-8")), required=True)
        with_texts = TEXT_ARRAYS[0] in description["arrays"]
        for name in (*ARRAYS, *(TEXT_ARRAYS if with_texts else ())):
            found = file_signature(folder / name)
            # Not by the time of change: copies of a cache are as good.
            if {part: found[part] for part in ("size", "blocks")} != description["arrays"][name]:
                return None
        source, target = (
            MappedPackedRows(folder / f"{side}.tokens", folder / f"{side}.offsets", description["types"][side])
            for side in SIDES
        )
        text, offsets = (folder / name for name in TEXT_ARRAYS)
        texts = MappedPackedRows(text, offsets, "uint8") if with_texts else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return _described(folder, source, target, texts, description)


def _described(
    folder: Path | None,
    source: MappedPackedRows | PackedRows,
    target: MappedPackedRows | PackedRows,
    texts: MappedPackedRows | PackedRows | None,
    description: Mapping[str, Any],
) -> EncodedPairs:
    return EncodedPairs(
        folder,
        source,
        target,
        description["num_read"],
        description["skipped"],
        description["text_digest"],
        texts,
        description["num_references"],
    )


def write_cached(path: Path, text: str) -> None:
    """Write a file of the cache."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    except OSError as error:
        raise cache_fault(path.parent, error) from None


def _make_temporary(folder: Path) -> Path:
    """Return a new folder beside the final one; remove those that killed processes have left."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        for other in folder.parent.glob(f"pairs-*{TEMPORARY}"):
            with suppress(OSError):
                # Writing into a file changes the file's time, not that of the folder.
                newest = max(path.stat().st_mtime for path in (other, *other.iterdir()))
                # Another process may be at work in a younger one.
                if time.time() - newest > ABANDONED_SECONDS:
                    shutil.rmtree(other, ignore_errors=True)
        return Path(tempfile.mkdtemp(prefix=f"{folder.name}-", suffix=TEMPORARY, dir=folder.parent))
    except OSError as error:
        raise cache_fault(folder.parent, error) from None


def _encode(
    folder: Path,
    vocabularies: tuple[Encoder, Encoder],
    pair_filter: PairFilter,
    pairs: Iterable[Pair],
    with_texts: bool,
) -> None:
    """Write the four arrays, those of the raw texts if asked for, and, last, their description."""
    names = (*ARRAYS, *(TEXT_ARRAYS if with_texts else ()))
    with ExitStack() as stack:
        streams = {name: stack.enter_context((folder / name).open("wb")) for name in names}
        description = _write_arrays(streams, vocabularies, pair_filter, pairs, "data.train")
    signatures = {name: file_signature(folder / name) for name in names}
    arrays = {name: {part: found[part] for part in ("size", "blocks")} for name, found in signatures.items()}
    # Last, for it says how large the others are: without it the folder counts as incomplete.
    (folder / DESCRIPTION).write_text(json.dumps(seal(description | {"arrays": arrays}), indent=1), encoding="utf-8")


def encoded_in_memory(
    vocabularies: tuple[Encoder, Encoder],
    pair_filter: PairFilter,
    pairs: Iterable[Pair],
    with_texts: bool,
    argument: str,
) -> EncodedPairs:
    """Return the pairs encoded without a cache; `argument` is what a fault of all of them names."""
    names = (*ARRAYS, *(TEXT_ARRAYS if with_texts else ()))
    streams = {name: BytesIO() for name in names}
    description = _write_arrays(streams, vocabularies, pair_filter, pairs, argument)

    def read(tokens: str, offsets: str, dtype: str) -> PackedRows:
        ends = np.frombuffer(streams[offsets].getvalue(), np.int64)  # with the 0 of the first sequence's beginning
        return PackedRows(np.frombuffer(streams[tokens].getvalue(), dtype), np.diff(ends))

    source, target = (read(f"{side}.tokens", f"{side}.offsets", description["types"][side]) for side in SIDES)
    texts = read(*TEXT_ARRAYS, "uint8") if with_texts else None
    return _described(None, source, target, texts, description)


def _write_arrays(
    streams: Mapping[str, BinaryIO],
    vocabularies: tuple[Encoder, Encoder],
    pair_filter: PairFilter,
    pairs: Iterable[Pair],
    setting: str,
) -> dict[str, Any]:
    """Write what the filter leaves of the pairs, and their raw texts where they have a stream; return the counts."""
    types = {side: token_type(len(vocabulary)) for side, vocabulary in zip(SIDES, vocabularies, strict=True)}
    digest = hashlib.blake2b(digest_size=16)
    skipped: Counter[str] = Counter()
    num_read, num_references = 0, 1
    writers = [PackedRowsWriter(streams[f"{side}.tokens"], streams[f"{side}.offsets"], types[side]) for side in SIDES]
    if TEXT_ARRAYS[0] in streams:
        text, offsets = (streams[name] for name in TEXT_ARRAYS)
        writers.append(PackedRowsWriter(text, offsets, "uint8"))
    for chunk in _chunks(pairs):
        num_read += len(chunk)
        # Of the raw text, before anything is left out: the fingerprint is of the data, not of what a filter makes of
        # it.
        digest.update("".join(text_record(pair.source, pair.targets) for pair in chunk).encode())
        sources = vocabularies[0].encode_all([pair.source for pair in chunk])
        targets = vocabularies[1].encode_all([pair.target for pair in chunk])
        kept: tuple[list[Sequence[int]], ...] = ([], [], [])
        for pair, source, target in zip(chunk, sources, targets, strict=True):
            reason = pair_filter.reason(len(source), len(target))
            if reason is None:
                kept[0].append(source)
                kept[1].append(target)
                kept[2].append(json.dumps([pair.source, *pair.targets], ensure_ascii=False).encode())
                num_references = max(num_references, len(pair.targets))
            else:
                skipped[reason] += 1
        for writer, sequences in zip(writers, kept, strict=False):  # the texts have no writer unless asked for
            writer.add(sequences)
    if num_read == skipped.total():  # of no pairs at all, too
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in skipped.items())
        raise UserError(f"{setting}: no pair is left to train on: {reasons}; give other text or a wider filter")
    return {
        "num_read": num_read,
        "num_references": num_references,
        "skipped": dict(skipped),
        "text_digest": digest.hexdigest(),
        "types": types,
    }


def _chunks(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    """Yield the pairs many at a time, but no more text at once than memory holds easily."""
    chunk: list[Pair] = []
    characters = 0
    for pair in pairs:
        chunk.append(pair)
        characters += len(pair.source) + sum(map(len, pair.targets))
        if len(chunk) == CHUNK_PAIRS or characters >= CHUNK_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


def _install(temporary: Path, folder: Path) -> None:
    """Give a complete folder its name. One that is there already stays if it is whole and makes room if not."""
    for _ in range(ATTEMPTS):
        try:
            # A rename onto a folder with content fails, so that of two processes only one installs its own.
            os.rename(temporary, folder)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        if open_folder(folder) is not None:
            return
        # A damaged folder is renamed away whole, for another process may be replacing it too, and then removed.
        with suppress(FileNotFoundError), tempfile.TemporaryDirectory(suffix=TEMPORARY, dir=folder.parent) as aside:
            os.rename(folder, Path(aside, folder.name))
