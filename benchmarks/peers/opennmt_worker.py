"""OpenNMT-py's side: its model builder, its Trainer's gradient step, its Translator. Runs inside its environment."""

from __future__ import annotations

import sys
from itertools import cycle
from typing import Any

import pyonmttok
import torch
from onmt.constants import DefaultTokens
from onmt.model_builder import build_model
from onmt.opts import train_opts, translate_opts
from onmt.trainer import build_trainer
from onmt.translate import GNMTGlobalScorer, Translator
from onmt.utils import Statistics
from onmt.utils.optimizers import Optimizer
from onmt.utils.parse import ArgumentParser

from side_by_side.layers import count
from side_by_side.serve import serve
from side_by_side.workloads import WORKLOADS, Pair, Workload

NUM_BATCHES = 8
SPECIAL = [DefaultTokens.UNK, DefaultTokens.PAD, DefaultTokens.BOS, DefaultTokens.EOS]
UNK, PAD, BOS, EOS, FIRST = 0, 1, 2, 3, 4
NOTES = (
    "OpenNMT-py's bidirectional encoder halves its state, so its annotations are half as wide as the others'; like "
    "Joey NMT it feeds its attention vector back and predicts from it alone",
)


def options_of(workload: Workload, tied: bool) -> Any:
    """Return what its command line makes of the workload's model."""
    parser = ArgumentParser()
    train_opts(parser)
    size = str(workload.size)
    words = ["--encoder_type", "brnn", "--decoder_type", "rnn", "--rnn_type", "GRU", "--layers", "1"]
    words += ["--hidden_size", size, "--word_vec_size", size, "--global_attention", "mlp", "--dropout", "0"]
    words += ["--attention_dropout", "0", "--optim", "adam", "--learning_rate", "0.001", "--max_grad_norm", "50"]
    words += ["--normalization", "sents", "--batch_size", str(workload.batch)]
    words += ["--param_init_glorot", "--param_init", "0", "--data", "{}", "--src_vocab", "none"]
    words += ["--share_decoder_embeddings"] if tied else []
    options = parser.parse_args(words)
    options.data = {}
    ArgumentParser.update_model_opts(options)
    ArgumentParser.validate_model_opts(options)
    return options


def vocabularies(workload: Workload) -> dict[str, Any]:
    """Return vocabularies of the workload's size, special tokens first."""
    words = [f"w{number}" for number in range(workload.vocabulary - FIRST)]
    vocabulary = pyonmttok.build_vocab_from_tokens(words, maximum_size=0, minimum_frequency=1, special_tokens=SPECIAL)
    assert len(vocabulary) == workload.vocabulary
    assert [vocabulary[token] for token in SPECIAL] == [UNK, PAD, BOS, EOS]
    return {
        "src": vocabulary,
        "tgt": vocabulary,
        "src_feats": [],
        "data_task": "seq2seq",
        "decoder_start_token": DefaultTokens.BOS,
    }


def batch_of(pairs: list[Pair]) -> dict[str, Any]:
    """Return pairs as its iterator would: sources with an end token like everybody's, targets between begin and end."""
    sources = [[token + FIRST for token in source] + [EOS] for source, _ in pairs]
    targets = [[BOS, *(token + FIRST for token in target), EOS] for _, target in pairs]
    lengths = torch.tensor([len(source) for source in sources])
    return {"src": padded(sources), "srclen": lengths, "tgt": padded(targets)}


def padded(rows: list[list[int]]) -> torch.Tensor:
    """Return rows as one tensor [B, T, 1]."""
    width = max(map(len, rows))
    return torch.tensor([row + [PAD] * (width - len(row)) for row in rows])[:, :, None]


class Training:
    """Likelihood training by Trainer._gradient_accumulation, which makes one update for one batch."""

    def __init__(self, request: dict[str, Any]) -> None:
        workload = WORKLOADS[request["workload"]]
        self.options = options_of(workload, request.get("tied", False))
        self.vocabularies = vocabularies(workload)
        self.model = build_model(self.options, self.options, self.vocabularies, None, -1)
        optimiser = Optimizer.from_opt(self.model, self.options)
        self.trainer = build_trainer(self.options, -1, self.model, self.vocabularies, optimiser)
        self.batches = cycle([batch_of(pairs) for pairs in workload.batches(NUM_BATCHES)])

    def describe(self) -> dict[str, Any]:
        """Return what the model is made of."""
        return count(self.model) | {"notes": NOTES}

    def run(self, steps: int) -> dict[str, Any]:
        """Make updates."""
        total = Statistics()
        for _ in range(steps):
            batch = next(self.batches)
            self.trainer._gradient_accumulation([batch], len(batch["tgt"]), total, Statistics())
        return {"loss": total.loss / total.n_words}


class Beam(Training):
    """Beam search; a step is one batch of `sentences`. A minimal length forbids the end token throughout."""

    def __init__(self, request: dict[str, Any]) -> None:
        super().__init__(request)
        parser = ArgumentParser()
        translate_opts(parser)
        length = str(request["length"])
        words = ["--model", "none", "--src", "none", "--beam_size", str(request["width"]), "--gpu", "-1"]
        words += ["--min_length", length, "--max_length", length, "--max_length_ratio", "0"]
        options = parser.parse_args(words)
        self.model.eval()
        scorer = GNMTGlobalScorer.from_opt(options)
        self.translator = Translator.from_opt(self.model, self.vocabularies, options, self.options, scorer)
        (pairs,) = WORKLOADS[request["workload"]].batches(1)
        self.batch = {key: value for key, value in batch_of(pairs[: request["sentences"]]).items() if key != "tgt"}

    def run(self, steps: int) -> dict[str, Any]:
        """Search, and say how many tokens a hypothesis has."""
        for _ in range(steps):
            found = self.translator.translate_batch(self.batch, attn_debug=False)
        return {"length": min(len(hypotheses[0]) for hypotheses in found["predictions"])}


if __name__ == "__main__":
    torch.set_num_threads(int(sys.argv[1]))
    torch.manual_seed(1)
    serve({"likelihood": Training, "beam": Beam})
