"""metrics.jsonl, and TensorBoard where asked for: one record a line, cut back to the checkpoint on resume."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from seqcritic.errors import UserError

METRICS_FILE = "metrics.jsonl"
Record = dict[str, Any]


class SilentTracker:
    """Writes nothing: of several processes, one writes."""

    offset = 0

    def write(self, record: Record) -> None:
        """Write nothing."""

    def close(self) -> None:
        """Nothing to flush."""


class Tracker:
    """Appends records to metrics.jsonl; `offset` is the length of what has been written."""

    def __init__(self, folder: Path, offset: int, tensorboard: bool) -> None:
        self.path = folder / METRICS_FILE
        try:
            with self.path.open("ab") as stream:
                if stream.tell() < offset:
                    raise UserError(f"{self.path} lacks records made before the checkpoint; give another --out")
                # Records after the checkpoint will be written again, the same.
                stream.truncate(offset)
        except OSError as error:
            raise UserError(f"cannot write {self.path}: {error.strerror or error}") from None
        self.offset = offset
        self._writer = _tensorboard_writer(folder / "tensorboard") if tensorboard else None

    def write(self, record: Record) -> None:
        """Append one record."""
        line = (json.dumps(record) + "\n").encode()
        try:
            with self.path.open("ab") as stream:
                stream.write(line)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise UserError(
                f"cannot write {self.path}: {error.strerror or error}; the last checkpoint is kept"
            ) from None
        self.offset += len(line)
        if self._writer is not None:
            for name, value in record.items():
                if isinstance(value, float):
                    self._writer.add_scalar(f"{record['phase']}/{name}", value, record["total_updates"])

    def close(self) -> None:
        """Flush what TensorBoard holds back."""
        if self._writer is not None:
            self._writer.close()


def read_metrics(folder: Path) -> list[Record]:
    """Return the records of a run; a last line cut short by a kill is left out."""
    path = folder / METRICS_FILE
    if not path.is_file():
        return []
    records: list[Record] = []
    for line in path.read_bytes().split(b"\n")[:-1]:
        try:
            records.append(json.loads(line))
        except ValueError:
            raise UserError(f"{path}:{len(records) + 1}: the record is damaged; remove the line") from None
    return records


def _tensorboard_writer(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise UserError("training.tensorboard: TensorBoard is missing; pip install 'seqcritic[tensorboard]'") from None
    return SummaryWriter(str(folder))
