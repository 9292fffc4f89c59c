"""The folder of a run: who may write to it, and whether it belongs to this configuration."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any

from seqcritic.errors import UserError
from seqcritic.files import acquire_lock
from seqcritic.settings.io import (
    CONFIG_FILE,
    FOLDERS,
    differences,
    differing,
    flatten,
    names_text,
    read_settings_file,
    settings_from,
    write_settings,
)
from seqcritic.settings.tree import Settings
from seqcritic.training.checkpoint import CheckpointFolder, read_description
from seqcritic.training.model import CHECKPOINTS_FOLDER, MODEL_FOLDER, stored_codec
from seqcritic.training.parts import recipe_task
from seqcritic.training.start import network_digest
from seqcritic.training.tracking import METRICS_FILE


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
            # The lock first: another process could otherwise begin a run between the check and the writing.
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
        """Write the configuration of a run that begins, or whose text or start is now elsewhere."""
        if not (self.folder / CONFIG_FILE).exists() or differing(self.settings, read_settings(self.folder)):
            _write_config(self.folder, self.settings)

    def _lock_folder(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = acquire_lock(self.folder / ".lock")
        except BlockingIOError:
            raise UserError(f"{self.folder}: another process is training in this folder") from None
        except OSError as error:
            raise UserError(f"out: cannot use {self.folder}: {error.strerror or error}") from None

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)  # the file stays: without it two could hold locks on two files of one name
            self._lock = None


def check_settings(folder: Path, settings: Settings) -> None:
    """Refuse a folder that holds a run with other settings, or files of another origin where a run would write.

    Text and trained networks may have moved if they are the same. A config.yaml that was removed is written anew.
    """
    latest = CheckpointFolder(folder / CHECKPOINTS_FOLDER).latest()
    # A checkpoint knows the settings too, so that a lost config.yaml can be written again.
    trained = read_description(latest) if latest is not None else None
    config = folder / CONFIG_FILE
    if not config.exists() and trained is None:
        for name in (METRICS_FILE, CHECKPOINTS_FOLDER, MODEL_FOLDER):
            if (folder / name).exists():
                raise UserError(f"{folder} has a {name} but no {CONFIG_FILE}; give another folder")
        return
    stored = read_settings(folder) if config.exists() or trained is None else settings_from(trained["settings"])
    # The same text elsewhere is the same run: paths are compared by content, all else by value.
    moved = [key for key in differing(settings, stored) if _has_moved(key, settings, stored, trained)]
    others = differences(settings, stored, apart_from=moved)
    if others:
        raise UserError(
            f"{folder} holds a run with other settings ({'; '.join(others)}); "
            "give another folder, or the same settings to resume"
        )
    if not config.exists():
        _write_config(folder, settings)


def read_settings(folder: Path) -> Settings:
    """Return the settings a run was started with."""
    path = folder / CONFIG_FILE
    if not path.is_file():
        raise UserError(f"{folder} is not a run: it has no {CONFIG_FILE}")
    return read_settings_file(path)


def moved_text(folder: Path, settings: Settings) -> list[str]:
    """Return as overrides where settings have text that a run has elsewhere."""
    # As JSON, which is YAML too: a path may have commas and colons.
    leaves = flatten(settings.model_dump(mode="json"))
    keys = differing(settings, read_settings(folder))
    return [f"{key}={json.dumps(leaves.get(key, []))}" for key in keys if names_text(key)]


def _has_moved(key: str, settings: Settings, stored: Settings, trained: dict[str, Any] | None) -> bool:
    """Tell whether a setting that differs only says where the same text or the same network now is.

    A run without a checkpoint begins anew, from whatever is given now.
    """
    if key in FOLDERS:
        name = key.removeprefix("start.")
        ours, theirs = getattr(settings.start, name), getattr(stored.start, name)
        # To begin from a trained network, or not, makes two runs; before the first checkpoint any other will do.
        if ours is None or theirs is None or trained is None:
            return ours is not None and theirs is not None
        return bool(network_digest(ours, name) == trained.get("start", {}).get(name))
    if not names_text(key) or trained is None:
        return names_text(key)
    codec = stored_codec(trained, CHECKPOINTS_FOLDER)
    if not key.startswith("data.test"):
        return bool(recipe_task(settings, trained=codec).fingerprint() == trained["data"])
    # A run does not know its test text by a digest: if what it has named is gone, what is given now counts.
    try:
        known = recipe_task(stored, trained=codec).conditions("test")
    except UserError:
        return True
    return recipe_task(settings, trained=codec).conditions("test") == known


def _write_config(folder: Path, settings: Settings) -> None:
    try:
        write_settings(settings, folder / CONFIG_FILE)
    except OSError as error:
        raise UserError(f"out: cannot write {folder / CONFIG_FILE}: {error.strerror or error}") from None
