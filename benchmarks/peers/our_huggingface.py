"""A Marian-shaped model of base size with random weights, as our actor: likelihood updates and sampling."""

from __future__ import annotations

from typing import Any

import torch
from transformers import MarianConfig, MarianMTModel

from seqcritic.decoding.sampling import sample
from seqcritic.methods.masked_losses import likelihood_loss
from seqcritic.models.hf.actor import HuggingFaceActor
from seqcritic.training.device import computing
from seqcritic.training.learner import adam
from side_by_side.layers import count

NUM_TOKENS, SIZE, LAYERS, WIDTH, HEADS = 32_000, 512, 6, 2048, 8
ROWS, LENGTH = 16, 24
RATE = 1e-4


class Work:
    """Updates of one batch by likelihood, or samples of it, in a precision."""

    def __init__(self, request: dict[str, Any]) -> None:
        torch.manual_seed(1)
        depth = {f"{side}_{what}": number for side in ("encoder", "decoder") for what, number in _SHAPE.items()}
        last = NUM_TOKENS - 1
        config = MarianConfig(
            vocab_size=NUM_TOKENS,
            d_model=SIZE,
            dropout=0.0,
            max_position_embeddings=128,
            eos_token_id=0,
            pad_token_id=last,
            decoder_start_token_id=last,
            **depth,
        )
        self.actor = HuggingFaceActor(MarianMTModel(config))
        self.tokens = torch.randint(1, last, (2, ROWS, LENGTH), generator=torch.Generator().manual_seed(2))
        self.mask = torch.ones(ROWS, LENGTH, dtype=torch.bool)
        self.optimiser = adam(self.actor.parameters())
        self.optimiser.param_groups[0]["lr"] = RATE
        self.precision = request["precision"]
        self.step = self.update if request["kind"] == "hf-likelihood" else self.draw

    def describe(self) -> dict[str, Any]:
        """Return what the actor is made of."""
        return {"parameters": count(self.actor)["parameters"]}

    def run(self, steps: int) -> dict[str, Any]:
        """Work so many times."""
        for _ in range(steps):
            self.step()
        return {}

    def update(self) -> None:
        """Make one update: loss, backward pass, Adam."""
        sources, references = self.tokens
        self.optimiser.zero_grad()
        with computing(self.precision, self.actor.device):
            features, _ = self.actor.features(self.actor.encode(sources, self.mask), references, self.mask)
            loss = likelihood_loss(self.actor.logits_of(features), references, self.mask)
        loss.backward()
        self.optimiser.step()

    def draw(self) -> None:
        """Draw one sample of every source, of full length."""
        with computing(self.precision, self.actor.device), torch.no_grad():
            memory = self.actor.encode(self.tokens[0], self.mask)
            sample(self.actor, memory, torch.full((ROWS,), LENGTH), torch.Generator().manual_seed(3))


_SHAPE = {"layers": LAYERS, "ffn_dim": WIDTH, "attention_heads": HEADS}
