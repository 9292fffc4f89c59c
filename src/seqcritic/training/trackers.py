"""Programs that people watch runs with, told what metrics.jsonl holds: TensorBoard, Weights & Biases, MLflow.

Each is a callback that `training.tracker` puts before those of the user. Where its records go is the program's own
affair, by its own environment variables (WANDB_MODE, WANDB_PROJECT, MLFLOW_TRACKING_URI …); TensorBoard's lie in the
run's folder. What the program calls the run is kept in the run's folder, so that a resumed run goes on there.
metrics.jsonl is the truth: a tracker that fails on the way is told of once and left alone.
"""

from __future__ import annotations

import json
import os
import re
from abc import abstractmethod
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from seqcritic.errors import UserError
from seqcritic.files import write_whole
from seqcritic.progress import log
from seqcritic.settings.io import flatten
from seqcritic.training.callbacks import Callback

# For the types alone: run.py imports this module.
if TYPE_CHECKING:
    from seqcritic.training.run import Run

NAME_FILE = "tracker.json"
LONGEST_VALUE = 500  # characters of a setting that MLflow takes


class Tracker(Callback):
    """Passes on the numbers of every record as `PHASE/NAME` over the updates of the whole run."""

    name: str
    module: str

    def __init__(self) -> None:
        self.package = self._import()
        self._open = False

    @abstractmethod
    def begin(self, run: Run, known_as: str | None) -> str | None:
        """Open the run and return what the program calls it; `known_as`: what it did before the run was resumed."""

    @abstractmethod
    def log(self, numbers: Mapping[str, float], update: int) -> None:
        """Pass on the numbers of one record."""

    @abstractmethod
    def finish(self, failed: bool) -> None:
        """Close the run."""

    def on_start(self, run: Run) -> None:
        """Open the run; a program that cannot is a fault of the settings, told before the first update."""
        path = run.folder / NAME_FILE
        try:
            known_as = json.loads(path.read_text(encoding="utf-8")).get(self.name) if path.is_file() else None
            name = self.begin(run, known_as)
        except Exception as error:  # each of these packages raises its own
            said = " ".join(str(error).split())
            raise UserError(f"training.tracker: {self.name} cannot begin: {said}; set training.tracker=null") from None
        self._open = True  # only now: a run that could not be opened is not closed by `on_error`
        if name is not None and name != known_as:
            write_whole(path, json.dumps({self.name: name}) + "\n")

    def on_record(self, run: Run, record: Mapping[str, Any]) -> None:
        """Pass on the numbers."""
        # What was measured is a float; whole numbers and words say where it was measured.
        numbers = {f"{record['phase']}/{name}": value for name, value in record.items() if isinstance(value, float)}
        self._try(lambda: self.log(numbers, record["total_updates"]))

    def on_end(self, run: Run) -> None:
        """Close the run as finished."""
        self._try(lambda: self.finish(failed=False))

    def on_error(self, run: Run, error: BaseException) -> None:
        """Close the run as one that may go on."""
        self._try(lambda: self.finish(failed=True))

    def _try(self, action: Callable[[], None]) -> None:
        if not self._open:
            return
        try:
            action()
        except Exception as error:
            # Whatever it was: a training does not end by what shows it.
            self._open = False
            said = " ".join(str(error).split())
            log.warning(f"warning: {self.name} takes no more records ({said}); metrics.jsonl has all of them")

    def _import(self) -> ModuleType:
        try:
            return import_module(self.module)
        except ImportError:
            hint = f"pip install 'seqcritic[{self.name}]'"
            raise UserError(f"training.tracker: {self.name} is not installed; {hint}") from None


class TensorBoardTracker(Tracker):
    """Event files in the run's own folder."""

    name, module = "tensorboard", "torch.utils.tensorboard"

    def begin(self, run: Run, known_as: str | None) -> str | None:
        """Open a further file of events; TensorBoard itself joins those of a folder."""
        self._writer = self.package.SummaryWriter(str(run.folder / "tensorboard"))
        return None

    def log(self, numbers: Mapping[str, float], update: int) -> None:
        """Add one point to each curve."""
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, update)

    def finish(self, failed: bool) -> None:
        """Write what is held back."""
        self._writer.close()


class WandbTracker(Tracker):
    """A run of the project that is named as the recipe, unless WANDB_PROJECT says otherwise."""

    name, module = "wandb", "wandb"

    def begin(self, run: Run, known_as: str | None) -> str | None:
        """Open the run, or go on with it where it is known."""
        self._run = self.package.init(
            project=os.environ.get("WANDB_PROJECT") or run.settings.name,
            name=_name(run),
            dir=str(run.folder),
            config=run.settings.model_dump(mode="json"),
            id=known_as,
            resume="allow",
        )
        return str(self._run.id)

    def log(self, numbers: Mapping[str, float], update: int) -> None:
        """Log at the update; what a resumed run makes again, the program passes over."""
        self._run.log(dict(numbers), step=update)

    def finish(self, failed: bool) -> None:
        """Say how it ended."""
        self._run.finish(exit_code=int(failed))


class MlflowTracker(Tracker):
    """A run of the experiment that is named as the recipe, unless MLFLOW_EXPERIMENT_NAME says otherwise."""

    name, module = "mlflow", "mlflow"

    def begin(self, run: Run, known_as: str | None) -> str | None:
        """Open the run with its settings, or go on with it where it is known."""
        # A client, not the module's functions: these have an active run, which may be the user's.
        self._client = self.package.MlflowClient()
        if known_as is not None:
            self._client.update_run(known_as, status="RUNNING")
            self._id = known_as
            return known_as
        experiment = os.environ.get("MLFLOW_EXPERIMENT_NAME") or run.settings.name
        found = self._client.get_experiment_by_name(experiment)
        place = self._client.create_experiment(experiment) if found is None else found.experiment_id
        self._id = str(self._client.create_run(place, run_name=_name(run)).info.run_id)
        for key, value in flatten(run.settings.model_dump(mode="json")).items():
            self._client.log_param(self._id, _permitted(key), str(value)[:LONGEST_VALUE])
        return self._id

    def log(self, numbers: Mapping[str, float], update: int) -> None:
        """Log at the update."""
        for name, value in numbers.items():
            self._client.log_metric(self._id, _permitted(name), value, step=update)

    def finish(self, failed: bool) -> None:
        """Say how it ended."""
        self._client.set_terminated(self._id, "KILLED" if failed else "FINISHED")


TRACKERS: dict[str, type[Tracker]] = {each.name: each for each in (TensorBoardTracker, WandbTracker, MlflowTracker)}


def chosen_trackers(name: str | None) -> list[Callback]:
    """Return the tracker that the settings ask for; that its package is missing is told here."""
    return [] if name is None else [TRACKERS[name]()]


def _permitted(name: str) -> str:
    """Return a name with the signs that MLflow takes."""
    return re.sub(r"[^\w\-. :/]", "_", name)


def _name(run: Run) -> str:
    """Return the last two folders of the run's path: all seeds of a comparison have runs of the same name."""
    return "/".join(run.folder.resolve().parts[-2:])
