"""Training as one call: claim the folder, resume or begin, and stop cleanly on a signal."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import FrameType

from seqcritic.contracts.task import Task
from seqcritic.errors import Interrupted, LostProcess, NonFiniteError, SilentExit, UserError
from seqcritic.native.kernels import describe
from seqcritic.progress import log, set_up_logging, silence
from seqcritic.settings.tree import Settings
from seqcritic.training.callbacks import Callback
from seqcritic.training.checkpoint import CheckpointFolder, read_description
from seqcritic.training.device import describe_precision
from seqcritic.training.distributed import Processes, join_processes
from seqcritic.training.environment import set_up_process
from seqcritic.training.learner import MakeOptimiser, adam
from seqcritic.training.model import CHECKPOINTS_FOLDER, MODEL_FOLDER
from seqcritic.training.parts import Parts, recipe_parts
from seqcritic.training.preflight import ENOUGH_UPDATES, can_be_tried, estimate, num_planned_updates, warnings_of
from seqcritic.training.run import Run
from seqcritic.training.run_folder import RunFolder
from seqcritic.training.start import check_start

PARENT_VARIABLE = "SEQCRITIC_PARENT"  # set by `compare`: a run whose comparison was killed stops too


def train(settings: Settings, out: str | Path, callbacks: Sequence[Callback] = ()) -> Path:
    """Train one method through all its phases in the folder `out` and return the folder.

    Calling it again with the same settings resumes, or returns at once where the run is finished. `callbacks` are told
    of every event (training/callbacks.py).
    """
    return train_in(Path(out), settings, partial(recipe_parts, settings, Path(out)), callbacks)


def train_in(
    folder: Path,
    settings: Settings,
    make_parts: Callable[[Processes], Parts],
    callbacks: Sequence[Callback] = (),
    optimiser: MakeOptimiser = adam,
) -> Path:
    """Train what `make_parts` makes in a folder that no other process uses; the parts are made once it is ours."""
    set_up_logging()
    with join_processes() as processes, nullcontext() if processes.is_first else silence():
        try:
            # The first process holds the lock for all of them.
            with RunFolder(folder, settings) if processes.is_first else nullcontext() as run_folder:
                if is_finished(folder):
                    log.info(f"{folder} is finished; nothing to do")
                    return folder
                set_up_process(settings.threads)
                received: list[int] = []
                processes.stop_signal = lambda: _why_stop(received)
                # A run that has a checkpoint needs no more what it began with, which may be gone.
                if CheckpointFolder(folder / CHECKPOINTS_FOLDER).latest() is None:
                    check_start(settings)
                begins = CheckpointFolder(folder / CHECKPOINTS_FOLDER).latest() is None
                parts = make_parts(processes)
                run = Run(settings, parts, folder, processes, callbacks, optimiser)
                if run_folder is not None:
                    run_folder.claim()
                if begins and processes.is_first:
                    # A trial in one process knows nothing of what several wait for.
                    _look_ahead(settings, parts.task, trial=processes.size == 1)
                _go(run, received)
        except (UserError, NonFiniteError, Interrupted) as error:
            # A fault of the text or the settings ends all processes: one of them says it.
            raise error if processes.may_speak() else SilentExit(error.exit_code) from None
        except LostProcess as error:
            raise _explained(error, folder) if processes.may_speak() else SilentExit(error.exit_code) from None
    return folder


def _look_ahead(settings: Settings, task: Task, trial: bool) -> None:
    """Warn of what training cannot mend, and tell how long it will take where that can be tried out."""
    for line in warnings_of(task):
        log.warning(line)
    if trial and num_planned_updates(settings, task) >= ENOUGH_UPDATES and can_be_tried(settings):
        log.info(estimate(settings, task).tell())


def _go(run: Run, received: list[int]) -> None:
    settings, processes = run.settings, run.processes
    together = f"{processes.size} processes of " if processes.size > 1 else ""
    log.info(f"training {settings.method.label} in {run.folder} with {together}{settings.threads} thread(s)")
    log.info(f"native kernels: {describe()}")
    if told := describe_precision(settings.precision, run.learner.device):
        log.info(told)
    # Not before: while text is read there is nothing to save, and a signal may end the process at once.
    with stop_signals(received):
        run.go()
    log.info(f"finished: {run.folder}")


def _explained(error: LostProcess, folder: Path) -> LostProcess:
    """Return the error with what is left and what to do."""
    latest = CheckpointFolder(folder / CHECKPOINTS_FOLDER).latest()
    rest = f"resumes from {latest}" if latest else f"starts anew in {folder}"
    return LostProcess(f"a process of the training in {folder} was lost; the same command {rest}")


def is_finished(folder: Path) -> bool:
    """Tell whether a run has gone through all its phases and exported its model."""
    latest = CheckpointFolder(folder / CHECKPOINTS_FOLDER).latest()
    exported = (folder / MODEL_FOLDER / "description.json").is_file()
    # Both: a kill may come between the last checkpoint and the model.
    return latest is not None and exported and bool(read_description(latest)["progress"]["finished"])


def _why_stop(received: list[int]) -> int | None:
    """Return the number of the signal that asks this run to stop, if any."""
    parent = os.environ.get(PARENT_VARIABLE)
    # Whose parent has died belongs to another process from then on.
    if not received and parent is not None and os.getppid() != int(parent):
        return signal.SIGTERM
    return received[0] if received else None


@contextmanager
def stop_signals(received: list[int]) -> Iterator[None]:
    """Collect SIGINT and SIGTERM in a list instead of dying of them; only the main thread may do so."""

    def note(number: int, frame: FrameType | None) -> None:
        received.append(number)  # no more than that: it may come while an update is half made

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
