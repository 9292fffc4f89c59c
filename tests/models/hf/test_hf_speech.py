"""Whisper from sound files to transcripts: features, whole runs by the command line, a cached encoder, export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers

pytest.importorskip("soundfile")

import seqcritic
from seqcritic import HuggingFaceActor, UserError, evaluate, export, load_model
from seqcritic.contracts.codec import codec_from_dict
from seqcritic.data.sounds import resample
from support import outcome, run
from tiny_speech import RATE, SAID, make_speech_folder, sound_of, write_sounds

SHORT = [
    "phases.actor.updates=5", "phases.critic.updates=2", "phases.train.updates=3", "training.batch=4",
    "training.evaluate_every=5", "training.checkpoint_seconds=0", "data.maximum_length=20", "data.valid_size=4",
    "critic.embedding=8", "critic.hidden=8", "critic.attention=8", "score.name=character-error-rate", "threads=1",
]  # fmt: skip


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEQCRITIC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def load_folder(folder: Path, **options: Any) -> HuggingFaceActor:
    model = transformers.WhisperForConditionalGeneration.from_pretrained(folder)
    return HuggingFaceActor(model, transformers.WhisperProcessor.from_pretrained(folder), **options)


def transcribed(folder: Path, words: list[str]) -> list[str]:
    """Return what plain transformers hears, with the folder alone."""
    model = transformers.WhisperForConditionalGeneration.from_pretrained(folder).eval()
    processor = transformers.WhisperProcessor.from_pretrained(folder)
    heard = processor([sound_of(said) for said in words], sampling_rate=RATE, return_tensors="pt")
    found = model.generate(heard["input_features"], do_sample=False, num_beams=1)
    return [text.strip() for text in processor.batch_decode(found, skip_special_tokens=True)]


def test_a_sound_becomes_what_the_model_s_own_extractor_makes_of_it(tmp_path: Path, cache: Path):
    actor = load_folder(make_speech_folder(tmp_path / "pretrained"))
    folder = write_sounds(tmp_path / "sounds", ".flac")
    paths = [str(folder / f"{number}.flac") for number in range(3)]
    assert actor.codec is not None
    features, mask = actor.codec.encode_sources(paths)
    extractor = transformers.WhisperProcessor.from_pretrained(tmp_path / "pretrained").feature_extractor
    expected = extractor([sound_of(said) for said in SAID[:3]], sampling_rate=RATE, return_tensors="pt")
    assert torch.allclose(features, expected["input_features"].transpose(1, 2), atol=2e-3), "flac has 16 bits"
    assert bool(mask.all())
    kept = list(cache.glob("features-*/*/*.npy"))
    assert len(kept) == 3
    again = codec_from_dict(actor.codec.to_dict())
    assert again.reads_like(actor.codec)
    assert torch.equal(again.encode_sources(paths)[0], features)
    # Of a damaged file nothing is taken; it is made again.
    content = bytearray(kept[0].read_bytes())
    content[500] ^= 255
    kept[0].write_bytes(content)
    assert torch.equal(codec_from_dict(actor.codec.to_dict()).encode_sources(paths)[0], features)
    assert kept[0].read_bytes() != content
    assert actor.prefix == actor.codec.tokenizer.prefix_tokens
    for said in SAID:
        assert actor.codec.decode(actor.codec.encode_references([said])[0]) == said


@pytest.mark.parametrize(("own", "wanted"), [(22_050, 16_000), (8_000, 16_000), (44_100, 16_000)])
def test_another_rate_is_the_same_wave(own: int, wanted: int):
    at = {rate: np.sin(2 * np.pi * 700 * np.arange(rate) / rate).astype(np.float32) for rate in (own, wanted)}
    found = resample(at[own], own, wanted)
    assert found.shape == at[wanted].shape
    inner = slice(wanted // 100, -wanted // 100)
    assert np.abs(found - at[wanted])[inner].max() < 2e-3
    if own > wanted:  # what would be mirrored into the band is left out
        above = np.sin(2 * np.pi * 0.49 * own * np.arange(own) / own).astype(np.float32)
        assert np.abs(resample(above, own, wanted))[inner].max() < 2e-2


def test_whisper_is_trained_from_the_command_line_heard_again_and_exported(tmp_path: Path):
    folder, sounds = make_speech_folder(tmp_path / "pretrained"), write_sounds(tmp_path / "sounds")
    table = [f"data.{split}.pairs={sounds / 'table.csv'}" for split in ("valid", "test")]
    named = [f"actor.pretrained={folder}", "actor.lora.rank=2", "actor.freeze=encoder", "actor.encoder_cache=float16"]
    given = [f"data.train.pairs={sounds}", *table, "data.columns.source=file", "data.columns.target=text"]
    arguments = ["tatoeba-de-en", *SHORT, *named, *given, "method.name=actor-critic", "method.likelihood_weight=0.1"]
    trained = run("train", arguments[0], "--out", tmp_path / "run", *arguments[1:])
    assert trained.returncode == 0, trained.stderr
    assert evaluate(tmp_path / "run", split="test").score_name == "CER"
    paths = [str(sounds / f"{number}.wav") for number in range(len(SAID))]
    predicted = load_model(tmp_path / "run").predict(paths)
    exported = export(tmp_path / "run", tmp_path / "exported")
    assert transcribed(exported, SAID) == predicted
    assert (exported / "preprocessor_config.json").is_file() or (exported / "processor_config.json").is_file()
    assert transcribed(folder, SAID) != predicted, "something was learnt"
    table = seqcritic.inspect(tmp_path / "run", paths[0], SAID[0])
    assert (table.source, len(table.reference) > 1) == (("",), True)
    # The same with an empty cache: what is kept changes nothing but the time.
    again = seqcritic.train(seqcritic.load_recipe(arguments[0], arguments[1:]), tmp_path / "again")
    assert outcome(again) == outcome(tmp_path / "run")


def test_a_cached_encoder_says_the_same(tmp_path: Path, cache: Path):
    folder, sounds = make_speech_folder(tmp_path / "pretrained"), write_sounds(tmp_path / "sounds")
    plain = load_folder(folder, freeze=["encoder"])
    assert plain.codec is not None
    heard = plain.codec.encode_sources([str(sounds / f"{number}.wav") for number in range(3)])
    tokens = torch.tensor([[5, 9, 7]] * 3)
    expected = plain.score(plain.encode(*heard), tokens)[0].detach()
    for kept_as, tolerance in (("float32", 0.0), ("float16", 2e-3)):
        actor = load_folder(folder, freeze=["encoder"], encoder_cache=kept_as)
        for _ in range(2):  # made, then read
            found = actor.score(actor.encode(*heard), tokens)[0].detach()
            assert float((found - expected).abs().max()) <= tolerance
    assert len(list(cache.glob("encoded-*/*/*.npy"))) == 6
    with pytest.raises(UserError, match=r"actor.encoder_cache: .* is trained.*actor.freeze=encoder"):
        load_folder(folder, encoder_cache="float16")


def test_faults_of_sounds_are_told_in_one_line(tmp_path: Path, refusal: Any, monkeypatch: pytest.MonkeyPatch):
    folder, sounds = make_speech_folder(tmp_path / "pretrained"), write_sounds(tmp_path / "sounds")
    actor = load_folder(folder)
    assert actor.codec is not None
    import soundfile

    soundfile.write(tmp_path / "long.wav", np.zeros(3 * RATE, np.float32), RATE)
    (tmp_path / "text.wav").write_text("no sound", encoding="utf-8")
    (tmp_path / "empty.csv").write_text("source,target\nnone.wav,low\n", encoding="utf-8")
    for name, message in (("long.wav", "3.0 seconds are longer than the 1"), ("text.wav", "not a sound that can be")):
        with pytest.raises(UserError, match=message):
            actor.codec.encode_sources([str(tmp_path / name)])
    with pytest.raises(UserError, match="needs its feature extractor"):
        HuggingFaceActor(actor.model, actor.codec.tokenizer)
    (tmp_path / "heard_score.py").write_text(
        "def near(prediction, reference, source):\n    return 1.0\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    splits = [f"data.{split}.pairs={sounds}" for split in ("train", "valid", "test")]
    scored = ["score.name=heard_score:near", "critic.residual_on=none", f"actor.pretrained={folder}", *splits]
    told = refusal("train", "tatoeba-de-en", "--out", str(tmp_path / "run"), *scored)
    assert "score.name: the function reads sources, and these are no texts" in told
    (sounds / "3.txt").unlink()
    for pairs, message in (
        (sounds, "3.wav has no 3.txt beside it"),
        (tmp_path / "empty.csv", f"empty.csv:2: no sound {tmp_path}/none.wav"),
    ):
        splits = [f"data.{split}.pairs={pairs}" for split in ("train", "valid", "test")]
        told = refusal("train", "tatoeba-de-en", "--out", str(tmp_path / "run"), f"actor.pretrained={folder}", *splits)
        assert message in told
