"""Pretrained models through whole runs: every family, killed and resumed, loaded again, exported."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

import seqcritic
from seqcritic import Callback, HuggingFaceActor, Trainer, UserError, evaluate, export, load_model, pairs
from seqcritic.methods.build import assemble_networks
from seqcritic.models.build import build_critic
from seqcritic.models.hf.lora import add_adapters
from seqcritic.models.hf.settings import LoraSettings
from seqcritic.models.products import bfloat16_products
from seqcritic.settings.io import load_recipe
from seqcritic.training.checkpoint import CheckpointFolder, read_description, read_tensors
from support import outcome, run, slow_but, start, updates_done, wait_until
from tiny_models import make_model
from tiny_texts import (
    FRAMES,
    PAIRS,
    SHORT,
    make_folder,
    make_tokenizer,
    recipe_of,
    template_of,
)

FAMILIES = list(FRAMES)
LINES = ["one two", "five four", "three three"]
LORA = {"rank": 2, "alpha": 4.0, "dropout": 0.1}


class Killed(Exception):
    """What ends a run in the middle."""


class KillAfter(Callback):
    """Breaks a run off after so many updates, without a word to it."""

    def __init__(self, updates: int) -> None:
        self.updates = updates

    def on_update(self, run: Any, measurements: Mapping[str, float]) -> None:
        if run.progress.total_updates == self.updates:
            raise Killed


class Watch(Callback):
    """Remembers what the last update left of the actor, and what was measured."""

    def on_update(self, run: Any, measurements: Mapping[str, float]) -> None:
        actor = run.learner.networks.actor
        self.weights = {name: weight.detach().clone() for name, weight in actor.named_parameters()}
        self.measurements = measurements


def make_actor(family: str, **options: Any) -> HuggingFaceActor:
    return HuggingFaceActor(make_model(family, 0.1), make_tokenizer(family), template=template_of(family), **options)


def compose(actor: HuggingFaceActor, out: Path, method: str, **options: Any) -> Trainer:
    task = pairs(PAIRS, valid=PAIRS[:8], test=PAIRS[:8], codec=actor.codec)
    return Trainer(actor, task, "bleu", method, out=out, settings=SHORT, **options)


def load_folder(family: str, folder: Path) -> HuggingFaceActor:
    """Return the actor of a folder as a user writes it."""
    kind = AutoModelForCausalLM if template_of(family) else AutoModelForSeq2SeqLM
    return HuggingFaceActor(
        kind.from_pretrained(folder), AutoTokenizer.from_pretrained(folder), template=template_of(family)
    )


@pytest.mark.parametrize(
    "method", ["likelihood", "actor-critic+likelihood", "reinforce-critic", "minimum-risk", "mixer"]
)
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_trained_by_every_method(family: str, method: str, tmp_path: Path):
    actor = make_actor(family)
    before = {name: weight.detach().clone() for name, weight in actor.named_parameters()}
    watch = Watch()
    model = compose(actor, tmp_path / "run", method, callbacks=[watch]).train()
    assert len(model.predict(LINES)) == 3
    moved = [name for name, weight in watch.weights.items() if not torch.equal(weight, before[name])]
    assert len(moved) > 0.8 * len(before)
    assert all(math.isfinite(value) for value in watch.measurements.values())


@pytest.mark.parametrize("family", slow_but(["t5", "llama"], FAMILIES))
def test_a_run_is_resumed_to_the_bit(family: str, tmp_path: Path):
    whole = compose(make_actor(family), tmp_path / "whole", "actor-critic+likelihood").train()
    for updates in (3, 8, 13):
        torch.rand(updates)  # what others draw from torch's own generator is no matter
        kill = [KillAfter(updates)]
        broken = compose(make_actor(family), tmp_path / "killed", "actor-critic+likelihood", callbacks=kill)
        with pytest.raises(Killed):
            broken.train()
    resumed = compose(make_actor(family), tmp_path / "killed", "actor-critic+likelihood").train()
    assert outcome(tmp_path / "killed") == outcome(tmp_path / "whole")
    assert resumed.predict(LINES) == whole.predict(LINES)


def test_an_actor_of_a_folder_is_loaded_from_the_run_alone(tmp_path: Path):
    folder = make_folder("t5", tmp_path / "pretrained")
    trained = compose(load_folder("t5", folder), tmp_path / "run", "likelihood").train()
    assert trained.settings.actor.kind == "huggingface"
    again = load_model(tmp_path / "run")
    assert again.predict(LINES) == trained.predict(LINES)
    for ours, theirs in zip(again.actor.parameters(), trained.actor.parameters(), strict=True):
        assert torch.equal(ours, theirs)


def test_an_actor_that_was_loaded_from_nowhere_is_passed_again(tmp_path: Path):
    trained = compose(make_actor("t5"), tmp_path / "run", "likelihood").train()
    with pytest.raises(UserError, match="pass it again from Python"):
        load_model(tmp_path / "run")
    assert load_model(tmp_path / "run", actor=make_actor("t5")).predict(LINES) == trained.predict(LINES)


@pytest.mark.parametrize("family", slow_but(["bart"], ["bart", "llama"]))
def test_a_recipe_is_killed_resumed_evaluated_and_exported_to_plain_transformers(family: str, tmp_path: Path):
    arguments = recipe_of(family, tmp_path, "method.name=actor-critic", "method.likelihood_weight=0.1")
    whole = seqcritic.train(load_recipe(arguments[0], arguments[1:]), tmp_path / "whole")
    if family == "bart":  # processes take long to start; all families are broken off and resumed in this one, above
        command = ("train", arguments[0], "--out", tmp_path / "killed", *arguments[1:])
        process = start(*command)
        wait_until(lambda: updates_done(tmp_path / "killed") >= 7, process)
        process.kill()
        process.communicate()
        last = run(*command)
        assert last.returncode == 0, last.stderr
        assert "resuming from" in last.stderr
        assert outcome(tmp_path / "killed") == outcome(whole)
    assert evaluate(whole).score_name == "BLEU"
    model = load_model(whole)
    exported = export(whole, tmp_path / "exported")
    assert {"model.safetensors", "config.json", "generation_config.json", "tokenizer.json", "README.md"} <= {
        path.name for path in exported.iterdir()
    }
    assert generated(exported, family, LINES) == model.predict(LINES)


def generated(folder: Path, family: str, lines: list[str]) -> list[str]:
    """Return what plain transformers answers greedily, with the folder alone."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    kind = AutoModelForCausalLM if template_of(family) else AutoModelForSeq2SeqLM
    model = kind.from_pretrained(folder).eval()
    answers = []
    for line in lines:
        text = (template_of(family) or "{source}").replace("{source}", line)
        ids = tokenizer(text, return_tensors="pt")["input_ids"]
        limit = 2 * ids.shape[1] + 10 + (family == "bart")  # a first token that is always the same counts there
        found = model.generate(input_ids=ids, max_new_tokens=limit, do_sample=False, num_beams=1)[0]
        found = found[ids.shape[1] :] if template_of(family) else found[1:]  # without the prompt, or the start
        answers.append(tokenizer.decode(found, skip_special_tokens=True).strip())
    return answers


@pytest.mark.parametrize("family", ["t5", "gpt2"])
def test_adapters_are_trained_on_one_base_stored_alone_and_merged(family: str, tmp_path: Path):
    folder = make_folder(family, tmp_path / "pretrained")
    arguments = recipe_of(family, tmp_path, "actor.lora.rank=2", "actor.lora.dropout=0.1", "method.kl_weight=0.1")
    settings = load_recipe(arguments[0], [*arguments[1:], "method.name=actor-critic"])
    whole = seqcritic.train(settings, tmp_path / "run")
    latest = CheckpointFolder(whole / "checkpoints").latest()
    assert latest is not None
    stored = read_tensors(latest, "networks", read_description(latest))
    of_actor = {name for name in stored if name.startswith("actor.")}
    assert all("lora_" in name or "digest" in name for name in of_actor)
    assert any(name.startswith("delayed_actor.") and "lora_B" in name for name in stored)
    model = load_model(whole)
    assert any(float(stored[name].abs().sum()) > 0 for name in of_actor if "lora_B" in name)
    predicted = model.predict(LINES)
    exported = export(whole, tmp_path / "exported")
    names = AutoModelForCausalLM if template_of(family) else AutoModelForSeq2SeqLM
    assert not any("lora" in name for name, _ in names.from_pretrained(exported).named_parameters())
    assert generated(exported, family, LINES) == predicted
    # Another base is not taken for the one that the adapters were trained on.
    changed = make_model(family, 0.1)
    with torch.no_grad():
        next(changed.parameters()).add_(0.01)
    changed.save_pretrained(folder)
    with pytest.raises(UserError, match="was trained on top of other weights"):
        load_model(whole)


def test_adapters_are_resumed_to_the_bit(tmp_path: Path):
    whole = compose(make_actor("t5", lora=LORA), tmp_path / "whole", "actor-critic+likelihood").train()
    kill = [KillAfter(12)]
    broken = compose(make_actor("t5", lora=LORA), tmp_path / "killed", "actor-critic+likelihood", callbacks=kill)
    with pytest.raises(Killed):
        broken.train()
    resumed = compose(make_actor("t5", lora=LORA), tmp_path / "killed", "actor-critic+likelihood").train()
    assert outcome(tmp_path / "killed") == outcome(tmp_path / "whole")
    assert resumed.predict(LINES) == whole.predict(LINES)


@pytest.mark.parametrize("family", ["t5", "bart", "mbart", "pegasus", "marian", "m2m100", "whisper", "gpt2", "llama"])
def test_adapters_have_usual_places(family: str):
    model = make_model(family)
    add_adapters(model, LoraSettings(rank=2), torch.Generator())
    adapted = {name.split(".lora_")[0] for name, each in model.named_parameters() if each.requires_grad}
    assert {name.rpartition(".")[2] for name in adapted} in ({"q", "v"}, {"q_proj", "v_proj"}, {"c_attn"})


def test_copies_share_the_base_and_nothing_else():
    recipe = ["method.name=actor-critic", "method.kl_weight=0.1", "method.gamma_theta=0.5"]
    actor = make_actor("t5", lora=LORA)
    settings = load_recipe("demo", recipe)
    networks = assemble_networks(settings.method, actor, build_critic(settings, actor, torch.Generator()))
    ours = dict(actor.named_parameters())
    assert 0 < sum(weight.numel() for weight in ours.values() if weight.requires_grad) < 2000
    for copy in (networks.delayed_actor, networks.anchor):
        assert copy is not None
        for name, weight in copy.named_parameters():
            assert (weight is ours[name]) == ("lora_" not in name)
    actors = (actor, networks.delayed_actor, networks.anchor)
    shared = {weight.data_ptr() for network in actors if network is not None for weight in network.parameters()}
    adapters = sum("lora_" in name for name in ours)
    assert len(shared) == len(ours) + 2 * adapters, "two more networks are two more sets of adapters"


def test_a_frozen_encoder_stays_and_a_tied_embedding_does_not(tmp_path: Path):
    actor = make_actor("bart", freeze=["encoder"])
    before = {name: weight.detach().clone() for name, weight in actor.named_parameters()}
    watch = Watch()
    compose(actor, tmp_path / "run", "likelihood", callbacks=[watch]).train()
    for name, weight in actor.named_parameters():
        assert weight.requires_grad == (".encoder." not in name)
        assert torch.equal(before[name], watch.weights[name]) == (not weight.requires_grad)
    with pytest.raises(UserError, match=r"actor.freeze: a decoder-only model has no encoder"):
        make_actor("gpt2", freeze=["encoder"])


def test_a_prompted_critic_is_found_again_beside_the_trained_actor(tmp_path: Path):
    prompted = ["method.name=ppo", "critic.kind=prompted", "critic.residual_on=none", "actor.lora.rank=2"]
    arguments = recipe_of("gpt2", tmp_path, *prompted)
    folder = seqcritic.train(load_recipe(arguments[0], arguments[1:]), tmp_path / "run")
    table = seqcritic.inspect(folder, "one two", "twos ones")
    assert len(table.reference) == 3
    assert all(math.isfinite(step.value) for step in table.steps)


@pytest.mark.parametrize("family", ["bart", "t5"])
def test_a_frozen_encoder_of_texts_is_kept_and_says_the_same(family: str, tmp_path: Path, monkeypatch: Any):
    monkeypatch.setenv("SEQCRITIC_CACHE", str(tmp_path))
    plain, cached = (
        make_actor(family, freeze=["encoder", "embeddings"], encoder_cache=kept) for kept in (None, "float32")
    )
    assert plain.codec is not None
    tokens = torch.tensor([[5, 6, 7]] * 3)
    for lines in (["one two three", "two", "four five"], ["two", "six", "six"]):  # padded otherwise the second time
        sources = plain.codec.encode_sources(lines)
        expected, found = (actor.score(actor.encode(*sources), tokens)[0].detach() for actor in (plain, cached))
        assert torch.allclose(found, expected, atol=1e-5, rtol=1e-6)
    assert len(list(tmp_path.glob("encoded-*/*/*.npy"))) == 4, "a source is read once"
    dropping = cached.score(cached.encode(*sources, cached.draw_masks(3, torch.Generator())), tokens)[0]
    assert not torch.allclose(dropping, expected), "the decoder drops units as before"
    with pytest.raises(UserError, match=r"actor.encoder_cache: .* is trained.*actor.freeze=encoder,embeddings"):
        make_actor(family, freeze=["encoder"], encoder_cache="float32")


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("family", FAMILIES)
def test_layers_computed_again_give_the_same_gradient(family: str, dropout: float, monkeypatch: pytest.MonkeyPatch):
    gradients = []
    for again in (True, False):
        actor = HuggingFaceActor(
            make_model(family, dropout),
            make_tokenizer(family),
            template=template_of(family),
            gradient_checkpointing=again or dropout > 0,
        )
        if not again and dropout > 0:  # the same pass, and the same units dropped, but nothing computed again
            monkeypatch.setattr("seqcritic.models.hf.layers.checkpoint", run_once)
        assert actor.codec is not None
        memory = actor.encode(*actor.codec.encode_sources(LINES), actor.draw_masks(3, torch.Generator().manual_seed(1)))
        logits, _ = actor.score(memory, torch.tensor([[5, 6, 7], [8, 9, 1], [7, 1, 1]]))
        logits.clamp(min=-100).square().sum().backward()
        gradients.append([weight.grad for weight in actor.parameters() if weight.grad is not None])
    assert len(gradients[0]) == len(gradients[1]) > 10
    largest = max(float(gradient.abs().max()) for gradient in gradients[1])
    for ours, theirs in zip(*gradients, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-3, atol=1e-5 * largest)


def run_once(function: Any, *arguments: Any, use_reentrant: bool, **named: Any) -> Any:
    return function(*arguments, **named)


def test_layers_are_really_computed_again(monkeypatch: pytest.MonkeyPatch):
    calls = []
    actor = make_actor("t5", gradient_checkpointing=True)
    forward = torch.nn.Linear.forward
    monkeypatch.setattr(torch.nn.Linear, "forward", lambda self, x: calls.append(1) or forward(self, x))
    assert actor.codec is not None
    logits, _ = actor.score(actor.encode(*actor.codec.encode_sources(LINES)), torch.tensor([[5, 6]] * 3))
    before = len(calls)
    logits.sum().backward()
    assert len(calls) > before + 10
    with pytest.raises(UserError, match=r"actor.gradient_checkpointing: this method learns from single steps"):
        actor.step(None, None, torch.tensor([5]))


@pytest.mark.parametrize("family", ["marian", "gpt2"])
def test_narrow_products_give_the_gradient_also_of_layers_computed_again(family: str):
    def gradient(narrow: bool, again: bool) -> Tensor:
        torch.manual_seed(1)
        actor = make_actor(family, gradient_checkpointing=again)
        assert actor.codec is not None
        with bfloat16_products() if narrow else nullcontext():
            logits, _ = actor.score(actor.encode(*actor.codec.encode_sources(LINES)), torch.tensor([[5, 6, 7]] * 3))
        torch.log_softmax(logits, dim=2)[:, :, 5].sum().backward()
        return torch.cat([weight.grad.flatten() for weight in actor.parameters() if weight.grad is not None])

    exact, narrow = gradient(narrow=False, again=False), gradient(narrow=True, again=False)
    assert 1e-4 < (narrow - exact).norm() / exact.norm() < 0.01
    torch.testing.assert_close(gradient(narrow=True, again=True), narrow, rtol=1e-3, atol=1e-5)


def test_narrow_products_of_t5_are_as_near_as_its_attention_is_flat():
    """T5 does not divide what queries and keys say of each other: where that is large, rounding decides who is seen."""

    def error(sharp: bool) -> tuple[float, float]:
        found = []
        for narrow in (False, True):
            actor = make_actor("t5")
            assert actor.codec is not None
            with torch.no_grad():  # the tiny models' weights are eight times their own, and their attention 64 times
                for name, weight in actor.model.named_parameters():
                    kept = sharp and name.endswith((".q.weight", ".k.weight"))
                    weight.div_(1 if kept or weight.dim() == 1 else 8)
            with bfloat16_products() if narrow else nullcontext():
                logits, _ = actor.score(actor.encode(*actor.codec.encode_sources(LINES)), torch.tensor([[5, 6, 7]] * 3))
            torch.log_softmax(logits, dim=2)[:, :, 5].sum().backward()
            found.append(torch.cat([each.grad.flatten() for each in actor.parameters() if each.grad is not None]))
        exact, narrow_one = found
        away = float((narrow_one - exact).norm() / exact.norm())
        return away, float(torch.cosine_similarity(exact, narrow_one, dim=0))

    (flat, cosine), (sharp, _) = error(sharp=False), error(sharp=True)
    assert 1e-4 < flat < 0.015
    assert cosine > 0.9999
    assert sharp > 2 * flat
