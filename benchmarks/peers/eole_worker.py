"""Eole's side: its model, its Trainer's and its RLTrainer's step. Runs inside its environment."""

from __future__ import annotations

import sys
import tempfile
from itertools import cycle
from pathlib import Path
from typing import Any

import torch
from eole.config.run import TrainConfig
from eole.inputters.inputter import build_vocab
from eole.models.model import get_model_class
from eole.trainer import build_trainer
from eole.utils import Statistics
from eole.utils.optimizers import Optimizer

from side_by_side.layers import count
from side_by_side.serve import serve
from side_by_side.workloads import WORKLOADS, Pair, Workload

NUM_BATCHES = 8
NEVER = -1e4
NOTES = (
    "Eole's bidirectional encoder halves its state; it feeds its attention vector back and predicts from it alone; its "
    "reward is one BLEU of the whole batch, ours the edit distance or BLEU of every prefix of every sample",
)


def configuration(workload: Workload, request: dict[str, Any], folder: Path) -> TrainConfig:
    """Return what its YAML would hold for the workload's model; all its options for REINFORCE are in `training`."""
    vocabulary = folder / "vocabulary.txt"
    vocabulary.write_text("".join(f"w{number}\n" for number in range(workload.vocabulary - 4)))
    size = workload.size
    training = {"batch_size": workload.batch, "optim": "adam", "learning_rate": 0.001, "max_grad_norm": 50.0}
    training |= {
        "dropout": [0.0],
        "attention_dropout": [0.0],
        "normalization": "sents",
        "param_init_method": "xavier_uniform",
    }
    training |= {"world_size": 0, "gpu_ranks": [], "model_path": str(folder)}
    if request["kind"] == "reinforce":
        training |= {"rl_algorithm": "reinforce", "rl_reward_metric": "BLEU", "rl_baseline": "batch_mean"}
        # A negative top_k is its way to sample from all tokens.
        training |= {"rl_gen_max_length": request["sampled"], "rl_gen_top_k": -1}
    return TrainConfig(
        src_vocab=str(vocabulary),
        tgt_vocab=str(vocabulary),
        share_vocab=True,
        src_vocab_size=workload.vocabulary,
        tgt_vocab_size=workload.vocabulary,
        data={},
        model={
            "architecture": "custom",
            "hidden_size": size,
            "layers": 1,
            "share_decoder_embeddings": request.get("tied", False),
            "embeddings": {"word_vec_size": size},
            "encoder": {"encoder_type": "brnn", "rnn_type": "GRU"},
            "decoder": {"decoder_type": "rnn", "rnn_type": "GRU", "global_attention": "mlp"},
        },
        training=training,
    )


class Training:
    """Updates by the trainer that its configuration builds: likelihood, or REINFORCE with samples of a fixed length."""

    def __init__(self, request: dict[str, Any]) -> None:
        workload = WORKLOADS[request["workload"]]
        settings = configuration(workload, request, Path(tempfile.mkdtemp()))
        vocabularies = build_vocab(settings, {"src": [], "tgt": []})
        self.specials = {name: vocabularies["tgt"][token] for name, token in vocabularies["specials"].items()}
        self.first = vocabularies["tgt"]["w0"]
        assert len(vocabularies["tgt"]) == workload.vocabulary
        self.model = get_model_class(settings.model).for_training(
            settings.model, vocabularies, settings.training, device_id=-1
        )
        optimiser = Optimizer.from_config(self.model, settings)
        self.trainer = build_trainer(settings, -1, self.model, vocabularies, optimiser)
        if request["kind"] == "reinforce":
            with torch.no_grad():
                self.model.generator.bias[self.specials["eos_token"]] = NEVER
        self.batches = cycle([self._batch(pairs) for pairs in workload.batches(NUM_BATCHES)])
        self.steps = 0

    def describe(self) -> dict[str, Any]:
        """Return what the model is made of."""
        return count(self.model) | {"notes": NOTES}

    def run(self, steps: int) -> dict[str, Any]:
        """Make updates."""
        total = Statistics()
        for _ in range(steps):
            batch = next(self.batches)
            self.steps += 1
            self.trainer._train_step([dict(batch)], len(batch["tgt"]), total, Statistics(), step=self.steps)
        return {"loss": total.loss / max(1, total.n_tokens), "tokens": total.n_tokens / steps}

    def _batch(self, pairs: list[Pair]) -> dict[str, Any]:
        end, begin = self.specials["eos_token"], self.specials["bos_token"]
        sources = [[token + self.first for token in source] + [end] for source, _ in pairs]
        targets = [[begin, *(token + self.first for token in target), end] for _, target in pairs]
        lengths = [torch.tensor([len(row) for row in rows]) for rows in (sources, targets)]
        return {
            "src": self._padded(sources),
            "srclen": lengths[0],
            "tgt": self._padded(targets),
            "tgtlen": lengths[1],
            "images": None,
            "prefix_len": None,
            "cid": ["bench"] * len(pairs),
            "cid_line_number": list(range(len(pairs))),
        }

    def _padded(self, rows: list[list[int]]) -> torch.Tensor:
        width = max(map(len, rows))
        return torch.tensor([row + [self.specials["pad_token"]] * (width - len(row)) for row in rows])


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[1]))
    torch.manual_seed(1)
    serve({"likelihood": Training, "reinforce": Training})
