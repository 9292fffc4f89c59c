"""Joey NMT's side: its model, its TrainManager's step, its beam search. Runs inside its environment."""

from __future__ import annotations

import sys
import tempfile
from itertools import cycle
from pathlib import Path
from typing import Any

import torch
from joeynmt.batch import Batch
from joeynmt.config import parse_global_args
from joeynmt.model import build_model
from joeynmt.search import search
from joeynmt.training import TrainManager
from joeynmt.vocabulary import Vocabulary

from side_by_side.layers import count
from side_by_side.serve import serve
from side_by_side.workloads import WORKLOADS, Pair, Workload

NUM_BATCHES = 8
PAD, BOS, EOS, FIRST = 1, 2, 3, 4
NOTES = (
    "Joey NMT feeds its attention vector back and predicts from it alone (tanh of [state; context], as wide as the "
    "state); it starts from a projection of the encoder's last state",
)


def configuration(workload: Workload, tied: bool, folder: str) -> dict[str, Any]:
    """Return the tree a user would write as YAML for the workload's model."""
    embeddings = {"embedding_dim": workload.size, "dropout": 0.0}
    encoder = {"type": "recurrent", "rnn_type": "gru", "hidden_size": workload.size, "bidirectional": True}
    decoder = {"type": "recurrent", "rnn_type": "gru", "hidden_size": workload.size, "attention": "bahdanau"}
    training = {"optimizer": "adam", "learning_rate": 1e-3, "scheduling": "exponential", "clip_grad_norm": 50.0}
    return {
        "name": workload.name,
        "model_dir": folder,
        "use_cuda": False,
        "data": {},
        "training": training | {"batch_size": workload.batch, "normalization": "batch"},
        "testing": {"beam_size": 10},
        "model": {
            "initializer": "xavier_uniform",
            "embed_initializer": "xavier_uniform",
            "tied_softmax": tied,
            "encoder": encoder | {"num_layers": 1, "dropout": 0.0, "embeddings": embeddings},
            "decoder": decoder
            | {"num_layers": 1, "dropout": 0.0, "hidden_dropout": 0.0, "input_feeding": True}
            | {"init_hidden": "bridge", "embeddings": embeddings},
        },
    }


def batch_of(pairs: list[Pair]) -> Batch:
    """Return pairs as its collate function would: sources with an end token, targets between begin and end."""
    sources = [[token + FIRST for token in source] + [EOS] for source, _ in pairs]
    targets = [[BOS, *(token + FIRST for token in target), EOS] for _, target in pairs]
    return Batch(
        src=padded(sources),
        src_length=torch.tensor([len(source) for source in sources]),
        src_prompt_mask=None,
        trg=padded(targets),
        trg_prompt_mask=None,
        indices=torch.arange(len(pairs)),
        device=torch.device("cpu"),
        pad_index=PAD,
        eos_index=EOS,
    )


def padded(rows: list[list[int]]) -> torch.Tensor:
    """Return rows as one tensor."""
    width = max(map(len, rows))
    return torch.tensor([row + [PAD] * (width - len(row)) for row in rows])


class Training:
    """Likelihood training as TrainManager.train_and_validate does it between two log lines."""

    def __init__(self, request: dict[str, Any]) -> None:
        workload = WORKLOADS[request["workload"]]
        arguments = parse_global_args(configuration(workload, request.get("tied", False), tempfile.mkdtemp()))
        words = [f"w{number}" for number in range(workload.vocabulary - FIRST)]
        vocabulary = Vocabulary(words, arguments.data["special_symbols"])
        assert len(vocabulary) == workload.vocabulary
        self.model = build_model(arguments.model, vocabulary, vocabulary)
        self.model.loss_function = (arguments.train.loss, arguments.train.label_smoothing)
        self.manager = TrainManager(
            rank=0,
            model=self.model,
            model_dir=Path(arguments.model_dir),
            device=arguments.device,
            autocast=arguments.autocast,
            seed=1,
            train_args=arguments.train,
            dev_args=arguments.test,
        )
        self.batches = cycle([batch_of(pairs) for pairs in workload.batches(NUM_BATCHES)])

    def describe(self) -> dict[str, Any]:
        """Return what the model is made of."""
        return count(self.model) | {"notes": NOTES}

    def run(self, steps: int) -> dict[str, Any]:
        """Make updates in the order of its training loop."""
        manager, total = self.manager, 0.0
        for _ in range(steps):
            loss, _ = manager._train_step(next(self.batches))
            total += loss
            manager.clip_grad_fun(parameters=self.model.parameters())
            manager.optimizer.step()
            self.model.zero_grad()
            manager.stats.steps += 1
        return {"loss": total / steps}


class Beam(Training):
    """Beam search; a step is one batch of `sentences`. A minimal length forbids the end token throughout."""

    def __init__(self, request: dict[str, Any]) -> None:
        super().__init__(request)
        self.model.eval()
        self.width, self.length = request["width"], request["length"]
        (pairs,) = WORKLOADS[request["workload"]].batches(1)
        self.batch = batch_of(pairs[: request["sentences"]])
        self.batch.sort_by_src_length()

    def run(self, steps: int) -> dict[str, Any]:
        """Search, and say how many tokens a hypothesis has."""
        for _ in range(steps):
            output, _, _ = search(
                self.model,
                self.batch,
                max_output_length=self.length,
                beam_size=self.width,
                beam_alpha=-1,
                min_output_length=self.length,
            )
        return {"length": int(output.shape[1])}


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[1]))
    torch.manual_seed(1)
    serve({"likelihood": Training, "beam": Beam})
