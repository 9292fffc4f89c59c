"""Actors whose weights are spread over the processes (`training.shard`), by PyTorch's own `fully_shard`.

Between updates each process holds its part of every weight, of its gradient and of the optimiser's moments. For an
update, and for an evaluation, all processes gather the weights (`whole`): they draw and search for different numbers of
steps, so nothing may be exchanged within. `encode` alone is announced to PyTorch: whatever is learnt from begins with
it, so gradients are summed once, when the backward pass is over. The actor is one unit, for encoder and decoder share
their embedding. Critics and baselines are small, and stay as they are in every process.

What leaves a network by `gather` is whole and lies on the CPU, and what enters by `spread` was whole: checkpoints are
those of one process. Both, and `whole`, are for all processes at once.

PyTorch's sharding is imported where it is used: it takes 50 MB and a third of a second, which a single process need not
pay: it can have nothing spread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, distributed, nn

from seqcritic.contracts.actor import Actor
from seqcritic.errors import UserError


def shard_actors(networks: Iterable[nn.Module], device: torch.device, num_processes: int) -> None:
    """Spread the actors among some networks over all processes."""
    if num_processes == 1:
        raise UserError(
            "training.shard: there is one process to spread the actor over; start several with torchrun, or leave it "
            "false"
        )
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method

    mesh = init_device_mesh(device.type, (num_processes,))
    for actor in networks:
        if not isinstance(actor, Actor):
            continue
        if not actor.can_be_sharded:
            raise UserError(f"training.shard: {type(actor).__name__} cannot be spread over processes; leave it false")
        if actor.untrained:
            raise UserError(
                "training.shard: with actor.lora or actor.freeze the actor's copies share weights, which spreading "
                "would end; leave one of them out"
            )
        # `whole` alone gathers and lets go: in the middle of an update PyTorch must do neither.
        fully_shard(actor, mesh=mesh, reshard_after_forward=False)
        assert isinstance(actor, FSDPModule)
        actor.set_reshard_after_backward(False)
        register_fsdp_forward_method(actor, "encode")


@contextmanager
def whole(networks: Iterable[nn.Module]) -> Iterator[None]:
    """Let every process hold all weights of the networks for a while."""
    if not _several_processes():
        yield
        return
    from torch.distributed.fsdp import FSDPModule

    sharded = [network for network in networks if isinstance(network, FSDPModule)]
    for network in sharded:
        # In the same order everywhere: each call waits for that of the other processes.
        network.unshard()
    try:
        yield
    finally:
        for network in sharded:
            network.reshard()


def is_sharded(network: nn.Module) -> bool:
    """Whether a network's weights are spread over the processes."""
    if not _several_processes():
        return False
    from torch.distributed.fsdp import FSDPModule

    return isinstance(network, FSDPModule)


def gather(tensor: Tensor) -> Tensor:
    """Return a tensor as it is, or all of one of which this process has a part, on the CPU."""
    if not _several_processes():
        return tensor
    from torch.distributed.tensor import DTensor

    return tensor.full_tensor().cpu() if isinstance(tensor, DTensor) else tensor


def spread(tensor: Tensor, like: Tensor) -> Tensor:
    """Return a whole tensor as it is, or this process's part where `like` is spread so."""
    if not _several_processes():
        return tensor
    from torch.distributed.tensor import DTensor, distribute_tensor

    if not isinstance(like, DTensor) or isinstance(tensor, DTensor) or tensor.shape != like.shape:
        return tensor
    # Only what has the shape of the weight: Adam's count of steps, for one, is whole in every process.
    mesh = like.device_mesh
    # Every process has read all of it: nothing is sent.
    return distribute_tensor(tensor.to(mesh.device_type), mesh, like.placements, src_data_rank=None)


def _several_processes() -> bool:
    """Whether this process belongs to a group, without which nothing can be spread."""
    return distributed.is_available() and distributed.is_initialized()
