"""The model that the text study begins with: made anew from the same text it is the same, and the actor takes it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

pytest.importorskip("transformers")

import new_marian
from seqcritic import HuggingFaceActor

LINES = ["ein Hund läuft", "a dog runs", "zwei Hunde laufen", "two dogs run"] * 3


def test_every_text_comes_back_and_ends():
    tokenizer = new_marian.learn_tokenizer(LINES, 280)
    for text in (*LINES[:2], "Unseen: 猫 — ok"):
        ids = tokenizer(text).input_ids
        assert ids[-1] == tokenizer.eos_token_id
        assert tokenizer.unk_token_id not in ids
        assert tokenizer.decode(ids, skip_special_tokens=True).strip() == text
    assert learn_ids(280) == learn_ids(280)


def learn_ids(size: int) -> dict[str, int]:
    return new_marian.learn_tokenizer(LINES, size).get_vocab()


def test_the_folder_is_an_actor(tmp_path: Path):
    tokenizer = new_marian.learn_tokenizer(LINES, 280)
    models = [new_marian.make_model(tokenizer, 16, 1, 0.0) for _ in range(2)]
    for one, other in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert torch.equal(one, other)
    assert models[0].get_output_embeddings().weight is models[0].get_input_embeddings().weight
    actor = HuggingFaceActor(models[0].eval(), tokenizer)
    assert actor.codec is not None
    memory = actor.encode(*actor.codec.encode_sources(LINES[:2]))
    tokens = torch.tensor([[5, 6], [7, 0]])
    logits, _ = actor.score(memory, tokens)
    torch.testing.assert_close(logits[:, 0], actor.logits(actor.start(memory)), atol=1e-5, rtol=0)
    assert (logits.argmax(dim=2) != tokenizer.pad_token_id).all()
