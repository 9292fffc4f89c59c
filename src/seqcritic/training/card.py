"""The model card: what a model is, what it was trained on, how good it is, and where its limits are."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from seqcritic.settings.data import SPLITS, OwnTaskSettings, SpellingSettings, TranslationSettings
from seqcritic.settings.tree import Settings


@dataclass(frozen=True)
class TestResult:
    """The score of a model on one test set."""

    __test__ = False  # for pytest: not a class of tests

    label: str
    score_name: str
    score: float
    interval: tuple[float, float]
    num_sentences: int
    signature: str


@dataclass(frozen=True)
class Origin:
    """All that a card tells of a model."""

    name: str
    settings: Settings
    text: dict[str, list[str]]  # names of the files of each split
    progress: dict[str, Any]
    valid_score: float | None
    num_weights: int
    half: bool
    results: tuple[TestResult, ...]


def write_card(origin: Origin) -> str:
    """Return the card as Markdown. Its first paragraph is what `seqcritic models` prints."""
    parts = [
        f"# {origin.name}",
        _introduce(origin),
        f"```sh\nseqcritic predict {origin.name} < lines > answers\n```",
        "## Training",
        _table(("", ""), _training(origin)),
        "## Results",
        _results(origin),
        "## Limits",
        "\n".join(f"- {limit}" for limit in _limits(origin.settings)),
    ]
    # Empty lines part the paragraphs, by which `packaged.summary` finds the first one too.
    return "\n\n".join(parts) + "\n"


# Hubs read this head where a file begins with it.
PRETRAINED = """---
library_name: transformers
tags: [seqcritic]
---

"""


def introduce_pretrained(origin: Origin) -> str:
    """Return the card of a model that transformers loads; its head is for those that list models."""
    loading = (
        "```py\n"
        "from transformers import AutoModelForSeq2SeqLM, AutoTokenizer  # or AutoModelForCausalLM\n\n"
        f'model = AutoModelForSeq2SeqLM.from_pretrained("{origin.name}")\n'
        f'tokenizer = AutoTokenizer.from_pretrained("{origin.name}")\n'
        "```"
    )
    # Word for word as in `write_card`, or nothing would be replaced.
    usual = f"```sh\nseqcritic predict {origin.name} < lines > answers\n```"
    return PRETRAINED + write_card(origin).replace(usual, loading)


def _introduce(origin: Origin) -> str:
    data = origin.settings.data
    if isinstance(data, SpellingSettings):
        errors = "replaced characters" if data.typing is None else "errors of typing"
        rate = (
            f"noise {data.noise:g}" if data.typing is None else f"up to {data.typing.highest_rate:g} errors a character"
        )
        what = f"Corrects {errors}, {data.length} characters at a time; trained at {rate}"
    elif isinstance(data, TranslationSettings):
        what = f"A translation model ({' and '.join(origin.text['train'])})"
    else:
        what = f"A model trained on {data.arguments.get('class', data.task)}"
    scores = "; ".join(f"{result.score_name} {result.score:.2f} ({result.label})" for result in origin.results)
    return f"{what} by {origin.settings.method.label}{'; ' + scores if scores else ''}."


def _training(origin: Origin) -> list[tuple[str, str]]:
    settings, data = origin.settings, origin.settings.data
    rows = [(f"{split} text", ", ".join(origin.text[split]) or "none") for split in SPLITS]
    if isinstance(data, SpellingSettings):
        rows += [
            ("L, characters of a window", str(data.length)),
            ("shortest sentence", str(data.minimum_length)),
            ("windows", f"at {data.windows}"),
        ]
        if data.typing is None:
            rows.append(("noise η, share of characters replaced", f"{data.noise:g}"))
        else:
            kinds = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in data.typing)
            rows.append(("errors of typing, by shares, rate and weights", kinds))
    rows += [
        ("recipe", settings.name),
        ("method", settings.method.label),
        ("trained for", settings.score.name),
        ("examples seen", f"{origin.progress['examples']:,}"),
        ("seed", str(settings.seed)),
        *settings.actor.facts(),
        ("weights", f"{origin.num_weights:,}, stored as float{16 if origin.half else 32}"),
        ("seqcritic", version("seqcritic")),
    ]
    if origin.valid_score is not None:
        rows.append(("best validation score, by which it was chosen", f"{origin.valid_score:.2f}"))
    return rows


def _results(origin: Origin) -> str:
    if not origin.results:
        return "Not evaluated on a test set. `seqcritic evaluate` does so: give it this model and `data.test=FILE`."
    rows = [
        (
            result.label,
            f"{result.score_name} {result.score:.2f}",
            f"{result.interval[0]:.2f} to {result.interval[1]:.2f}",
            f"{result.num_sentences:,}",
            # A bar would end the cell of the table; Python 3.11 takes no backslash within the braces.
            f"`{result.signature.replace('|', chr(92) + '|')}`",
        )
        for result in origin.results
    ]
    return _table(("test set", "score", "95 % interval", "sentences", "signature"), rows)


def _limits(settings: Settings) -> list[str]:
    data = settings.data
    if isinstance(data, OwnTaskSettings):
        return ["It knows what its training data is like; other data it answers worse."]
    if isinstance(data, TranslationSettings):
        return [
            "It knows the words and the style of its training text; other text it translates worse.",
            f"Its training sentences had at most {data.maximum_length} tokens.",
        ]
    # These are of the paper's noise; errors of typing have their own below.
    errors = [
        "It replaces characters and does nothing else: it neither inserts nor removes any, so missing and doubled "
        "letters stay.",
        "It was trained on characters replaced at random, any by any other, which is not how people mistype.",
        f"It expects {100 * data.noise:g} % of the characters to be wrong. In text with fewer errors it also changes "
        "words that are right but rare: names, terms, other languages.",
    ]
    if data.typing is not None:
        errors = [
            "It was trained on errors made by rules, one letter or two at a time: words that are right elsewhere, and "
            "grammar, it leaves alone.",
            "It may change words that are right but rare: names, terms, other languages.",
        ]
    return [
        *errors,
        f"It sees {data.length} characters at a time and nothing of the text around them.",
        "Its alphabet is a to z, 0 to 9, comma, full stop, exclamation and question mark, space. It keeps the case of "
        "letters and leaves all other characters as they are.",
    ]


def _table(head: tuple[str, ...], rows: list[Any]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
