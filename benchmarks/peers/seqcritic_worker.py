"""Our side: updates, their bare products, their memory, beam search, evaluation. Runs where seqcritic is installed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch

from matrix_shapes import Products, layers_of
from our_huggingface import Work
from our_marian import HuggingFaceDecoding, HuggingFaceTraining
from our_training import NEVER, Training, batch_of, settings_of
from recipe_evaluation import Evaluation, RecipeTraining
from seqcritic.data.vocabulary import END
from seqcritic.decoding.beam import beam_search
from seqcritic.models.gru.actor import RecurrentActor
from seqcritic.training.device import predicting
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
        self.precision = request.get("precision", "float32")
        generator = torch.Generator().manual_seed(1)
        self.actor = RecurrentActor(settings.actor, workload.vocabulary, workload.vocabulary, generator)
        with torch.no_grad():
            self.actor.decoder.output_layer.bias[END] = NEVER
        (pairs,) = workload.batches(1)
        self.batch = batch_of(pairs[: request["sentences"]])
        self.width, self.length = request["width"], request["length"]

    def describe(self) -> dict[str, Any]:
        """Return what the actor is made of."""
        return count(self.actor)

    def run(self, steps: int) -> dict[str, Any]:
        """Search, and say how many tokens a hypothesis has."""
        maximum_lengths = torch.full((len(self.batch),), self.length)
        for _ in range(steps):
            with predicting(self.precision, self.actor.device):
                found = beam_search(
                    self.actor, self.batch.sources, self.batch.source_mask, self.width, maximum_lengths=maximum_lengths
                )
        return {"length": min(len(hypotheses[0].tokens) for hypotheses in found)}


class BeamProducts:
    """The products of a beam search with its weight matrices that no order of sums avoids, bare.

    At every step, for all hypotheses: the state's product with gates and query, and the one with the vocabulary, as
    wide as the embedding; where the output layer is tied, the state's share of what the vocabulary is multiplied with.
    """

    def __init__(self, request: dict[str, Any]) -> None:
        workload = WORKLOADS[request["workload"]]
        self.length = request["length"]
        hypotheses = request["sentences"] * request["width"]
        size, outputs = workload.size, workload.size * (5 if request.get("tied", False) else 4)
        self.inputs = torch.randn(hypotheses, size)
        self.weights = [torch.randn(outputs, size).t(), torch.randn(workload.vocabulary, size).t()]
        self.results = [torch.empty(hypotheses, weight.shape[1]) for weight in self.weights]

    def describe(self) -> dict[str, Any]:
        """Return the amount of work of one search."""
        return {"operations": self.length * sum(2 * self.inputs.numel() * w.shape[1] for w in self.weights)}

    def run(self, steps: int) -> dict[str, Any]:
        """Do the products of so many searches."""
        for _ in range(steps * self.length):
            for weight, result in zip(self.weights, self.results, strict=True):
                torch.mm(self.inputs, weight, out=result)
        return {"length": self.length}


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
            "beam-products": BeamProducts,
            "hf-likelihood": Work,
            "hf-sampling": Work,
            "recipe-training": RecipeTraining,
            "recipe-evaluation": Evaluation,
            "huggingface-training": HuggingFaceTraining,
            "huggingface-decoding": HuggingFaceDecoding,
        }
    )
