"""Our side: updates, their bare products, their memory, beam search, evaluation. Runs where seqcritic is installed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch

from matrix_shapes import Products, layers_of
from our_training import NEVER, Training, batch_of, settings_of
from recipe_evaluation import Evaluation, RecipeTraining
from seqcritic.data.vocabulary import END
from seqcritic.decoding.beam import beam_search
from seqcritic.models.actor import Actor
from seqcritic.training.environment import set_up_process
from side_by_side.layers import count
from side_by_side.serve import serve
from side_by_side.workloads import WORKLOADS


def build_products(request: dict[str, Any]) -> Products:
    """Return the bare products of a likelihood update on the workload's first batch."""
    workload = WORKLOADS[request["workload"]]
    actor = settings_of(workload, "likelihood", request.get("tied", False)).actor
    return Products(layers_of(actor, workload.vocabulary, batch_of(workload.batches(1)[0])))


class Memory(Training):
    """Updates, and the peak of the resident memory of this process."""

    def run(self, steps: int) -> dict[str, Any]:
        """Make updates and read the peak, which getrusage would inherit from the parent process."""
        told = super().run(steps)
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return told | {"peak_bytes": int(line.split()[1]) * 1024}
        raise RuntimeError("this system does not tell the peak of resident memory")


class Beam:
    """Beam search; a step is one batch of `sentences`. The end token's bias keeps it from ever being chosen."""

    def __init__(self, request: dict[str, Any]) -> None:
        workload = WORKLOADS[request["workload"]]
        settings = settings_of(workload, "likelihood", request.get("tied", False))
        generator = torch.Generator().manual_seed(1)
        self.actor = Actor(settings.actor, workload.vocabulary, workload.vocabulary, generator)
        with torch.no_grad():
            self.actor.decoder.read_out.bias[END] = NEVER
        (pairs,) = workload.batches(1)
        self.batch = batch_of(pairs[: request["sentences"]])
        self.width, self.length = request["width"], request["length"]

    def describe(self) -> dict[str, Any]:
        """Return what the actor is made of."""
        return count(self.actor)

    def run(self, steps: int) -> dict[str, Any]:
        """Search, and say how many tokens a hypothesis has."""
        caps = torch.full((len(self.batch),), self.length)
        for _ in range(steps):
            found = beam_search(self.actor, self.batch.sources, self.batch.source_mask, self.width, caps=caps)
        return {"length": min(len(hypotheses[0].tokens) for hypotheses in found)}


if __name__ == "__main__":
    set_up_process(int(sys.argv[1]))
    serve(
        {
            "likelihood": Training,
            "actor-critic": Training,
            "reinforce": Training,
            "products": build_products,
            "memory": Memory,
            "beam": Beam,
            "recipe-training": RecipeTraining,
            "recipe-evaluation": Evaluation,
        }
    )
