"""Products written out step by step: problems from a seed, their checker, and a small language model to learn them.

    8347*6=42,28,20,50:50082

From the right, each digit's product with what was carried, two figures for each; behind the colon the answer. Nobody
checks the steps: `answers` is a score of texts, 1 for the right answer and 0 for any other. Likelihood needs worked
solutions; a reward needs the answer alone.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

STEP, ANSWER = ",", ":"
SPECIAL = ("<pad>", "<end>", "<unk>")
CHARACTERS = "0123456789*=,:|"
TEMPLATE = "{source}="  # how a prompt is made of a question
HINTED = "{reference}|{source}"  # a question behind its answer, as critic.template makes it too
POSITIONS = 64

Problem = tuple[int, int]


def draw_problems(number: int, digits: int, seed: int) -> list[Problem]:
    """Return so many different products of a number of so many digits and one from 2 to 9."""
    draws = random.Random(seed)
    found: dict[Problem, None] = {}
    while len(found) < number:
        found[draws.randrange(10 ** (digits - 1), 10**digits), draws.randint(2, 9)] = None
    return list(found)


def question(problem: Problem) -> str:
    """Return a problem as a source: `8347*6`."""
    return f"{problem[0]}*{problem[1]}"


def answer(problem: Problem) -> str:
    """Return the product: `50082`."""
    return str(problem[0] * problem[1])


def hinted_question(problem: Problem) -> str:
    """Return a problem behind its answer: `50082|8347*6`."""
    return HINTED.replace("{reference}", answer(problem)).replace("{source}", question(problem))


def worked_solution(problem: Problem) -> str:
    """Return the steps from the right and the answer: `42,28,20,50:50082`."""
    steps, carried = [], 0
    for digit in reversed(str(problem[0])):
        product = int(digit) * problem[1] + carried
        steps.append(f"{product:02d}")
        carried = product // 10
    return f"{STEP.join(steps)}{ANSWER}{answer(problem)}"


def answers(predictions: Sequence[str], references: Sequence[str]) -> list[float]:
    """Return 1 for each prediction with the reference's answer, what follows the last colon, and 0 for others."""
    pairs = zip(predictions, references, strict=True)
    return [float(_answer_of(prediction) == _answer_of(reference)) for prediction, reference in pairs]


def _answer_of(text: str) -> str:
    return text.rpartition(ANSWER)[2].strip()


def write_problems(folder: Path, sizes: dict[str, int], digits: int, hinted: float, seed: int) -> None:
    """Write `start.tsv`, worked solutions, and a file of questions with answers for each of the other splits.

    No problem is in two of them. So large a share of the worked solutions stands there once more, behind the answer.
    """
    problems = iter(draw_problems(sum(sizes.values()), digits, seed))
    drawn = {split: [next(problems) for _ in range(size)] for split, size in sizes.items()}
    rows = {split: [(question(one), answer(one)) for one in found] for split, found in drawn.items()}
    start = drawn["start"]
    rows["start"] = [(question(one), worked_solution(one)) for one in start]
    rows["start"] += [(hinted_question(one), worked_solution(one)) for one in start[: round(hinted * len(start))]]
    folder.mkdir(parents=True, exist_ok=True)
    for split, found in rows.items():
        text = "".join(f"{source}\t{target}\n" for source, target in found)
        (folder / f"{split}.tsv").write_text(text, encoding="utf-8")


def make_tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer of single characters that drops white space."""
    words = {word: number for number, word in enumerate((*SPECIAL, *CHARACTERS))}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token=SPECIAL[2]))
    tokenizer.normalizer = normalizers.Replace(" ", "")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    tokenizer.decoder = decoders.Fuse()
    names = dict(zip(("pad_token", "eos_token", "unk_token"), SPECIAL, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, clean_up_tokenization_spaces=False, **names)


def write_model(folder: Path, width: int, layers: int, heads: int, seed: int) -> None:
    """Write a Llama with random weights and its tokenizer, as save_pretrained does."""
    tokenizer = make_tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        intermediate_size=3 * width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        max_position_embeddings=POSITIONS,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.eos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
