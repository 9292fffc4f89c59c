"""Our side on the Marian-shaped models: updates, with adapters and without, beam search and samples."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from marian import BATCH, NUM_PAIRS, make_model, make_pairs
from our_training import LengthLimit
from seqcritic.contracts.batch import Batch
from seqcritic.data.bucketing import Buckets
from seqcritic.data.packed_rows import PackedRows
from seqcritic.data.token_cache import EncodedPairs
from seqcritic.decoding.beam import beam_search
from seqcritic.decoding.sampling import draw_tokens
from seqcritic.draws import draw_numbers
from seqcritic.methods import rollout
from seqcritic.methods.build import assemble_networks
from seqcritic.models.build import build_critic
from seqcritic.models.hf.actor import HuggingFaceActor
from seqcritic.scores.bleu import BleuScore
from seqcritic.settings.io import settings_from
from seqcritic.training.learner import Learner
from side_by_side.layers import count

CRITIC = {"embedding": 256, "hidden": 256, "attention": 256, "embeddings": "actor", "columns": 512}
LEARNING_RATE = 1e-4


def packed(sequences: list[list[int]]) -> PackedRows:
    """Return sequences as the cache of a corpus has them."""
    lengths = np.array([len(each) for each in sequences])
    return PackedRows(np.concatenate([np.array(each, np.int32) for each in sequences]), lengths)


class HuggingFaceTraining:
    """Updates of one method in the order of our buckets; samples are as long as a trained actor's."""

    def __init__(self, request: dict[str, Any]) -> None:
        size, method = request["size"], dict(request["method"])
        generator = torch.Generator().manual_seed(1)
        actor = HuggingFaceActor(make_model(size), lora=request.get("lora"), generator=generator)
        settings = settings_from({"method": method, "critic": CRITIC, "training": {"batch": BATCH, "clip_norm": 1.0}})
        critic = build_critic(settings, actor, generator) if settings.method.needs_critic else None
        self.learner = Learner(settings, assemble_networks(settings.method, actor, critic), BleuScore(None))
        sources, targets = (packed(list(side)) for side in zip(*make_pairs(size, NUM_PAIRS), strict=True))
        num_tokens = (actor.num_tokens, actor.num_tokens)
        self.buckets = Buckets(EncodedPairs(None, sources, targets, NUM_PAIRS, {}, ""), num_tokens, None, actor.special)
        self.made = 0
        rollout.sample = LengthLimit(deviation=2)
        self.learner.start_phase("train")

    def describe(self) -> dict[str, Any]:
        """Return what the actor is made of."""
        return count(self.learner.networks.actor)

    def run(self, steps: int) -> dict[str, Any]:
        """Make updates; making batches is not counted."""
        cpu = wall = tokens = 0.0
        losses = []
        for _ in range(steps):
            batch = self._next_batch()
            tokens += int(batch.reference_mask.sum())
            started = time.process_time(), time.perf_counter()
            told = self.learner.update(batch, LEARNING_RATE)
            cpu += time.process_time() - started[0]
            wall += time.perf_counter() - started[1]
            mean_length = int(batch.reference_mask.sum()) / len(batch)
            losses.append(told.get("likelihood_loss", told.get("actor_loss", 0.0)) / mean_length)
        return {"loss": sum(losses) / steps, "step_cpu": cpu, "step_wall": wall, "tokens": tokens} | _peak()

    def _next_batch(self) -> Batch:
        batch = self.buckets.batch(self.made, BATCH, seed=1)
        self.made += BATCH
        return batch


def _peak() -> dict[str, int]:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return {"peak_bytes": int(line.split()[1]) * 1024}
    return {}


class HuggingFaceDecoding:
    """Beam search of a `width`, or samples where it is 0, of one batch of sources."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.actor = HuggingFaceActor(make_model(request["size"], ends=False))
        pairs = make_pairs(request["size"], BATCH, request["length"])
        self.sources = torch.tensor([[*source, self.actor.special.end[0]] for source, _ in pairs])
        self.lengths = torch.full((BATCH,), request["length"])
        self.width = request["width"]
        self.generator = torch.Generator().manual_seed(1)

    def describe(self) -> dict[str, Any]:
        """Return what the actor is made of."""
        return count(self.actor)

    def run(self, steps: int) -> dict[str, Any]:
        """Search or draw, and return what was written."""
        mask = torch.ones_like(self.sources, dtype=torch.bool)
        for _ in range(steps):
            if self.width:
                found = beam_search(
                    self.actor, self.sources, mask, self.width, maximum_lengths=self.lengths, refill=True
                )
                tokens = [hypotheses[0].tokens for hypotheses in found]
            else:
                numbers = draw_numbers(self.generator, int(self.lengths.max()), BATCH)
                with torch.no_grad():
                    memory = self.actor.encode(self.sources, mask)
                tokens = draw_tokens(self.actor, memory, self.lengths, numbers).tolist()
        return {"tokens": tokens}
