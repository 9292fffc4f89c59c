"""A Marian-shaped model with random weights, and subwords learnt from parallel text, as a folder that loads everywhere.

    python benchmarks/evidence/new_marian.py TEXT.de.gz TEXT.en.gz --out runs/new-marian

One vocabulary for both languages, byte pairs over bytes: no text is unknown. The embedding is shared by encoder,
decoder and output layer, as in the published models of this family.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import MarianConfig, MarianMTModel, PreTrainedTokenizerFast

from seqcritic.data.text import read_all_lines

END, UNKNOWN, PADDING = "</s>", "<unk>", "<pad>"  # ids 0, 1, 2
POSITIONS = 256
SEED = 1


def learn_tokenizer(lines: Iterable[str], size: int) -> PreTrainedTokenizerFast:
    """Return a tokenizer of so many byte-pair subwords that ends every text."""
    tokenizer = Tokenizer(models.BPE(unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[END, UNKNOWN, PADDING],
        # Sorted: the library's own order changes from call to call, and the ids with it.
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(lines, trainer)
    end = tokenizer.token_to_id(END)
    tokenizer.post_processor = processors.TemplateProcessing(single=f"$A {END}", special_tokens=[(END, end)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=END,
        unk_token=UNKNOWN,
        pad_token=PADDING,
        clean_up_tokenization_spaces=False,
    )


def make_model(tokenizer: PreTrainedTokenizerFast, width: int, layers: int, dropout: float) -> MarianMTModel:
    """Return a model of a tokenizer's words with as many layers in its decoder as in its encoder."""
    sides = {
        f"{side}_{what}": value
        for side in ("encoder", "decoder")
        for what, value in (("layers", layers), ("attention_heads", max(1, width // 64)), ("ffn_dim", 4 * width))
    }
    config = MarianConfig(
        vocab_size=len(tokenizer),
        decoder_vocab_size=len(tokenizer),
        d_model=width,
        dropout=dropout,
        activation_function="swish",
        scale_embedding=True,
        pad_token_id=tokenizer.pad_token_id,
        decoder_start_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
        forced_eos_token_id=None,
        max_position_embeddings=POSITIONS,
        **sides,
    )
    with torch.random.fork_rng():
        torch.manual_seed(SEED)
        model = MarianMTModel(config)
    # Nobody says padding, which starts the decoder: so have it the trained models of this family.
    model.final_logits_bias[0, tokenizer.pad_token_id] = -1e4
    return model


def main() -> None:
    """Write the folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", nargs="+", help="files of lines, plain or .gz")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--vocabulary", type=int, default=8000)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--layers", type=int, default=3)
    parser.add_argument("--dropout", type=float, default=0.1)
    options = parser.parse_args()
    tokenizer = learn_tokenizer(read_all_lines(tuple(options.text), "text"), options.vocabulary)
    model = make_model(tokenizer, options.width, options.layers, options.dropout)
    model.save_pretrained(options.out)
    tokenizer.save_pretrained(options.out)
    print(f"{options.out}: {model.num_parameters():,} weights, {len(tokenizer):,} subwords")


if __name__ == "__main__":
    main()
