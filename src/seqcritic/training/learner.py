"""The networks of a run with their optimisers and target networks: one update, and all of their state as tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

import torch
from torch import Tensor, nn

from seqcritic.contracts.batch import Batch
from seqcritic.contracts.method import Method, Outcome
from seqcritic.contracts.networks import Networks, NetworkSpec, polyak_update
from seqcritic.contracts.parts import part_class
from seqcritic.contracts.registry import ACTORS
from seqcritic.contracts.score import Score
from seqcritic.data.corruption import derive_seed
from seqcritic.draws import Shard, ShardedGenerator
from seqcritic.errors import NonFiniteError, UserError
from seqcritic.methods.build import build_method, build_networks, count_numbers
from seqcritic.settings.tree import Settings
from seqcritic.training.checkpoint import (
    load_optimiser,
    load_weights,
    optimiser_tensors,
    prefixed,
    under,
    weights_of,
)
from seqcritic.training.device import choose_device, computing, require_memory, weight_type
from seqcritic.training.distributed import Processes
from seqcritic.training.sharding import gather, is_sharded, shard_actors, whole

TensorGroups = dict[str, dict[str, Tensor]]
MakeOptimiser = Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer]


def adam(parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
    """Adam as the authors use it; the learning rate is set at every update."""
    return torch.optim.Adam(parameters, betas=(0.9, 0.999), fused=True)


def recipe_networks(settings: Settings, num_source_tokens: int, num_target_tokens: int) -> Networks:
    """Return the networks of a recipe with their initial weights, or say that there is no memory for them."""
    if part_class(ACTORS, settings.actor.kind).builds_on_meta:
        device = choose_device(settings.device)
        # On this device weights have sizes and no memory: a network that would not fit is refused before it is made.
        with torch.device("meta"):
            sketch = build_networks(settings, num_source_tokens, num_target_tokens, torch.Generator())
        require_memory(device, weight_type(settings.precision, device).itemsize * count_numbers(sketch))
    return build_networks(settings, num_source_tokens, num_target_tokens, weights_generator(settings))


def weights_generator(settings: Settings) -> torch.Generator:
    """Return what the initial weights of a run are drawn from."""
    return torch.Generator().manual_seed(derive_seed(settings.seed, "weights"))


class Learner:
    """The networks, optimisers and generator of a run: all that an update changes."""

    def __init__(
        self,
        settings: Settings,
        networks: Networks,
        score: Score,
        processes: Processes | None = None,
        optimiser: MakeOptimiser = adam,
    ) -> None:
        self.settings = settings
        self.networks = networks
        self.score = score
        self.processes = Processes() if processes is None else processes
        self.make_optimiser = optimiser
        self.device = choose_device(settings.device, self.processes.local_rank)
        # Drawn from on the CPU, where every device and every process sees the same numbers.
        self.generator = torch.Generator().manual_seed(derive_seed(settings.seed, "sampling"))
        weight = weight_type(settings.precision, self.device)
        # All copies too: a target network of another type would round differently from what it follows.
        for network in self.networks.named().values():
            network.to(self.device, weight)
        if settings.training.shard:
            shard_actors(self.networks.named().values(), self.device, self.processes.size)
        self.best_actor = self.actor_weights()  # every phase, the first too, begins with the best actor so far
        self.optimisers: dict[str, torch.optim.Optimizer] = {}
        self.phase = ""
        self.method: Method | None = None  # no phase has begun

    def actor_weights(self) -> dict[str, Tensor]:
        """Return a copy of the actor's weights."""
        # Clones: what `weights_of` returns are the tensors that the next step changes.
        return {name: tensor.clone() for name, tensor in weights_of(self.networks.actor).items()}

    def sharpen_best_actor(self, factor: float) -> None:
        """Let samples of the best actor come nearer to its greedy predictions."""
        load_weights(self.networks.actor, self.best_actor, "the best actor")
        self.networks.actor.sharpen(factor)
        self.best_actor = self.actor_weights()

    def start_phase(self, phase: str) -> None:
        """Synchronise the target networks and begin with fresh optimisers, as the authors do at each phase."""
        self.phase = phase
        self.method = build_method(self.settings, phase, self.score)
        networks = self.networks
        if phase == "critic" and networks.critic is not None and self.settings.critic.from_actor:
            networks.critic.initialise_from(networks.actor)
        # At rate 1 a copy becomes the network itself.
        for spec, online in self._copies():
            polyak_update(networks[spec.name], networks[online], 1.0)
        # Adam's means are of another loss in the phase before: they would push the first steps of this one.
        self.optimisers = {
            name: self.make_optimiser(weight for weight in networks[name].parameters() if weight.requires_grad)
            for name in self.method.trains
        }

    def update(self, batch: Batch, rate: float, progress: float = 0.0) -> dict[str, float]:
        """Make the optimiser steps that the method makes of one batch, mostly one; return what to log, their means.

        The batch is that of all processes; this one takes its shard of it, in `training.accumulate` parts one after
        the other. `progress` is the fraction of the phase's updates already made.
        """
        shard = self.processes.shard(len(batch))
        # One draw, so that the run's own generator moves alike in all processes, whatever a method draws.
        seed = int(torch.randint(1 << 62, (), generator=self.generator))
        parts = {part: self._outcomes(batch, part, seed, progress) for part in self._parts(shard)}
        steps = []
        while (outcome := self._add_gradients(parts)) is not None:
            steps.append(self._step(outcome, rate, shard))
        assert steps, "a method makes at least one step"
        return steps[0] if len(steps) == 1 else _means(steps)

    def _parts(self, shard: Shard) -> list[Shard]:
        """Return the parts of the shard, which are in memory one after the other; their sizes differ by at most one."""
        number = self.settings.training.accumulate
        if len(shard) < number:
            raise UserError(f"training.accumulate: a batch of {len(shard)} is too small for {number} parts")
        borders = [shard.first + index * len(shard) // number for index in range(number + 1)]
        return [Shard(first, last, shard.total) for first, last in pairwise(borders)]

    def _add_gradients(self, parts: Mapping[Shard, Iterator[Outcome]]) -> _Summed | None:
        """Go back through the next loss of each part; return their means, or None where the method is done.

        Losses are means over sequences: that of all parts is their mean, weighted by their numbers of examples. Each
        graph is gone before the next is built; of a method that makes several steps, what it has drawn stays.
        """
        total = sum(map(len, parts))
        summed: _Summed | None = None
        for part, outcomes in parts.items():
            with whole(self.networks.named().values()):
                outcome = next(outcomes, None)
                if outcome is None:
                    return None
                if summed is None:
                    summed = _Summed()
                    for optimiser in self.optimisers.values():
                        optimiser.zero_grad(set_to_none=True)
                measurements = {name: value.item() for name, value in outcome.measurements.items()}
                # Before backward and before the optimiser: a step with a number that is not finite cannot be undone.
                strange = [name for name, value in measurements.items() if not math.isfinite(value)]
                _require_finite(f"the loss ({', '.join(strange)})" if strange else "the loss", outcome.loss)
                weight = len(part) / total
                # PyTorch averages the gradients of what is spread, as if all processes had equally many examples.
                scale = self.processes.size * total / part.total if self.settings.training.shard else 1.0
                outcome.loss.backward(torch.full_like(outcome.loss, weight * scale))  # type: ignore[no-untyped-call]
            summed.add(measurements, outcome.observations, weight)
        return summed

    def _step(self, summed: _Summed, rate: float, shard: Shard) -> dict[str, float]:
        """Make one step of every network the method trains, move the target networks, return what to log."""
        assert self.method is not None, "a phase has begun"
        # After backward, so that processes wait for each other once an update.
        measurements = self.processes.average(summed.measurements, shard.fraction)
        self._average_gradients(shard)
        # All norms before any step: a gradient that is not finite leaves every network as it was.
        for name in self.optimisers:
            # Each network by its own norm: the critic's large gradient at the beginning must not shrink the actor's.
            measurements[f"{name}_gradient_norm"] = self._clip(name)
        for name, optimiser in self.optimisers.items():
            own_rate = self.settings.method.baseline_learning_rate if name == "baseline" else rate
            # Set anew at every step, so that no scheduler has a state that a checkpoint would have to hold.
            for group in optimiser.param_groups:
                group["lr"] = own_rate
            optimiser.step()
        self.method.observe(self.processes.average_tensors(summed.observations, shard.fraction))
        # After the method has observed, before the next loss of the same batch: targets follow every single step.
        self._update_target_networks()
        return measurements

    def _outcomes(self, batch: Batch, shard: Shard, seed: int, progress: float) -> Iterator[Outcome]:
        """Yield the losses of a shard of the batch, each made when the step before it is done.

        Every shard of an update has generators of the same seed, and keeps of what they draw the rows of its examples.
        """
        generator = ShardedGenerator()
        generator.manual_seed(seed)
        generator.shard = shard
        own = batch if len(shard) == shard.total else batch.part(shard.first, shard.last)
        assert self.method is not None, "a phase has begun"
        # A generator: a method with several steps sees the weights that its earlier ones have left.
        outcomes = self.method.updates(self.networks, own.to(self.device), generator, progress)
        while True:
            with computing(self.settings.precision, self.device):  # of the loss alone, not of the step that follows
                outcome = next(outcomes, None)
            if outcome is None:
                return
            yield outcome

    def _average_gradients(self, shard: Shard) -> None:
        """Make the gradients those of the whole batch; those of what is spread are already."""
        trained = [self.networks[name] for name in self.optimisers]
        fraction = 1 / self.processes.size if self.settings.training.shard else shard.fraction
        replicated = [network for network in trained if not is_sharded(network)]
        if replicated:
            self.processes.average_gradients(replicated, fraction)

    def tensors(self) -> TensorGroups:
        """Return everything as named tensors; `actor` is the best actor so far, for whoever loads the folder."""
        state = {
            name: tensor
            for network_name, network in self.networks.named().items()
            for name, tensor in prefixed(network_name, weights_of(network)).items()
        }
        optimisers = {
            name: tensor
            for optimiser_name, optimiser in self.optimisers.items()
            for name, tensor in prefixed(optimiser_name, optimiser_tensors(optimiser)).items()
        }
        # The best actor beside the present one: a resumed run goes on from the present one, a reader wants the best.
        groups = {"actor": self.best_actor, "networks": state, "optimisers": optimisers}
        if self.networks.critic is not None:
            groups["critic"] = weights_of(self.networks.critic)
        method_state = {} if self.method is None else self.method.tensors()
        if method_state:
            groups["method"] = method_state
        return groups | {"generator": {"sampling": self.generator.get_state()}}

    def tensors_in_first(self) -> TensorGroups | None:
        """Return the same in the first process, None in the others, which help to gather what is spread over all."""
        if not self.processes.is_first and not self.settings.training.shard:
            return None
        tensors = self.tensors()
        return tensors if self.processes.is_first else None

    def load_tensors(self, groups: TensorGroups, place: str) -> None:
        """Restore what `tensors` returned, the phase having been started."""
        for name, network in self.networks.named().items():
            load_weights(network, under(name, groups["networks"]), place)
        for name, optimiser in self.optimisers.items():
            load_optimiser(optimiser, under(name, groups["optimisers"]))
        if self.method is not None and "method" in groups:
            self.method.load_tensors(groups["method"], self.device)
        self.best_actor = groups["actor"]
        self.generator.set_state(groups["generator"]["sampling"])

    def _clip(self, name: str) -> float:
        """Limit the gradient's norm and return what it was."""
        limit = self.settings.training.clip_norm
        parameters = list(self.networks[name].parameters())
        # Only what has a gradient: a frozen or unused weight has none and would count as zero anyway.
        norm = nn.utils.get_total_norm([each.grad for each in parameters if each.grad is not None])
        found = gather(norm)
        # Before anything is scaled by it: an infinite norm would make the finite gradients 0.
        _require_finite(f"the gradient of the {name}", found)
        if limit is not None and found.item() > limit:  # most updates need no pass over the gradients
            nn.utils.clip_grads_with_norm_(parameters, limit, norm)
        return found.item()

    def _update_target_networks(self) -> None:
        for spec, online in self._copies():
            rate = self.settings.method.rate_of(spec)
            # Nothing follows what this phase does not train, and a frozen copy (rate 0) stays as the phase found it.
            if online in self.optimisers and rate > 0:
                polyak_update(self.networks[spec.name], self.networks[online], rate)

    def _copies(self) -> Iterator[tuple[NetworkSpec, str]]:
        """Yield the target copies, each with the name of the network that it follows."""
        for spec in self.settings.method.networks:
            if spec.copy_of is not None:
                yield spec, spec.copy_of


def exported(tensors: TensorGroups) -> TensorGroups:
    """Return what others load of a learner's state: the best actor, the last critic."""
    return {name: group for name, group in tensors.items() if name in ("actor", "critic")}


@dataclass
class _Summed:
    """What the parts of a batch measured and let the method observe, as means over all of its examples."""

    measurements: dict[str, float] = field(default_factory=dict)
    observations: dict[str, Tensor] = field(default_factory=dict)

    def add(self, measurements: Mapping[str, float], observations: Mapping[str, Tensor], weight: float) -> None:
        """Add the means of a part that has this fraction of the examples."""
        for name, value in measurements.items():
            self.measurements[name] = self.measurements.get(name, 0.0) + value * weight
        for name, tensor in observations.items():
            weighted = tensor * weight
            self.observations[name] = self.observations[name] + weighted if name in self.observations else weighted


def _means(steps: list[dict[str, float]]) -> dict[str, float]:
    """Return the mean of each measurement over the steps that have it."""
    found = {name: [step[name] for step in steps if name in step] for step in steps for name in step}
    return {name: sum(values) / len(values) for name, values in found.items()}


def _require_finite(what: str, value: Tensor) -> None:
    if not math.isfinite(value.item()):
        raise NonFiniteError(f"{what} is not finite")


def recipe_learner(
    settings: Settings, num_source_tokens: int, num_target_tokens: int, score: Score, processes: Processes | None = None
) -> Learner:
    """Return the learner of a recipe's own networks."""
    return Learner(settings, recipe_networks(settings, num_source_tokens, num_target_tokens), score, processes)
