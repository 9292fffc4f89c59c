"""Critics beside pretrained models: on subword ids with few columns, and heads on a frozen copy with the reference."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from seqcritic import Callback, HuggingFaceActor, Trainer, UserError, pairs
from seqcritic.contracts.batch import Batch
from seqcritic.methods.columns import choose_columns
from seqcritic.methods.lookahead import all_values
from seqcritic.models.gru.actors_vectors import ActorsVectors
from seqcritic.models.gru.critic import RecurrentCritic
from seqcritic.models.gru.settings import GruCriticSettings
from seqcritic.models.hf.prompted_critic import PromptedCritic, PromptedCriticSettings
from seqcritic.scores.bleu import BleuScore
from seqcritic.settings.io import load_recipe
from support import outcome
from tiny_models import END, NUM_TOKENS, make_model
from tiny_texts import PAIRS, SHORT, make_tokenizer, template_of

TOKENS = torch.tensor([[5, 6, 12, END], [11, 12, END, 0]])
MASK = torch.tensor([[True] * 4, [True, True, True, False]])


def make_actor(family: str, **options: Any) -> HuggingFaceActor:
    return HuggingFaceActor(make_model(family, 0.1), make_tokenizer(family), template=template_of(family), **options)


def make_batch(actor: HuggingFaceActor) -> Batch:
    assert actor.codec is not None
    return Batch.of(actor.codec, [source for source, _ in PAIRS[1:3]], [target for _, target in PAIRS[1:3]])


def make_critic(actor: HuggingFaceActor, **settings: Any) -> PromptedCritic:
    critic = PromptedCritic(actor, PromptedCriticSettings(hidden=4, **settings), torch.Generator().manual_seed(1))
    torch.nn.init.normal_(critic.outer.weight, generator=torch.Generator().manual_seed(2))
    return critic


def values(critic: PromptedCritic, batch: Batch, tokens: torch.Tensor = TOKENS) -> torch.Tensor:
    with torch.no_grad():
        return critic.values(critic.read(batch), tokens, torch.zeros(2, 4, 1))[:, :, 0]


@pytest.mark.parametrize("reads_reference", [True, False])
def test_the_head_reads_what_the_plain_model_says_of_the_whole_prompt(reads_reference: bool):
    actor = make_actor("gpt2")
    critic, batch = (
        make_critic(actor, reads_reference=reads_reference, template="{reference} : {source}"),
        make_batch(actor),
    )
    found = values(critic, batch)
    plain, tokenizer = make_model("gpt2", 0.1).eval(), make_tokenizer("gpt2")
    for row, (source, target) in enumerate(PAIRS[1:3]):
        prompt = f"{target} : {source} =" if reads_reference else f"{source} ="
        for step in range(int(MASK[row].sum())):
            ids = torch.tensor([tokenizer(prompt)["input_ids"] + TOKENS[row, :step].tolist()])
            with torch.no_grad():
                state = plain.transformer(input_ids=ids).last_hidden_state[0, -1]
                seen = torch.nn.functional.layer_norm(state, state.shape)
                expected = critic.outer(torch.tanh(critic.inner(seen)))
            assert float(found[row, step]) == pytest.approx(float(expected), abs=1e-5)


def test_the_reference_is_all_that_the_two_heads_differ_in():
    actor = make_actor("gpt2")
    batch = make_batch(actor)
    other = Batch.of(actor.codec, batch.texts.sources(), ["six", "six six"])
    for reads_reference in (True, False):
        critic = make_critic(actor, reads_reference=reads_reference)
        assert torch.equal(values(critic, batch), values(critic, other)) == (not reads_reference)
        changed = TOKENS.clone()
        changed[:, 2] = 13
        assert torch.equal(values(critic, batch)[:, :3], values(critic, batch, changed)[:, :3])


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_the_copy_is_frozen_shared_and_no_weight_of_the_critic(family: str):
    actor = make_actor(family, lora={"rank": 2})
    critic = make_critic(actor)
    assert {name for name, _ in critic.named_parameters()} == {
        "inner.weight",
        "inner.bias",
        "outer.weight",
        "outer.bias",
    }
    copy = critic._frozen.network
    base = {weight.data_ptr() for name, weight in actor.named_parameters() if "lora_" not in name}
    assert {weight.data_ptr() for name, weight in copy.named_parameters() if "lora_" not in name} == base
    before = values(critic, make_batch(actor))
    with torch.no_grad():
        for weight in actor.parameters():
            if weight.requires_grad:
                weight.add_(0.1)
    assert torch.equal(values(critic, make_batch(actor)), before), "the actor is trained, the copy is not"
    critic.base[0] += 1
    with pytest.raises(UserError, match="its head was trained on another model"):
        critic.read(make_batch(actor))


class Stop(Exception):
    """What ends a run in the middle."""


class StopOnce(Callback):
    def on_update(self, run: Any, measurements: Mapping[str, float]) -> None:
        if run.progress.total_updates == 12:
            raise Stop


@pytest.mark.parametrize("method", ["ppo", "reinforce-critic"])
def test_it_trains_and_resumes_to_the_bit(method: str, tmp_path: Path):
    def compose(out: str, *callbacks: Callback) -> Trainer:
        actor = make_actor("gpt2")
        task = pairs(PAIRS, valid=PAIRS[:8], test=PAIRS[:8], codec=actor.codec)
        settings = SHORT | {"critic": {"kind": "prompted", "hidden": 8}}
        return Trainer(actor, task, "bleu", method, out=tmp_path / out, settings=settings, callbacks=callbacks)

    compose("whole").train()
    with pytest.raises(Stop):
        compose("cut", StopOnce()).train()
    compose("cut").train()
    assert outcome(tmp_path / "cut") == outcome(tmp_path / "whole")


def test_few_columns_on_the_actor_s_own_vectors_are_the_full_critic_where_they_are_all():
    actor = make_actor("marian")
    batch, score = make_batch(actor), BleuScore()
    sizes = {"embedding": 6, "hidden": 6, "attention": 6, "embeddings": "actor", "residual_on": "lookahead"}
    made = {}
    for columns in (None, NUM_TOKENS, 8):
        settings = GruCriticSettings.model_validate(sizes | {"columns": columns, "reads_actor_states": False})
        generator = torch.Generator().manual_seed(3)
        critic = RecurrentCritic(settings, NUM_TOKENS, actor.state_size, generator, ActorsVectors(actor))
        assert not any(NUM_TOKENS in weight.shape and weight.dim() > 1 for weight in critic.parameters())
        with torch.no_grad():
            memory = actor.encode(batch.sources, batch.source_mask)
            logits, states = actor.score(memory, TOKENS)
            chosen = choose_columns(critic, actor.special, batch, torch.softmax(logits[:, 0], 1))
            made[columns] = all_values(critic, score, actor.special, batch, TOKENS, MASK, states, chosen)
            kept = None if chosen is None else chosen.ids
    assert torch.allclose(made[NUM_TOKENS], made[None], atol=1e-6)
    own = torch.zeros(NUM_TOKENS, dtype=torch.bool)
    own[kept] = True
    assert torch.allclose(made[8][MASK][:, own], made[None][MASK][:, own], atol=1e-6), "columns have their own values"
    rest = made[8][MASK][:, ~own]
    assert torch.equal(rest, rest[:, :1].expand_as(rest)), "and all others one"
    assert set(batch.references[batch.reference_mask].tolist()) <= set(kept.tolist())


def test_what_cannot_be_prompted_is_told():
    with pytest.raises(UserError, match=r"critic.kind=prompted: HuggingFaceActor cannot be prompted with texts"):
        PromptedCritic(HuggingFaceActor(make_model("gpt2")))
    actor = make_actor("gpt2")
    batch = make_batch(actor)
    with pytest.raises(UserError, match="the batch has tokens alone"):
        make_critic(actor).read(Batch(batch.sources, batch.source_mask, batch.references, batch.reference_mask))
    ppo = ["method.name=ppo", "critic.kind=prompted", "critic.residual_on=none", "actor.pretrained=none"]
    assert load_recipe("tatoeba-de-en", ppo).critic.kind == "prompted"
    for override, message in (
        ('critic.template="{source}"', r"critic.template: it has no \{reference\}"),
        ("critic.residual_on=lookahead", "critic.kind: prompted values states"),
        ("method.name=actor-critic", "critic.kind: prompted"),
    ):
        with pytest.raises(UserError, match=message):
            load_recipe("tatoeba-de-en", [*ppo, override])
