"""metrics.jsonl: one record a line, cut back to the checkpoint on resume."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seqcritic.errors import UserError
from seqcritic.files import seal, unseal

METRICS_FILE = "metrics.jsonl"
Record = dict[str, Any]
# What readers take for granted: in every record, and in those of a kind.
NAMES = ("kind", "phase")
NUMBERS = ("update", "total_updates", "compute", "seconds")
NUMBERS_OF_KIND = {"valid": ("valid_score", "best_score")}
SHOWN = (
    ("likelihood_loss", "ll"),
    ("actor_loss", "actor"),
    ("critic_loss", "critic"),
    ("td_error", "td"),
    ("explained_variance", "explained"),
    ("sampled_return", "return"),
)


class NoMetrics:
    """Writes nothing: of several processes, one writes."""

    offset = 0

    def write(self, record: Record) -> None:
        """Write nothing."""


class Metrics:
    """Appends records to metrics.jsonl; `offset` is the length of what has been written."""

    def __init__(self, folder: Path, offset: int) -> None:
        self.path = folder / METRICS_FILE
        try:
            with self.path.open("ab") as stream:
                if stream.tell() < offset:  # in a file that is opened to append, its length
                    raise UserError(f"{self.path} lacks records made before the checkpoint; give another folder")
                # Records after the checkpoint will be written again, the same.
                stream.truncate(offset)
        except OSError as error:
            raise UserError(f"cannot write {self.path}: {error.strerror or error}") from None
        self.offset = offset

    def write(self, record: Record) -> None:
        """Append one record."""
        line = (json.dumps(seal(record)) + "\n").encode()
        try:
            with self.path.open("ab") as stream:
                stream.write(line)
                stream.flush()
                os.fsync(stream.fileno())  # a file shorter than its checkpoint says is refused
        except OSError as error:
            raise UserError(
                f"cannot write {self.path}: {error.strerror or error}; the last checkpoint is kept"
            ) from None
        self.offset += len(line)


def loss_terms(means: Mapping[str, float]) -> list[str]:
    """Return the losses and what tells of the critic, each in two words."""
    return [f"{short} {means[name]:.3g}" for name, short in SHOWN if name in means]


def read_metrics(folder: Path) -> list[Record]:
    """Return the records of a run; a last line cut short by a kill is left out."""
    path = folder / METRICS_FILE
    if not path.is_file():
        return []
    *lines, last = path.read_bytes().split(b"\n")
    if _holds_object(last):
        lines.append(last)
    records: list[Record] = []
    for number, line in enumerate(lines, start=1):
        try:
            records.append(_checked(unseal(json.loads(line))))
        except ValueError as error:
            raise UserError(
                f"{path}:{number}: the record is damaged ({error}); put back a copy of the file, or remove the line, "
                "which reports will lack then"
            ) from None
    return records


def _holds_object(line: bytes) -> bool:
    """Tell whether a last line without a line end is a whole JSON object: if not, a kill has cut it short."""
    try:
        json.JSONDecoder().raw_decode(line.decode())  # more after an object is damage, which no kill explains
    except ValueError:
        return False
    return True


def _checked(record: Any) -> Record:
    """Return a record that has what all readers rely on; ValueError where it has not."""
    if not isinstance(record, dict):
        raise ValueError("it is no JSON object")
    for name in NAMES:
        if not isinstance(record.get(name), str):
            raise ValueError(f"it has no {name}")
    for name in {*NUMBERS, *NUMBERS_OF_KIND.get(record["kind"], ()), *record} - {*NAMES}:
        value = record.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):  # to Python a bool is an int
            raise ValueError(f"its {name} is not a number")
    return record
