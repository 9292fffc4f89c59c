"""Tiny tokenizers, folders of pretrained models and pairs of texts, made here: no hub is asked."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerFast

from tiny_models import END, NUM_TOKENS, make_model

SPECIAL = ["<pad>", "</s>", "<start>", "<s>", "<unk>"]
WORDS = ["one", "two", "three", "four", "five", "six", "ones", "twos", "threes", "fours", "fives", "sixes"]
MORE = ["=", ":", "a", "do", "it", "now", "so"]
FRAMES = {"t5": "$A </s>", "marian": "$A </s>", "bart": "<s> $A </s>", "gpt2": "$A", "llama": "<s> $A"}
TEMPLATE = "{source} ="
PAIRS = [(f"{one} {two}", f"{two}s {one}s") for one, two in product(WORDS[:5], repeat=2)]
PHASES = {phase: {"updates": 5, "learning_rate": 0.01} for phase in ("actor", "critic", "train")}
SHORT = {
    "phases": PHASES,
    "training": {"batch": 8, "evaluate_every": 5, "log_every": 2, "checkpoint_seconds": 0},
    "critic": {"embedding": 8, "hidden": 8, "attention": 8},
}


def make_tokenizer(family: str, **options: Any) -> Any:
    """Return a tokenizer of whole words with the ids of the tiny models, framed as the family frames texts."""
    words = [*SPECIAL, *WORDS, *MORE]
    assert len(words) == NUM_TOKENS
    tokenizer = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.post_processor = processors.TemplateProcessing(
        single=FRAMES[family], special_tokens=[("</s>", END), ("<s>", 3)]
    )
    names = {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names | options)


def make_byte_tokenizer() -> Any:
    """Return a tokenizer of bytes that begins words with the space before them, as GPT-2's does."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<|end|>"], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(["the cat is über = the mat", "Übung: the cat"] * 9, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>", unk_token="<|end|>")


def make_folder(family: str, folder: Path, dropout: float = 0.1) -> Path:
    """Write a pretrained model with its tokenizer."""
    make_model(family, dropout).save_pretrained(folder)
    make_tokenizer(family).save_pretrained(folder)
    return folder


def template_of(family: str) -> str | None:
    return TEMPLATE if family in ("gpt2", "llama") else None


def write_pairs(folder: Path) -> list[str]:
    """Write the pairs to files; return the overrides of a recipe that name them."""
    overrides = []
    for split in ("train", "valid", "test"):
        path = folder / f"{split}.tsv"
        path.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS), encoding="utf-8")
        overrides.append(f"data.{split}.pairs={path}")
    return overrides


def recipe_of(family: str, tmp_path: Path, *more: str) -> list[str]:
    """Return a recipe for a recurrent actor with what makes it one for a pretrained actor."""
    folder = tmp_path / "pretrained"
    if not folder.exists():
        make_folder(family, folder)
    phases = [f"phases.{phase}.{key}" for phase in ("actor", "critic", "train") for key in ("updates=5",)]
    sizes = [f"critic.{name}=8" for name in ("embedding", "hidden", "attention")]
    usual = ["data.maximum_length=20", "data.valid_size=8", "training.batch=8", "training.evaluate_every=5"]
    template = [f'actor.template="{template_of(family)}"'] if template_of(family) else []
    named = [f"actor.pretrained={folder}", "score.name=bleu", "training.checkpoint_seconds=0", "threads=1"]
    return ["tatoeba-de-en", *phases, *sizes, *usual, *template, *named, *write_pairs(tmp_path), *more]
