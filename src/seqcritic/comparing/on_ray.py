"""Runs of a comparison placed by a Ray cluster: `compare --on ray`, or `--on ray://HOST:10001`.

A run is one task. It starts, on whichever machine Ray chooses, the same process that `compare` starts here, in the same
folder, which all machines share; so runs, folders and report are the same. A task whose worker or machine is lost is
started again elsewhere by Ray, and `train` goes on from the run's newest checkpoint. The cluster is a means to start
processes, no more: everything that decides a number stays in the run's folder.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from seqcritic.comparing.jobs import POLL_SECONDS, Start, log_path, start_process, write_config
from seqcritic.comparing.plan import PlannedRun
from seqcritic.errors import UserError
from seqcritic.files import acquire_lock
from seqcritic.settings.tree import Settings

RAY, CLIENT = "ray", "ray://"
ANSWER_SECONDS = 5.0
MOST_RESTARTS = 20  # of one run, by lost workers; one that kills its machine each time ends some day
LOCK_SECONDS = 120.0  # a process whose worker was lost leaves at its next update


@contextmanager
def placed_on(address: str | None) -> Iterator[Start | None]:
    """Give what starts runs on the cluster at an address; None, the processes of this machine, where there is none."""
    if address is None:
        yield None
        return
    ray = _connect(address)
    try:
        yield lambda run, settings: _Task(ray, run, settings)
    finally:
        ray.shutdown()


def _connect(address: str) -> Any:
    """Join the cluster of an address; `ray` alone is that of RAY_ADDRESS, or of this machine, begun where none runs."""
    if address != RAY and not address.startswith(CLIENT):
        raise UserError(f"on: '{address}' is no cluster; give ray, or ray://HOST:PORT")
    try:
        import ray
    except ImportError:
        raise UserError("on: Ray is not installed; pip install 'seqcritic[ray]'") from None
    place = address if address != RAY else os.environ.get("RAY_ADDRESS")
    if place is not None:
        _require_answer(place)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # of a cluster that begins here: it tells nobody
    try:
        ray.init(place, logging_level=logging.ERROR, log_to_driver=False)
    except Exception as error:  # of Ray, of its connection, of other versions there
        said = " ".join(str(error).split())
        raise UserError(f"on: the Ray cluster at {place or 'this machine'} cannot be joined: {said}") from None
    return ray


def _require_answer(place: str) -> None:
    """Say at once that nobody listens at an address, for which Ray itself waits minutes."""
    parts = urlsplit(place if "//" in place else f"//{place}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    if host is None or port is None:
        if "://" in place:
            raise UserError(f"on: '{place}' is no address; give ray://HOST:PORT")
        return  # as `auto` or `local`, which RAY_ADDRESS may say
    try:
        socket.create_connection((host, port), ANSWER_SECONDS).close()
    except OSError as error:
        raise UserError(
            f"on: no Ray cluster answers at {place} ({error.strerror or error}); ray status, given there, tells "
            "whether one runs"
        ) from None


class _Task:
    """A run on the cluster, with what `Jobs` asks of a process."""

    def __init__(self, ray: Any, run: PlannedRun, settings: Settings) -> None:
        self._ray, self._folder = ray, run.folder
        config = write_config(run, settings)
        options = {
            "num_cpus": settings.threads,
            "num_gpus": int(settings.device == "cuda"),
            "max_retries": MOST_RESTARTS,
            "scheduling_strategy": "SPREAD",
        }
        place = ray.remote(train_there).options(**options)
        try:
            self._task = place.remote(str(config.resolve()), str(run.folder.resolve()), os.getcwd())
        except Exception as error:  # whatever is raised there, as where seqcritic is missing or of another version
            said = " ".join(str(error).split())
            raise UserError(f"on: the cluster does not take runs: {type(error).__name__}: {said}") from None

    def poll(self) -> int | None:
        """Return the exit code, or None while it waits or runs."""
        ready, _ = self._ray.wait([self._task], timeout=0)
        return self.wait() if ready else None

    def send_signal(self, number: int) -> None:
        """Ask it to checkpoint and leave, whatever the signal."""
        self._ray.cancel(self._task, force=False)

    def wait(self) -> int:
        """Wait for its end and return its exit code."""
        exceptions = self._ray.exceptions
        try:
            return int(self._ray.get(self._task))
        except exceptions.TaskCancelledError:
            return 128 + signal.SIGTERM
        except exceptions.RayError as error:
            # As a process does: one line in the log, whose last one `Jobs` tells.
            said = str(error).strip().splitlines()[-1:]
            with log_path(self._folder).open("a", encoding="utf-8") as log:
                log.write(f"seqcritic: the cluster could not train it: {' '.join(said)}\n")
            return UserError.exit_code


def train_there(config: str, folder: str, workplace: str) -> int:
    """Train one run in a process of the machine this is called on, and return its exit code; a task of Ray."""
    if not Path(config).is_file() or not Path(workplace).is_dir():
        raise FileNotFoundError(f"{socket.gethostname()} does not see {config} and {workplace}; share these folders")
    _wait_for_lock(Path(folder))
    process = start_process(Path(config), Path(folder), workplace)
    try:
        while (code := process.poll()) is None:
            time.sleep(POLL_SECONDS)
        return code
    finally:  # cancelled, or the machine is taken down in peace
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait()


def _wait_for_lock(folder: Path) -> None:
    """Wait until the process of a lost worker has left the folder; one that stays is told of by `train`."""
    deadline = time.monotonic() + LOCK_SECONDS
    while folder.is_dir() and time.monotonic() < deadline:
        try:
            os.close(acquire_lock(folder / ".lock"))
            return
        except BlockingIOError:
            time.sleep(POLL_SECONDS)
