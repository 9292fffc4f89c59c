"""Checkpoints: folders of safetensors and JSON that exist whole or not at all.

A checkpoint is written to a temporary folder, synced, and renamed; the one before it is kept until then. Nothing
is ever unpickled.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from seqcritic.contracts.actor import Actor
from seqcritic.contracts.networks import untrained_names
from seqcritic.errors import UserError
from seqcritic.files import MISMATCH, digest, seal, sync_folder, unseal, write_synced
from seqcritic.training.sharding import gather, spread

FORMAT = "seqcritic-checkpoint-1"
KEPT = 2
UNTRAINED = "untrained.digest"  # stands among weights for all that nothing trains
PARTS = {"digests": dict, "settings": dict, "data": str, "progress": dict}
COUNTS = ("total_updates", "examples", "compute", "seconds", "finished")  # what others read of the progress


def write_folder(
    target: Path,
    tensors: Mapping[str, Mapping[str, Tensor]],
    description: dict[str, Any],
    texts: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write NAME.safetensors for each group of tensors, description.json and texts, atomically, as a new folder."""
    # Beside the target, for a rename is atomic within one file system only; the dot hides it from `all`.
    temporary = target.with_name(f".{target.name}.partial")
    try:
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        digests = {}
        for name, group in tensors.items():
            content = safetensors.torch.save({key: value.cpu().contiguous() for key, value in group.items()})
            write_synced(temporary / f"{name}.safetensors", content)
            # Of the bytes in memory: a disk that writes others is found out when they are read.
            digests[name] = digest(content)
        text = json.dumps(seal({"format": FORMAT, "digests": digests} | description), indent=1)
        write_synced(temporary / "description.json", text.encode())
        for name, content_text in texts.items():
            write_synced(temporary / name, content_text.encode())
        # Files, then their folder, then the rename: in any other order a power cut could leave a name without content.
        sync_folder(temporary)
        old = target.with_name(f".{target.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        # A folder cannot be replaced in one step: the old one stays complete, under another name, until the new one
        # stands.
        if target.exists():
            target.rename(old)
        temporary.rename(target)
        sync_folder(target.parent)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        raise UserError(f"cannot write {target}: {error.strerror or error}; what was there before is kept") from None


def read_description(folder: Path) -> dict[str, Any]:
    """Return the JSON of a checkpoint or model folder, or say why it is none."""
    path = folder / "description.json"
    if folder.is_file():
        raise UserError(f"{folder} is a file; seqcritic reads folders it has written (never pickles such as .pt)")
    if not path.is_file():
        raise UserError(f"{folder} is not a seqcritic checkpoint or model: it has no description.json")
    try:
        description = unseal(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise _damage(path, str(error)) from None
    if not isinstance(description, dict) or description.get("format") != FORMAT:
        raise UserError(f"{path} is not of the format {FORMAT}; it was written by something else")
    missing = [name for name in PARTS if not isinstance(description.get(name), PARTS[name]) or not description[name]]
    # Told here, where the file can be named: readers take these for granted.
    missing = missing or [f"progress.{name}" for name in COUNTS if name not in description["progress"]]
    if missing:
        raise _damage(path, f"it has no {missing[0]}")
    return description


def read_tensors(folder: Path, name: str, description: dict[str, Any]) -> dict[str, Tensor]:
    """Return one group of tensors after comparing its digest with the description's."""
    path = folder / f"{name}.safetensors"
    try:
        # Read once, digested and parsed from the same bytes: nothing can change in between.
        content = path.read_bytes()
        if digest(content) != description["digests"].get(name):
            raise ValueError(MISMATCH)
        tensors: dict[str, Tensor] = safetensors.torch.load(content)
        return tensors
    except (OSError, ValueError, KeyError, safetensors.SafetensorError) as error:
        raise _damage(path, str(error)) from None


def _damage(path: Path, why: str) -> UserError:
    return UserError(
        f"{path} is damaged ({why}); remove the folder {path.parent}, and the run's train command goes on from an "
        "older checkpoint or writes its model anew"
    )


def weights_of(network: nn.Module) -> dict[str, Tensor]:
    """Return the weights by name, each once: an embedding that two layers share has one name.

    What else a network keeps, running means for example, is among them; what it makes anew by itself is not. Of weights
    that nothing trains there is a digest.
    """
    return {name: gather(tensor) for name, tensor in _own_weights(network).items()}


def _own_weights(network: nn.Module) -> dict[str, Tensor]:
    """Return the tensors themselves, which may be parts of what is spread over processes."""
    kept, untrained = network.state_dict(), untrained_names(network)
    parameters = {name: each.detach() for name, each in network.named_parameters() if name not in untrained}
    if isinstance(network, Actor) and untrained:
        parameters[UNTRAINED] = torch.tensor(list(network.untrained_digest), dtype=torch.uint8)
    return parameters | {name: buffer for name, buffer in network.named_buffers() if name in kept}


def checksum_of(network: nn.Module) -> float:
    """Return a number that differs for other weights, by which processes know that they hold the same."""
    return sum(float(tensor.double().abs().sum()) for tensor in weights_of(network).values())


def load_weights(network: nn.Module, weights: Mapping[str, Tensor], place: str) -> None:
    """Load weights that must fit exactly; `place` names them where they do not."""
    expected = _own_weights(network)
    wrong = sorted(
        set(expected) ^ set(weights)
        | {name for name in set(expected) & set(weights) if expected[name].shape != weights[name].shape}
    )
    # By name and shape, strictly: what is missing would silently keep its initial weights.
    if wrong:
        raise UserError(f"{place} does not fit the network of this configuration (first of {len(wrong)}: {wrong[0]})")
    # Weights that nothing trains are not stored, so that what they were is known by their digest alone.
    digest_of_rest = expected.pop(UNTRAINED, None)
    if digest_of_rest is not None and not torch.equal(digest_of_rest, weights[UNTRAINED].cpu()):
        raise UserError(
            f"{place} was trained on top of other weights than those of actor.pretrained here; give the model it began "
            "with"
        )
    for name, tensor in expected.items():
        # In place: optimisers and tied layers hold these very tensors.
        tensor.copy_(spread(weights[name], tensor))


class CheckpointFolder:
    """The numbered checkpoints of a run; the newest complete one counts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def all(self) -> list[Path]:
        """Return the complete checkpoints, oldest first; temporary folders begin with a dot."""
        return sorted(path for path in self.folder.glob("*") if path.name.isdecimal() and path.is_dir())

    def latest(self) -> Path | None:
        """Return the newest complete checkpoint."""
        return next(reversed(self.all()), None)

    def write(self, tensors: Mapping[str, Mapping[str, Tensor]], description: dict[str, Any]) -> Path:
        """Write the next checkpoint and let go of all but the last two."""
        latest = self.latest()
        target = self.folder / f"{int(latest.name) + 1 if latest else 1:08d}"
        write_folder(target, tensors, description)
        # Two, so that one that turns out damaged has one before it to go on from.
        for old in self.all()[:-KEPT]:
            shutil.rmtree(old, ignore_errors=True)
        return target


def optimiser_tensors(optimiser: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return an optimiser's state as named tensors."""
    return {
        f"{index}.{key}": gather(torch.as_tensor(value))  # an optimiser may keep plain numbers too
        for index, entries in optimiser.state_dict()["state"].items()
        for key, value in entries.items()
        if value is not None  # as SGD without momentum keeps it
    }


def load_optimiser(optimiser: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    """Restore what optimiser_tensors returned."""
    parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        index, _, key = name.partition(".")
        state.setdefault(int(index), {})[key] = spread(tensor, parameters[int(index)])
    # Groups hold the learning rate, which is set at every update: they need not be stored.
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})


def prefixed(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors with a prefix before every name."""
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the tensors whose name begins with the prefix, without it."""
    # With the dot: what belongs to `10` is not under `1`.
    start = f"{prefix}."
    return {name[len(start) :]: tensor for name, tensor in tensors.items() if name.startswith(start)}
