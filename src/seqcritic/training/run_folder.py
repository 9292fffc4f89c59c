"""The folder of a run: who may write to it, and whether it belongs to this configuration."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType

from seqcritic.config import Settings
from seqcritic.errors import UserError
from seqcritic.settings_io import differences, parse_tree, settings_from, to_yaml
from seqcritic.training.model import CHECKPOINTS_FOLDER, MODEL_FOLDER
from seqcritic.training.tracking import METRICS_FILE

CONFIG_FILE = "config.yaml"


class RunFolder:
    """Opens a run's folder for one process at a time; use it in a `with` statement.

    The folder becomes the run's own with `claim`, once text and trained networks have been read: a command that
    fails on them can be mended and given again.
    """

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.folder = folder
        self.settings = settings
        self._lock: int | None = None

    def __enter__(self) -> RunFolder:
        """Create the folder, or check that it holds this configuration."""
        try:
            self._lock_folder()
            check_settings(self.folder, self.settings)
        except UserError:
            self._unlock()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._unlock()

    def claim(self) -> None:
        """Write the configuration of a run that begins."""
        config = self.folder / CONFIG_FILE
        if config.exists():
            return
        temporary = self.folder / f".{CONFIG_FILE}.partial"
        try:
            temporary.write_text(to_yaml(self.settings), encoding="utf-8")
            temporary.rename(config)
        except OSError as error:
            raise UserError(f"--out: cannot write {config}: {error.strerror or error}") from None

    def _lock_folder(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.folder / ".lock", os.O_CREAT | os.O_RDWR, mode=0o666)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"{self.folder}: another process is training in this folder") from None
        except OSError as error:
            raise UserError(f"--out: cannot use {self.folder}: {error.strerror or error}") from None

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def check_settings(folder: Path, settings: Settings) -> None:
    """Refuse a folder that holds a run with other settings, or files of another origin where a run would write."""
    if (folder / CONFIG_FILE).exists():
        differing = differences(settings, read_settings(folder))
        if differing:
            raise UserError(
                f"{folder} holds a run with other settings ({'; '.join(differing)}); "
                "give another --out, or the same settings to resume"
            )
        return
    for name in (METRICS_FILE, CHECKPOINTS_FOLDER, MODEL_FOLDER):
        if (folder / name).exists():
            raise UserError(f"{folder} has a {name} but no {CONFIG_FILE}; give another --out")


def read_settings(folder: Path) -> Settings:
    """Return the settings a run was started with."""
    path = folder / CONFIG_FILE
    if not path.is_file():
        raise UserError(f"{folder} is not a run: it has no {CONFIG_FILE}")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is damaged: {error}") from None
    tree = parse_tree(text, path)
    try:
        return settings_from(tree)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
