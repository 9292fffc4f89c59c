"""The folder the sets are written to: one process at a time, and complete or not there.

Everything is made in `.preparing`. When all of it is there, prepared.json is written beside it, the sets are moved to
their places and prepared.json last. A command that finds `.preparing/prepared.json` finishes the moves of one that was
killed between them; without that file what is in `.preparing` is of no use and removed.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from seqcritic.corpora.sources import RECORD_FILE
from seqcritic.errors import UserError
from seqcritic.files import acquire_lock, seal, unseal

WORK_FOLDER = ".preparing"
DOWNLOAD_FOLDER = "download"
RECORD_KEYS = {"corpus", "source", "settings", "counts", "expected", "differing", "left_out", "notes", "files"}


class OutputFolder:
    """Opens the folder for one process; use it in a `with` statement."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.work = folder / WORK_FOLDER
        self.members = self.work / "members"
        self.sets = self.work / "sets"
        # Before it is made: one that was there stays, even if it is empty.
        self._is_new = not folder.exists()
        self._lock: int | None = None

    def __enter__(self) -> OutputFolder:
        """Create or lock the folder, and tidy up after a command that was killed."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = acquire_lock(self.folder)
            self._tidy()
        except BlockingIOError:
            self._unlock()
            raise UserError(f"{self.folder}: another process is preparing sets in this folder") from None
        except OSError as error:
            self._unlock()
            raise UserError(f"out: cannot use {self.folder}: {error.strerror or error}") from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._tidy()
            # A download that broke off stays, to be resumed.
            if error is not None and self._is_new and not any(self.folder.iterdir()):
                self.folder.rmdir()
        finally:
            self._unlock()

    def read_record(self, possible_names: Sequence[str]) -> dict[str, Any] | None:
        """Return what prepared.json says of the sets in the folder, or None for a folder without sets.

        Sets that are not as prepared.json says, or that stand there without it, are refused.
        """
        path = self.folder / RECORD_FILE
        if not path.exists():
            for name in possible_names:
                if (self.folder / name).exists():
                    raise UserError(f"{self.folder} has a {name} but no {RECORD_FILE}; give another folder")
            return None
        try:
            record: dict[str, Any] = unseal(json.loads(path.read_text(encoding="utf-8")))
            sizes = {name: int(file["bytes"]) for name, file in record["files"].items()}
            damaged = not record.keys() >= RECORD_KEYS
        except (ValueError, KeyError, TypeError, AttributeError):
            damaged = True
        if damaged:
            raise UserError(f"{path} is damaged; give another folder, or remove the folder")
        for name, size in sizes.items():
            file = self.folder / name
            if not file.is_file() or file.stat().st_size != size:
                raise UserError(f"{file} is not as {RECORD_FILE} says; give another folder, or remove the folder")
        return record

    def commit(self, record: dict[str, Any]) -> None:
        """Put the sets and their record in place; from here on the command has done its work even if it is killed."""
        partial = self.work / f"{RECORD_FILE}.partial"
        with partial.open("w", encoding="utf-8") as file:
            json.dump(seal(record), file, ensure_ascii=False, indent=2)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        # This decides: a command killed before it leaves nothing, one killed after it has its moves finished.
        partial.rename(self.work / RECORD_FILE)
        self._tidy()

    def _tidy(self) -> None:
        """Finish what is complete and remove the rest."""
        record = self.work / RECORD_FILE
        if record.exists():
            # What was moved before a kill is no longer here; the record goes last, for it says that all are there.
            for file in sorted(self.sets.iterdir()):
                file.replace(self.folder / file.name)
            record.replace(self.folder / RECORD_FILE)
        if self.work.exists():
            shutil.rmtree(self.work)

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
