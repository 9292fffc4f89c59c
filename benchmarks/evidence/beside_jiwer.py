"""Print the demo's error rate of uncorrected sources beside that of jiwer, with and without its default strip."""

from __future__ import annotations

import jiwer

from seqcritic.data.spelling import SpellingTask
from seqcritic.scores.edit_distance import EditDistanceScore
from seqcritic.settings.data import SpellingSettings
from seqcritic.settings.io import load_recipe

CHARACTERS = jiwer.Compose([jiwer.ReduceToListOfListOfChars()])  # jiwer's default without its strip


def unstripped_rate(references: list[str], predictions: list[str]) -> float:
    """Return jiwer's character error rate in percent, spaces at the ends of sentences counted."""
    rate = jiwer.cer(references, predictions, reference_transform=CHARACTERS, hypothesis_transform=CHARACTERS)
    return 100 * float(rate)


def main() -> None:
    """Judge the demo's test sources as they are, as if they were predictions."""
    settings = load_recipe("demo").data
    assert isinstance(settings, SpellingSettings)
    task = SpellingTask(settings)
    test_set = task.evaluation_set("test")
    references = test_set.references
    sources = [text for batch in test_set.batches for text in task.codec.texts(batch.sources)]
    metric = EditDistanceScore()
    spaced = sum(reference != reference.strip() for reference in references)
    print(f"{len(references):,} references, {spaced:,} of them begin or end with a space")
    print(f"CER of the sources: {metric.of_totals(metric.statistics(sources, references).sum(axis=0)):.2f}")
    print(f"jiwer without its strip: {unstripped_rate(references, sources):.2f}")
    print(f"jiwer.cer: {100 * jiwer.cer(references, sources):.2f}")


if __name__ == "__main__":
    main()
