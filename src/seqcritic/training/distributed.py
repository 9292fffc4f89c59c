"""Several processes that train one run: `torchrun --nproc-per-node N -m seqcritic train …`.

Every process holds all networks and a shard of each update's examples. Losses are means over sequences, so the gradient
of the whole batch is Σ_r (n_r / n) g_r over the processes' gradients g_r on n_r of n examples: one all-reduce of one
flat vector between backward and clipping. PyTorch's DistributedDataParallel wraps the `forward` of one module; our
methods call encode, step and score of up to five networks, some of them frozen, so we sum after backward instead. Gloo
carries what lies on the CPU, NCCL what lies on a GPU.

All processes hold the same state after each update, so the first alone evaluates, writes and speaks, and the others
follow its decisions. A process that ends takes the others with it: their next exchange fails. The first to say why
claims it in the store that torchrun keeps, and the others end without a word.
"""

from __future__ import annotations

import hashlib
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.distributed_c10d import Store
from torch.distributed.rendezvous import rendezvous

from seqcritic.draws import Shard
from seqcritic.errors import LostProcess, UserError

SIGNALS = (signal.SIGINT, signal.SIGTERM)
# The others wait while the first evaluates; that a process has died shows at once, in its connections.
TIMEOUT = timedelta(days=1)


class Processes:
    """The processes of a training as one of them sees them; alone, nothing is exchanged."""

    def __init__(self, rank: int = 0, size: int = 1, local_rank: int = 0, store: Store | None = None) -> None:
        self.rank, self.size, self.local_rank = rank, size, local_rank
        self.stop_signal: Callable[[], int | None] = lambda: None
        self._store = store
        self._agreed_signal: int | None = None

    @property
    def is_first(self) -> bool:
        """Whether this is the process that evaluates, writes and speaks."""
        return self.rank == 0

    def shard(self, total: int) -> Shard:
        """Return which of `total` examples are this process's; the shards differ by at most one."""
        # A process without an example would have no loss to take a gradient of.
        if total < self.size:
            raise UserError(f"training.batch: a batch of {total} is too small for {self.size} processes")
        return Shard(self.rank * total // self.size, (self.rank + 1) * total // self.size, total)

    def average(self, measurements: Mapping[str, float], fraction: float) -> dict[str, float]:
        """Return means over the processes, weighted by their fractions of the examples; learn of signals by the way."""
        if self.size == 1:
            return dict(measurements)
        # Signals ride along with what is exchanged anyway: all learn of them at the same update.
        own = self.stop_signal()
        values = [value * fraction for value in measurements.values()] + [float(own == number) for number in SIGNALS]
        *means, interrupted, terminated = self._sum(torch.tensor(values, dtype=torch.float64)).tolist()
        asked = [number for number, count in zip(SIGNALS, (interrupted, terminated), strict=True) if count]
        self._agreed_signal = next(iter(asked), None)
        return dict(zip(measurements, means, strict=True))

    def agreed_signal(self) -> int | None:
        """Return the signal by which some process was asked to stop; all return the same after each update."""
        return self.stop_signal() if self.size == 1 else self._agreed_signal

    def average_gradients(self, networks: Iterable[nn.Module], fraction: float) -> None:
        """Replace the gradients of the networks by those of the whole batch.

        A parameter that no process used keeps no gradient, as if there were one process.
        """
        if self.size == 1:
            return
        parameters = [parameter for network in networks for parameter in network.parameters()]
        gradients = [parameter.grad for parameter in parameters]
        parts = [
            torch.zeros_like(parameter).flatten() if gradient is None else gradient.flatten() * fraction
            for parameter, gradient in zip(parameters, gradients, strict=True)
        ]
        # Whether a weight has a gradient anywhere is summed too: Adam moves a weight with a gradient of zeros, and
        # leaves one without.
        used = torch.tensor([float(gradient is not None) for gradient in gradients])
        # One exchange of one vector: a tensor at a time would cost a latency each.
        flat = self._sum(torch.cat([*parts, used.to(parts[0])]))
        sums = torch.split(flat[: -len(parameters)], [len(part) for part in parts])
        for parameter, total, count in zip(parameters, sums, flat[-len(parameters) :].tolist(), strict=True):
            parameter.grad = total.view_as(parameter) if count else None

    def average_tensors(self, tensors: Mapping[str, Tensor], fraction: float) -> dict[str, Tensor]:
        """Return the means of tensors over the processes, weighted by their fractions of the examples."""
        if self.size == 1:
            return dict(tensors)
        return {name: self._sum(tensor * fraction) for name, tensor in tensors.items()}

    def from_first(self, compute: Callable[[], float]) -> float:
        """Return what the first process computes, which the others wait for."""
        if self.size == 1:
            return compute()
        # A sum in which all others give 0 is a broadcast; float64, so that the figure is the first one's to the bit.
        value = torch.tensor(compute() if self.is_first else 0.0, dtype=torch.float64)
        return float(self._sum(value))

    def wait(self) -> None:
        """Wait for all processes."""
        if self.size > 1:
            self._sum(torch.zeros(1))

    @contextmanager
    def one_before_the_rest(self) -> Iterator[None]:
        """Let one process on each machine go first, so that the others find what it has put into caches."""
        if self.local_rank > 0:
            self.wait()
        yield
        if self.local_rank == 0:
            self.wait()

    def require_same(self, state: str) -> None:
        """Refuse to go on if the processes do not stand at the same update."""
        if self.size == 1:
            return
        # 48 bits: their sum over many processes still fits a 64-bit integer.
        digest = int.from_bytes(hashlib.blake2b(state.encode(), digest_size=6).digest(), "big")
        if int(self._sum(torch.tensor(digest))) != digest * self.size:
            raise UserError(
                "the processes see different text or another run folder; all machines must share the files of a run"
            )

    def may_speak(self) -> bool:
        """Tell whether no other process has said yet why the training ends."""
        if self.size == 1 or self._store is None:
            return True
        try:
            # The counter is atomic: of all that fail at once, one sees it become 1.
            return bool(self._store.add("said why", 1) == 1)
        except RuntimeError:  # the store has ended, with whoever kept it
            return True

    def _sum(self, values: Tensor) -> Tensor:
        try:
            dist.all_reduce(values)  # in place: every caller gives a tensor made for it
        except RuntimeError as error:
            raise LostProcess(f"another process of the training has ended ({error})") from None
        return values


@contextmanager
def join_processes() -> Iterator[Processes]:
    """Join the processes that torchrun has started with this one, if it has."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield Processes()
        return
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    store, rank, size = next(rendezvous("env://", timeout=TIMEOUT))
    dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=TIMEOUT)
    try:
        yield Processes(rank, size, int(os.environ.get("LOCAL_RANK", "0")), store)
    finally:
        dist.destroy_process_group()
