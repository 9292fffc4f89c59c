"""What critics know of the tokens they choose between: their values beside the true ones, as a small file.

    python benchmarks/evidence/token_values.py TITLE=RUN … --out docs/results/gradients/token-values.json

At four places of samples of the actor, the true value of each of its six likeliest tokens is the mean return of 16
continuations by the actor. With w(a) the actor's probabilities of the six, an advantage is a value minus Σ_a w(a) times
the values; spreads are roots of Σ_a w(a) times squared advantages, means over prefixes. The true one and the
correlation are freed of the noise of the continuations. Validation examples, the best actor, the last critic.

Shapes: B examples, A tokens, K continuations, V vocabulary.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from seqcritic.data.batch import Batch
from seqcritic.data.corruption import derive_seed
from seqcritic.decoding.sampling import sample
from seqcritic.diagnosing.estimators import Subject, sample_examples
from seqcritic.diagnosing.load import load_patient
from seqcritic.methods.rollout import EXTRA_STEPS, num_tokens, prefix_scores
from seqcritic.models.attention import Memory

NUM_EXAMPLES = 128
TOKENS = 6
CONTINUATIONS = 16
PLACES = (0.0, 0.25, 0.5, 0.75)  # of a reference
UNLIKELY = 0.01


@dataclass(frozen=True)
class Found:
    """What was found at one place of every example: one number a prefix."""

    true_squares: Tensor
    critic_squares: Tensor
    products: Tensor
    favourite_is_unlikely: Tensor


def advantages(values: Tensor, weights: Tensor) -> Tensor:
    """Return values [B, A] minus their mean by weights [B, A] that sum to 1."""
    return values - (weights * values).sum(dim=1, keepdim=True)


def compare_values(returns: Tensor, critic: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the squares of true and critic's advantages and their products [B], from returns [B, A, K].

    The noise of a mean of K returns makes the squares of true advantages too large by Σ_a w(a) (1 − w(a)) σ²(a) / K.
    """
    noise = (weights * (1 - weights) * returns.var(dim=2)).sum(dim=1) / returns.shape[2]
    true, own = advantages(returns.mean(dim=2), weights), advantages(critic, weights)
    squares = (weights * true.square()).sum(dim=1) - noise
    return squares, (weights * own.square()).sum(dim=1), (weights * true * own).sum(dim=1)


@torch.no_grad()
def measure_places(subject: Subject, batch: Batch, generator: torch.Generator) -> Iterator[Found]:
    """Yield what is found at each place of one sample an example."""
    actor, critic = subject.actor, subject.critic
    memory = actor.encode(batch.sources, batch.source_mask)
    drawn = sample_examples(subject, batch, memory, generator).sample
    logits, states = actor.score(memory, drawn.tokens)
    probabilities = torch.softmax(logits, dim=2)
    values = critic.values(critic.encode(batch.references, batch.reference_mask), drawn.tokens, states)
    lengths = num_tokens(batch.references, batch.reference_mask)
    for place in PLACES:
        steps = (place * lengths).long().clamp(max=drawn.mask.shape[1] - 1)
        rows = drawn.mask.gather(1, steps[:, None]).flatten().nonzero().flatten()
        steps = steps[rows]
        own, chances = values[rows, steps], probabilities[rows, steps]  # [B, V]
        weights, candidates = chances.topk(TOKENS, dim=1)
        weights = weights / weights.sum(dim=1, keepdim=True)
        # Every prefix with every candidate K times: the returns are those of its continuations.
        repeats = TOKENS * CONTINUATIONS
        many, ends = rows.repeat_interleave(repeats), steps.repeat_interleave(repeats)
        given = torch.nn.functional.pad(drawn.tokens[many], (0, 1))
        given.scatter_(1, ends[:, None], candidates.flatten().repeat_interleave(CONTINUATIONS)[:, None])
        fixed = Memory(*(field[many] for field in memory))
        others = sample(actor, fixed, lengths[many] + EXTRA_STEPS, generator, (given, ends + 1))
        scores = prefix_scores(subject.score, others.tokens, others.mask, batch.select(many))
        returns = (scores[:, -1] - scores.gather(1, ends[:, None])[:, 0]).view(-1, TOKENS, CONTINUATIONS)
        squares = compare_values(returns.double(), own.gather(1, candidates).double(), weights.double())
        favourites = chances.gather(1, own.argmax(dim=1, keepdim=True)).flatten()
        yield Found(*squares, favourites < UNLIKELY)


def describe(title: str, place: str) -> dict[str, object]:
    """Return what is told of one critic."""
    patient = load_patient(place, "valid", NUM_EXAMPLES)
    generator = torch.Generator().manual_seed(derive_seed(patient.settings.seed, "token values"))
    found = [one for batch in patient.batches for one in measure_places(patient.subject, batch, generator)]
    true, own, products = (
        torch.cat([getattr(one, name) for one in found]).mean().item()
        for name in ("true_squares", "critic_squares", "products")
    )
    unlikely = torch.cat([one.favourite_is_unlikely for one in found])
    return {
        "title": title,
        "prefixes": len(unlikely),
        "true_spread": max(true, 0.0) ** 0.5,
        "critic_spread": own**0.5,
        "correlation": products / (max(true, 1e-12) * own) ** 0.5,
        "favourite_is_unlikely": unlikely.double().mean().item(),
    }


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", metavar="TITLE=RUN")
    parser.add_argument("--out", required=True, type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for title, _, run in (given.rpartition("=") for given in options.runs):
        rows.append(describe(title, run))
        print(rows[-1], flush=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
