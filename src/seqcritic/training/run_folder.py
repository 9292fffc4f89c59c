"""The folder of a run: who may write to it, and whether it belongs to this configuration."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType

import yaml

from seqcritic.config import Settings
from seqcritic.errors import UserError
from seqcritic.settings_io import differences, settings_from, to_yaml
from seqcritic.training.tracking import METRICS_FILE

CONFIG_FILE = "config.yaml"


class RunFolder:
    """Opens a run's folder for one process at a time; use it in a `with` statement."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        self.folder = folder
        self.settings = settings
        self._lock: int | None = None

    def __enter__(self) -> Path:
        """Create the folder, or check that it holds this configuration."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.folder / ".lock", os.O_CREAT | os.O_RDWR)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"{self.folder}: another process is training in this folder") from None
        except OSError as error:
            raise UserError(f"--out: cannot use {self.folder}: {error.strerror or error}") from None
        try:
            self._claim()
        except BaseException:
            os.close(self._lock)
            raise
        return self.folder

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._lock is not None:
            os.close(self._lock)

    def _claim(self) -> None:
        config = self.folder / CONFIG_FILE
        if config.exists():
            differing = differences(self.settings, read_settings(self.folder))
            if differing:
                raise UserError(
                    f"{self.folder} holds a run with other settings ({'; '.join(differing)}); "
                    "give another --out, or the same settings to resume"
                )
            return
        if (self.folder / METRICS_FILE).exists():
            raise UserError(f"{self.folder} has a {METRICS_FILE} but no {CONFIG_FILE}; give another --out")
        temporary = self.folder / f".{CONFIG_FILE}.partial"
        try:
            temporary.write_text(to_yaml(self.settings), encoding="utf-8")
            temporary.rename(config)
        except OSError as error:
            raise UserError(f"--out: cannot write {config}: {error.strerror or error}") from None


def read_settings(folder: Path) -> Settings:
    """Return the settings a run was started with."""
    path = folder / CONFIG_FILE
    if not path.is_file():
        raise UserError(f"{folder} is not a run: it has no {CONFIG_FILE}")
    try:
        tree = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UserError(f"{path} is damaged: {error}") from None
    if not isinstance(tree, dict):
        raise UserError(f"{path} is damaged: it holds no settings")
    return settings_from(tree)
