"""The tokenizer of a pretrained model as a codec: its conventions, its round trip, its refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch

from seqcritic import HuggingFaceActor, SpecialTokens, UserError
from seqcritic.contracts.codec import codec_from_dict
from seqcritic.data.codecs.huggingface import HuggingFaceCodec, TextForm
from tiny_models import END, NUM_TOKENS, PADDING, START, make_model
from tiny_texts import FRAMES, make_byte_tokenizer, make_tokenizer, template_of

FAMILIES = list(FRAMES)
LINES = ["one two", "three four five", ""]


def make_actor(family: str, **options: Any) -> HuggingFaceActor:
    return HuggingFaceActor(make_model(family), make_tokenizer(family), **{"template": template_of(family)} | options)


def codec_of(family: str, **options: Any) -> HuggingFaceCodec:
    codec = make_actor(family, **options).codec
    assert isinstance(codec, HuggingFaceCodec)
    return codec


@pytest.mark.parametrize("family", FAMILIES)
def test_sources_are_as_the_model_reads_them(family: str):
    codec = codec_of(family)
    ids, mask = codec.encode_sources(LINES)
    own = make_tokenizer(family)
    texts = [f"{line} =" for line in LINES] if template_of(family) else LINES
    for row, kept, text in zip(ids, mask, texts, strict=True):
        assert row[kept].tolist() == own(text)["input_ids"]
        assert bool((row[~kept] == PADDING).all())
        assert kept.tolist() == sorted(kept.tolist(), reverse=True), "padding stands on the right"


@pytest.mark.parametrize("family", FAMILIES)
def test_references_are_decoded_as_they_were(family: str):
    codec = codec_of(family)
    encoded = codec.encode_references(LINES)
    assert encoded == [[5, 6], [7, 8, 9], []]
    assert [codec.decode(row) for row in encoded] == LINES
    assert codec.decode([3, 5, 6, END, 7]) == "one two", "special tokens are not shown, nor what stands after the end"
    assert codec.tokens([5, 6, END, 7]) == ["one", "two"]
    assert codec.texts(torch.tensor([[5, END, PADDING], [6, 7, 8]])) == ["one", "two three four"]


@pytest.mark.parametrize("family", FAMILIES)
def test_it_goes_through_json_without_the_original_folder(family: str):
    codec = codec_of(family, source_prefix="do it")
    stored = json.loads(json.dumps(codec.to_dict()))
    again = codec_from_dict(stored)
    assert again.to_dict() == codec.to_dict()
    assert again.reads_like(codec)
    assert again.special == codec.special
    for ours, theirs in zip(again.encode_sources(LINES), codec.encode_sources(LINES), strict=True):
        assert torch.equal(ours, theirs)
    assert not again.reads_like(codec_of(family))


def test_what_always_stands_first_is_given_and_not_learnt():
    actor = make_actor("bart")
    assert actor.prefix == [START, 3], "BART's texts begin with <s>"
    assert make_actor("t5").prefix == [START]
    assert make_actor("gpt2").prefix == []


def test_an_answer_is_tokenised_as_it_follows_the_prompt():
    tokenizer = make_byte_tokenizer()
    special = SpecialTokens(end=(0,), padding=0)
    codec = HuggingFaceCodec(tokenizer, special, 300, False, TextForm("{source} ="))
    whole = tokenizer("the cat = the mat")["input_ids"]
    (prompt, mask), [answer] = codec.encode_sources(["the cat"]), codec.encode_references(["the mat"])
    assert prompt[0].tolist() + answer == whole
    assert bool(mask.all())
    assert codec.decode(answer) == "the mat"
    assert "".join(codec.tokens(codec.encode_references(["über"])[0])) == "▁über"
    assert codec.score_options().unknown is None, "a tokenizer of bytes knows every text"
    on_lines = HuggingFaceCodec(tokenizer, special, 300, False, TextForm("{source}\n"))
    assert on_lines.encode_references(["the mat"]) == [tokenizer("the mat")["input_ids"]]


def test_a_prefix_of_text_stands_before_every_source():
    ids, _ = codec_of("t5", source_prefix="do it : ").encode_sources(["one"])
    assert codec_of("t5").source_tokens(ids[0].tolist()) == ["do", "it", ":", "one", "</s>"]


@pytest.mark.parametrize(
    ("family", "options", "message"),
    [
        ("gpt2", {"template": None}, "actor.template: a decoder-only model reads a prompt"),
        ("gpt2", {"template": "no source"}, "actor.template"),
        ("t5", {"target_language": "deu_Latn"}, "actor.target_language: the model's tokenizer knows no languages"),
        ("t5", {"source_language": "deu_Latn"}, "actor.source_language"),
    ],
)
def test_what_does_not_fit_is_told_in_one_line(family: str, options: dict[str, Any], message: str):
    with pytest.raises(UserError, match=message) as caught:
        make_actor(family, **options)
    assert "\n" not in str(caught.value)


def test_a_tokenizer_that_is_not_the_model_s_is_refused():
    with pytest.raises(UserError, match=r"does not belong to the model: it has ids up to \d+, the model 24 tokens"):
        HuggingFaceActor(make_model("t5"), make_byte_tokenizer())
    with pytest.raises(UserError, match=r"does not belong to the model: it ends a text with 2, the model with 1"):
        HuggingFaceActor(make_model("t5"), make_tokenizer("t5", eos_token="<start>"))


@pytest.mark.parametrize("family", ["bart", "gpt2"])
def test_what_is_longer_than_the_model_s_positions_is_refused(family: str):
    actor = make_actor(family)
    assert actor.codec is not None
    long = actor.codec.encode_sources(["one " * 70])
    with pytest.raises(UserError, match=r"a source of 7\d tokens.*longer than the 64 positions"):
        actor.encode(*long)
    fitting = actor.codec.encode_sources(["one " * 30])
    memory = actor.encode(*fitting)
    with pytest.raises(UserError, match=r"an answer of .* longer than the 64 positions"):
        actor.score(memory, torch.full((1, 70), 5))
    most = int(actor.limits.of(fitting[1]))
    assert most == (62 if family == "bart" else 64 - int(fitting[1].sum())), "a search stops where positions end"
    actor.score(memory, torch.full((1, most), 5))


def test_languages_are_the_first_token():
    transformers = pytest.importorskip("transformers")
    pieces = ["▁one", "▁two", "▁three", "▁a"]
    vocabulary = {token: number for number, token in enumerate(["<s>", "<pad>", "</s>", "<unk>", *pieces])}
    tokenizer = transformers.NllbTokenizer(vocab=vocabulary, merges=[])
    german, english = (tokenizer.convert_tokens_to_ids(name) for name in ("deu_Latn", "eng_Latn"))
    model = transformers.M2M100ForConditionalGeneration(
        transformers.M2M100Config(
            vocab_size=len(tokenizer), d_model=8, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=8, decoder_ffn_dim=8, eos_token_id=2, pad_token_id=1,
            decoder_start_token_id=2,
        )
    )  # fmt: skip
    with pytest.raises(UserError, match=r"actor.target_language: the model knows several languages"):
        HuggingFaceActor(model, tokenizer)
    with pytest.raises(UserError, match=r"actor.target_language: .* knows no 'klingon'"):
        HuggingFaceActor(model, tokenizer, target_language="klingon")
    actor = HuggingFaceActor(model, tokenizer, source_language="eng_Latn", target_language="deu_Latn")
    assert actor.prefix == [2, german]
    assert actor.codec is not None
    assert actor.codec.encode_sources(["one two"])[0][0].tolist()[0] == english
    assert german not in actor.codec.encode_references(["one two"])[0]
    again = codec_from_dict(json.loads(json.dumps(actor.codec.to_dict())))
    assert torch.equal(again.encode_sources(["one"])[0], actor.codec.encode_sources(["one"])[0])
    assert tokenizer.src_lang == "eng_Latn"
    assert tokenizer.tgt_lang is None, "the user's own tokenizer stays as it is"


def test_the_number_of_tokens_is_the_model_s():
    assert codec_of("t5").num_target_tokens == NUM_TOKENS
