"""What else the machine is doing while we measure, and what machine it is."""

from __future__ import annotations

import os
import platform
import resource
import time
from pathlib import Path
from typing import Any

STAT = Path("/proc/stat")
TOLERATED = 0.1  # cores


def describe() -> dict[str, Any]:
    """Return the machine in a few words."""
    return {"system": platform.platform(), "python": platform.python_version(), "cores": os.cpu_count()} | {
        "processor": _processor()
    }


class OtherLoad:
    """How many cores other processes kept busy since this was made; our finished children count as ours."""

    def __init__(self) -> None:
        self._busy, self._own, self._wall = _busy_seconds(), _own_seconds(), time.perf_counter()

    def cores(self) -> float | None:
        """Return the mean number of cores that others used; None where the system does not tell."""
        busy = _busy_seconds()
        if busy is None or self._busy is None:
            return None
        others = (busy - self._busy) - (_own_seconds() - self._own)
        return max(0.0, others / (time.perf_counter() - self._wall))


def other_load_now(seconds: float = 2.0) -> float | None:
    """Return how many cores others use while this process sleeps."""
    load = OtherLoad()
    time.sleep(seconds)
    return load.cores()


def warning(cores: float | None) -> str | None:
    """Return what to tell of other load; None if there is none worth telling."""
    if cores is None or cores <= TOLERATED:
        return None
    return (
        f"!!! OTHER LOAD: other processes keep {cores:.1f} of {os.cpu_count()} cores busy. Wall times, and all figures "
        "of two threads, are not to be trusted; CPU times suffer from shared caches and memory."
    )


def _own_seconds() -> float:
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _busy_seconds() -> float | None:
    """Return the time all cores have spent neither idle nor waiting for a disk."""
    if not STAT.is_file():
        return None
    numbers = [int(text) for text in STAT.read_text().splitlines()[0].split()[1:9]]
    user, nice, system, _idle, _waiting, hard, soft, stolen = numbers
    return (user + nice + system + hard + soft + stolen) / os.sysconf("SC_CLK_TCK")


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()
