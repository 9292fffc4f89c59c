"""Random pairs of token sequences, and the scores of their prefixes in double precision."""

from __future__ import annotations

import random

import torch

from seqcritic.contracts.batch import pad
from seqcritic.contracts.score import Scorable, Score

UNKNOWN = 1
Sequences = list[list[int]]


def random_pairs(count: int, seed: int) -> tuple[Sequences, Sequences]:
    """Return pairs of few words, unknown ones among them: unrelated, corrupted, or pieced together."""
    source = random.Random(seed)
    predictions, references = [], []
    for _ in range(count):
        num_words = source.choice([2, 4, 9])
        reference = [source.randint(UNKNOWN, num_words) for _ in range(source.randint(1, 12))]
        prediction = [source.randint(UNKNOWN, num_words) for _ in range(source.randint(0, 15))]
        if source.random() < 0.4:
            prediction = [token for token in reference if source.random() < 0.8]
            prediction.insert(source.randint(0, len(prediction)), source.randint(UNKNOWN, num_words))
        while source.random() < 0.4:
            start = source.randrange(len(reference))
            prediction[source.randint(0, len(prediction)) :] = reference[start : start + source.randint(1, 9)]
        predictions.append(prediction)
        references.append(reference)
    return predictions, references


def scores_of(score: Score, predictions: Sequences, references: Sequences) -> torch.Tensor:
    """Return the prefix scores [B, T + 1] in double precision; T includes the end token."""
    tokens, _ = pad(predictions)
    reference_tokens, _ = pad(references)
    lengths = torch.tensor([len(prediction) for prediction in predictions])
    reference_lengths = torch.tensor([len(reference) for reference in references])
    torch.set_default_dtype(torch.float64)
    try:
        return score.prefix_scores(Scorable.of(tokens, lengths, reference_tokens, reference_lengths))
    finally:
        torch.set_default_dtype(torch.float32)


def as_words(tokens: list[int], side: str, unknown: int | None) -> str:
    """Return a text in which no unknown token equals any other word."""
    return " ".join(f"{side}{place}" if token == unknown else f"w{token}" for place, token in enumerate(tokens))
