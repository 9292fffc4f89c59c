"""Several processes that train one run, as torchrun would start them, in forks of the test's own process."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import torch.distributed as dist

from seqcritic.cli import main
from support import PATIENCE_SECONDS, complaints

NOTHING: Callable[[], None] = lambda: None  # noqa: E731


class ProcessGroup:
    """Forks that run one command together; `before` is called first in the process of a rank."""

    def __init__(
        self, log: Path, *arguments: object, size: int = 2, before: dict[int, Callable[[], None]] | None = None
    ) -> None:
        # Like torchrun, the test keeps the store in a process that none of the group's deaths ends.
        self.store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        self.logs = [log.with_name(f"{log.name}-{rank}.txt") for rank in range(size)]
        self.pids = [self._fork(rank, size, arguments, (before or {}).get(rank, NOTHING)) for rank in range(size)]
        self.codes: dict[int, int] = {}

    def _fork(self, rank: int, size: int, arguments: tuple[object, ...], before: Callable[[], None]) -> int:
        pid = os.fork()
        if pid:
            return pid
        code = 1
        try:
            sys.stderr = self.logs[rank].open("w", encoding="utf-8", buffering=1)
            os.environ |= {
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(size),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(self.store.port),
                "TORCHELASTIC_USE_AGENT_STORE": "True",
                "TORCHELASTIC_RESTART_COUNT": "0",
            }
            before()
            code = main([str(argument) for argument in arguments])
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)

    def wait(self) -> list[int]:
        """Return the exit codes of all, or minus the number of the signal each died of; none may hang."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(self.codes) < len(self.pids):
            for rank, pid in enumerate(self.pids):
                if rank not in self.codes and (status := os.waitpid(pid, os.WNOHANG))[0]:
                    self.codes[rank] = os.waitstatus_to_exitcode(status[1])
            if time.monotonic() > deadline:
                self.kill(*(rank for rank in range(len(self.pids)) if rank not in self.codes))
                raise AssertionError(f"only {sorted(self.codes)} of {len(self.pids)} processes have ended")
            time.sleep(0.01)
        return [self.codes[rank] for rank in range(len(self.pids))]

    def kill(self, *ranks: int, number: int = signal.SIGKILL) -> None:
        """Send a signal to some of the processes."""
        for rank in ranks:
            os.kill(self.pids[rank], number)

    def poll(self) -> int | None:
        """Return nothing while the first process runs, as those do that `wait_until` watches."""
        if 0 not in self.codes and (status := os.waitpid(self.pids[0], os.WNOHANG))[0]:
            self.codes[0] = os.waitstatus_to_exitcode(status[1])
        return self.codes.get(0)

    def complaints(self) -> list[str]:
        """Return all lines by which any of the processes says what is wrong."""
        return [line for log in self.logs for line in complaints(log.read_text(encoding="utf-8"))]
