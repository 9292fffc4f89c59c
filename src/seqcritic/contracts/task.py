"""The task's contract: pairs of sources and references, to train on and to evaluate on.

A task is four members: a codec, the training stream, the fixed sets, and a fingerprint of it all. What else the program
asks is made of them here; `Batch.of` and `EvaluationSet.of` make tensors of texts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from seqcritic.contracts.batch import Batch, EvaluationSet
from seqcritic.contracts.codec import Codec
from seqcritic.contracts.parts import describe


class Task(ABC):
    """Pairs (X, Y) as ids for the networks and as text for people."""

    codec: Codec
    """Text to ids and back; stored with every model."""
    maximum_length: int | None = None
    """How many tokens a reference that is trained on has at most; None where that is not known."""

    epoch_size: int | None = None
    """How many training examples there are; None where that is not known, and nothing can be told in epochs."""

    @abstractmethod
    def training_batch(self, position: int, size: int, seed: int) -> Batch:
        """The batch of the seeded training stream that begins after `position` examples, of about `size` pairs.

        A pure function: the same arguments give the same batch, whatever was asked before. Resuming depends on it.
        """

    @abstractmethod
    def evaluation_set(self, split: str) -> EvaluationSet:
        """The fixed pairs of a split: `valid`, `test`, and `train` where the training text is to be evaluated.

        A split that the task does not have is a `UserError`.
        """

    @abstractmethod
    def fingerprint(self) -> str:
        """A short hash of the training and validation data, by which a resumed run knows them."""

    def spec(self) -> dict[str, Any] | None:
        """Arguments of the constructor, as JSON, that build this task again; None: it must be passed again."""
        return None

    def section(self) -> dict[str, Any]:
        """The section `data` of the settings that build this task again, as far as it can be built again."""
        kind, arguments = describe(self)
        return {"task": kind, "arguments": arguments}

    def training_sample(self, size: int) -> EvaluationSet:
        """At most so many fixed pairs of those that are trained on: here the first of the stream of seed 0."""
        batch = self.training_batch(0, size, 0)
        # A stream's batch is only about as large as it was asked to be.
        return EvaluationSet.of_batch(batch.part(0, min(size, len(batch))))

    def first_examples(self, size: int) -> list[tuple[str, tuple[str, ...]]]:
        """So many pairs of valid, or fewer, each with all its references."""
        valid = self.evaluation_set("valid")
        return list(zip(valid.sources, valid.all_references, strict=True))[:size]

    def conditions(self, split: str) -> list[str]:
        """What of the data changes a score, for its signature: here a hash of the split's texts."""
        return [f"text:{self.evaluation_set(split).text_digest()[:8]}"]
