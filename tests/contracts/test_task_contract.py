"""What every codec and every task must keep: ours, and one that a stranger might write."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import seqcritic
from foreign_task import SumCodec, SumTask
from seqcritic.contracts.actor import SpecialTokens
from seqcritic.contracts.batch import Batch, EvaluationSet, pad
from seqcritic.contracts.codec import CODECS, Codec, codec_from_dict
from seqcritic.contracts.task import Task
from seqcritic.data.codecs.spelling import SpellingCodec
from seqcritic.data.pairs import PairsFromFiles
from seqcritic.data.spelling import SpellingTask
from seqcritic.errors import UserError
from seqcritic.settings.data import SpellingSettings, TranslationSettings
from support import write_text

Build = Callable[[Path, int], Task]
NUM_PAIRS = 130


def texts(number: int) -> tuple[str, str]:
    """A source and its reference."""
    words = [f"w{number % 7}", f"w{number % 5}", f"w{number % 3}"][: 1 + number % 3]
    return " ".join(words), " ".join(f"{word}'s" for word in reversed(words))


def build_spelling(folder: Path, variant: int) -> Task:
    files = (str(write_text(folder / f"text{variant}.txt", seed=variant)),)
    return SpellingTask(SpellingSettings(train=files, valid=files, test=files, length=8, valid_size=30))


def build_files(folder: Path, variant: int) -> Task:
    path = folder / f"pairs{variant}.tsv"
    path.write_text("".join(f"{source}\t{target}\n" for source, target in map(texts, range(variant, NUM_PAIRS))))
    files = {split: {"pairs": str(path)} for split in ("train", "valid", "test")}
    return PairsFromFiles(TranslationSettings.model_validate(files), cache=folder / "cache")


def build_memory(folder: Path, variant: int) -> Task:
    given = [(source, [target, f"{target} !"]) for source, target in map(texts, range(variant, NUM_PAIRS))]
    return seqcritic.pairs(given, given[:40], given, source_tokens={"kind": "whitespace"})


def build_subwords(folder: Path, variant: int) -> Task:
    tokens = {"kind": "subwords", "size": 300, "lowercase": True}
    return seqcritic.pairs(
        [texts(number) for number in range(variant, NUM_PAIRS)],
        test=[texts(1)],
        source_tokens=tokens,
        target_tokens=tokens,
    )


TASKS: dict[str, Build] = {
    "spelling": build_spelling,
    "files": build_files,
    "memory": build_memory,
    "subwords": build_subwords,
    "foreign": lambda folder, variant: SumTask(99 + variant),
}


@pytest.fixture(params=TASKS)
def build(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[int], Task]:
    return lambda variant: TASKS[request.param](tmp_path, variant)


@pytest.fixture
def task(build: Callable[[int], Task]) -> Task:
    return build(0)


@pytest.fixture
def codec(task: Task) -> Codec:
    return task.codec


def lines_of(task: Task) -> tuple[list[str], list[str]]:
    valid = task.evaluation_set("valid")
    return valid.sources[:20], valid.references[:20]


def numbers(batch: Batch) -> list[list[Any]]:
    return [field.tolist() for field in (batch.sources, batch.source_mask, batch.references, batch.reference_mask)]


def test_every_registered_codec_is_checked_here(tmp_path: Path):
    checked = {build(tmp_path, 0).codec.kind for build in TASKS.values()} - {""}
    pretrained = {"huggingface", "huggingface-speech"}  # theirs: models/hf/test_hf_codec.py and test_hf_speech.py
    assert checked == set(CODECS.names()) - pretrained


def test_a_codec_is_the_same_after_json(task: Task, codec: Codec):
    stored = json.loads(json.dumps(codec.to_dict()))
    again = codec_from_dict(stored)
    assert type(again) is type(codec)
    assert again.to_dict() == stored
    assert again.reads_like(codec)
    assert (again.num_source_tokens, again.num_target_tokens) == (codec.num_source_tokens, codec.num_target_tokens)
    assert (again.special, again.lowercase) == (codec.special, codec.lowercase)
    sources, references = lines_of(task)
    assert again.encode_sources(sources)[0].tolist() == codec.encode_sources(sources)[0].tolist()
    assert again.encode_references(references) == codec.encode_references(references)
    assert again.score_options() == codec.score_options()


def test_decoding_gives_the_references_back_up_to_the_end(task: Task, codec: Codec):
    _, references = lines_of(task)
    (end, *_), rest = codec.special.end, codec.special.ordinary(codec.num_target_tokens)[:1].tolist()
    for line, ids in zip(references, codec.encode_references(references), strict=True):
        assert codec.decode(ids) == line
        assert codec.decode([*ids, end, *rest]) == line
        assert codec.tokens([*ids, end, *rest]) == codec.tokens(ids)
        assert len(codec.tokens(ids)) == len(ids)
        assert all(0 <= token < codec.num_target_tokens and token not in codec.special.end for token in ids)
    rows, _ = pad(codec.encode_references(references), codec.special)
    assert codec.texts(rows) == references


def test_padding_is_the_codecs_and_changes_nothing(task: Task, codec: Codec):
    sources, references = lines_of(task)
    together = Batch.of(codec, sources, references)
    assert len({len(line) for line in references}) > 1
    assert (together.references[~together.reference_mask] == codec.special.padding).all()
    for row, (source, reference) in enumerate(zip(sources, references, strict=True)):
        alone = Batch.of(codec, [source], [reference])
        kept, reference_kept = together.source_mask[row], together.reference_mask[row]
        assert torch.equal(alone.sources[0], together.sources[row][kept])
        assert torch.equal(alone.references[0], together.references[row][reference_kept])
        assert int(alone.references[0, -1]) in codec.special.end


def test_a_line_is_cut_and_joined(codec: Codec):
    assert codec.cut("  ") == []
    assert codec.join("  ", [], [], raw=True) == ""
    ((piece, counted),) = codec.cut("7+1")
    predicted = piece  # a model that changes nothing
    assert codec.join("7+1", [(piece, counted)], [predicted], raw=False) == "7+1"
    assert all(isinstance(token, str) for token in codec.source_tokens([1, 2]))


def test_a_training_batch_depends_on_its_arguments_alone(build: Callable[[int], Task], task: Task):
    first = task.training_batch(0, 8, 1)
    others = [numbers(task.training_batch(*arguments)) for arguments in ((8, 8, 1), (0, 8, 2), (800, 8, 1))]
    assert numbers(task.training_batch(0, 8, 1)) == numbers(first)
    assert numbers(build(0).training_batch(800, 8, 1)) == others[2], "reached at once, not step by step"
    assert numbers(first) not in others
    assert first.source_mask[:, 0].all()
    assert first.reference_mask[:, 0].all()


def test_batches_have_the_texts_of_their_ids(task: Task, codec: Codec):
    for batch in (task.training_batch(0, 8, 1), *task.evaluation_set("valid").batches):
        assert batch.texts is not None
        firsts = [own[0] for own in batch.texts.references()]
        assert torch.equal(pad(codec.encode_references(firsts), codec.special)[0], batch.references)
        encoded, mask = codec.encode_sources(batch.texts.sources())
        assert torch.equal(encoded[mask], batch.sources[batch.source_mask])
        assert batch.texts.decode is not None


@pytest.mark.parametrize("split", ["train", "valid", "test"])
def test_every_split_is_a_set_in_a_fixed_order(task: Task, codec: Codec, split: str):
    found, again = task.evaluation_set(split), task.evaluation_set(split)
    assert (found.sources, found.all_references) == (again.sources, again.all_references)
    assert len(found) == sum(len(batch) for batch in found.batches) > 0
    written = [text for batch in found.batches for text in codec.texts(batch.references)]
    assert written == [codec.decode(ids) for ids in codec.encode_references(found.references)]
    conditions = task.conditions(split)
    assert all(isinstance(part, str) and "|" not in part for part in conditions)
    assert task.conditions(split) == conditions


def test_samples_for_other_purposes_are_fixed_and_no_larger_than_asked(task: Task):
    sample = task.training_sample(5)
    assert 1 <= len(sample) <= 5
    assert sample.sources == task.training_sample(5).sources
    examples = task.first_examples(3)
    assert len(examples) <= 3
    for source, references in examples:
        assert isinstance(source, str)
        assert references
        assert all(isinstance(text, str) for text in references)


def test_a_fingerprint_is_of_the_data(build: Callable[[int], Task]):
    assert build(0).fingerprint() == build(0).fingerprint() != build(1).fingerprint()


def test_signatures_tell_one_text_from_another(build: Callable[[int], Task]):
    assert build(0).conditions("valid") == build(0).conditions("valid") != build(60).conditions("valid")


def test_a_set_is_cut_into_batches_of_texts_of_features():
    class Features(SumCodec):
        def encode_sources(self, lines: Any) -> tuple[torch.Tensor, torch.Tensor]:
            ids, mask = super().encode_sources(lines)
            return ids[:, :, None] + torch.tensor([0.25, 0.5]), mask

    sources = ["1" * (1 + number % 9) for number in range(600)]
    found = EvaluationSet.of(Features(), sources, sources)
    assert [len(batch) for batch in found.batches] == [256, 256, 88]
    first = found.batches[0]
    assert first.sources.shape == (256, 10, 2)
    assert first.sources[0].tolist()[:3] == [[1.25, 1.5], [11.25, 11.5], [0.0, 0.0]]
    assert first.part(0, 1).sources.shape == (1, 2, 2)


def test_references_beyond_the_first_are_padded_as_the_codec_says():
    batch = SumTask().training_batch(0, 4, 1)
    special = SumCodec.special
    found, lengths = batch.all_references(special.lengths(batch.references, batch.reference_mask), special)
    assert found.shape[:2] == lengths.shape == (4, 2)
    assert (lengths[:, 1] == lengths[:, 0] + 1).all()
    assert set(found.flatten().tolist()) <= {*range(10), 11, 12}


@pytest.mark.parametrize("kind", [Batch, EvaluationSet])
def test_every_source_has_a_reference(kind: type[Batch] | type[EvaluationSet]):
    with pytest.raises(UserError, match="2 sources and 1 references; every source needs its own"):
        kind.of(SumCodec(), ["1+1", "1+2"], ["2"])
    with pytest.raises(UserError, match="example 1 has no reference"):
        kind.of(SumCodec(), ["1+1", "1+2"], ["2", ()])


def test_another_length_of_windows_reads_alike_and_another_vocabulary_does_not():
    assert SpellingCodec(5).reads_like(SpellingCodec(9))
    one, other = (seqcritic.pairs([("a", text), ("b", text)]).codec for text in ("c", "d"))
    assert not one.reads_like(other)
    assert not one.reads_like(SpellingCodec(5))


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        (None, "does not say of which kind it is"),
        ({"length": 3}, "does not say of which kind it is"),
        ({"kind": "speling"}, r"unknown name 'speling' \(did you mean 'spelling'\?\)"),
        ({"kind": "spelling"}, "the stored codec 'spelling' is damaged: KeyError"),
        ({"kind": "text", "source": 3, "target": 4}, "the stored codec 'text' is damaged"),
        ({"kind": "no_such_module:Codec"}, "the codec 'no_such_module:Codec' of the model: no module"),
        ({"kind": "foreign_task:Nothing"}, "has no attribute 'Nothing'"),
        ({"kind": "foreign_task:SumTask"}, "is not a Codec"),
    ],
)
def test_what_is_no_codec_is_told_in_one_line(stored: Any, message: str):
    with pytest.raises(UserError, match=message) as told:
        codec_from_dict(stored)
    assert "\n" not in str(told.value)


def test_a_codec_that_could_not_be_found_again_is_not_stored():
    class Hidden(SumCodec):
        pass

    with pytest.raises(UserError, match="define the class outside of functions"):
        Hidden().to_dict()


def test_a_task_is_four_members():
    assert Task.__abstractmethods__ == {"training_batch", "evaluation_set", "fingerprint"}
    assert "codec" in Task.__annotations__
    assert SumCodec.special != SpecialTokens(end=(0,), padding=0), "the stranger's ids are not ours"
