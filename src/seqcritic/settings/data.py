"""The settings of the tasks: which text, in which tokens, cut and filtered how."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from seqcritic.contracts.registry import TASKS as REGISTERED
from seqcritic.settings.base import Paths, Positive, Section
from seqcritic.settings.bounds import LARGEST, LARGEST_SEED

EMBEDDED = "embedded"
OBJECT = "object"  # what was passed from Python and has to be passed again
OWN = "own"
TASKS = ("spelling", "translation")
SPLITS = ("train", "valid", "test")
Share = Annotated[float, Field(ge=0, le=0.4)]
NUM_BYTES = 256


class SpellingSettings(Section):
    """The spelling task: which text, cut how, with how much noise."""

    task: Literal["spelling"] = "spelling"
    train: Paths = Field((EMBEDDED,), description="text files, plain or .gz; 'embedded' for the built-in text")
    valid: Paths = (EMBEDDED,)
    test: Paths = (EMBEDDED,)
    length: int = Field(10, ge=1, le=250, description="L: characters kept of each sentence")
    minimum_length: Positive = Field(1, description="sentences with fewer characters are left out")
    noise: float = Field(0.3, ge=0, le=1, description="η: probability of replacing a character")
    windows: Literal["sentences", "words"] = Field(
        "sentences",
        description="train on sentence starts only, or on every word start with L characters left",
    )
    evaluation_seed: int = Field(
        0,
        ge=-LARGEST_SEED,
        le=LARGEST_SEED,
        description="fixes the noise of all text that is evaluated, the same for every run",
    )
    valid_size: Positive | None = Field(None, description="at most so many validation sentences")
    test_size: Positive | None = None

    @model_validator(mode="after")
    def _lengths_agree(self) -> SpellingSettings:
        if self.minimum_length > self.length:
            raise ValueError("data.minimum_length is larger than data.length, so no sentence would be left")
        return self


class PairFiles(Section):
    """Where the pairs of a split are: `source` and `target` line by line, file by file, or both sides in `pairs`."""

    source: Paths = Field((), description="text files, plain or .gz")
    target: Paths = Field((), description="their translations: as many files, with as many lines")
    pairs: Paths = Field(
        (),
        description="files with both sides: .tsv (two columns) or .jsonl (source, target or a list of them), or .gz",
    )


class HeldOutSettings(Section):
    """Which shares of the training pairs are kept apart; where a split names no files, they are what it has.

    A hash of the source decides: no source is on two sides, and pairs that are added move none.
    """

    valid: Share = Field(0.0, description="share of the sources of data.train that validates; 0: none")
    test: Share = Field(0.0, description="share of the sources of data.train that tests; 0: none")


class TokenSettings(Section):
    """What counts as a token on one side, and which tokens have a number of their own."""

    kind: Literal["whitespace", "words", "subwords", "characters", "tokenizer"] = Field(
        "words",
        description="'whitespace' for text that is tokenised already, 'words' for raw text, 'subwords' for byte-level "
        "BPE, which knows no unknown words, 'characters' for single ones, spaces among them, 'tokenizer' for that of "
        "`file`",
    )
    file: str | None = Field(
        None, description="of kind 'tokenizer': a tokenizer.json of the library tokenizers, or a SentencePiece model"
    )
    lowercase: bool = False
    size: Positive | None = Field(
        30_000,
        description="so many most frequent tokens, the end and the unknown token not counted; null for all; a given "
        "tokenizer has its own size",
    )
    minimum_count: Positive = Field(1, description="rarer tokens are unknown; for subwords, rarer pairs are not merged")


class TranslationSettings(Section):
    """The translation task."""

    task: Literal["translation"] = "translation"
    train: PairFiles = PairFiles()
    valid: PairFiles = PairFiles()
    test: PairFiles = PairFiles()
    held_out: HeldOutSettings = HeldOutSettings()
    source_tokens: TokenSettings = TokenSettings()
    target_tokens: TokenSettings = TokenSettings()
    maximum_length: Positive = Field(50, description="training pairs with more tokens on a side are left out")
    maximum_ratio: Annotated[float, Field(ge=1, le=LARGEST)] | None = Field(
        None, description="training pairs are left out if one side has so many times the tokens of the other"
    )
    valid_size: Positive | None = Field(None, description="at most so many validation pairs")
    test_size: Positive | None = None

    @model_validator(mode="after")
    def _is_consistent(self) -> TranslationSettings:
        for split in SPLITS:
            files: PairFiles = getattr(self, split)
            if len(files.source) != len(files.target):
                raise ValueError(
                    f"data.{split}: {len(files.source)} source and {len(files.target)} target files; "
                    "every source file needs its target file"
                )
        for side in ("source_tokens", "target_tokens"):
            tokens: TokenSettings = getattr(self, side)
            if tokens.kind == "subwords" and (tokens.size is None or tokens.size < NUM_BYTES):
                raise ValueError(f"data.{side}.size: subwords need a size of at least {NUM_BYTES}, one for each byte")
            if (tokens.kind == "tokenizer") != (tokens.file is not None):
                raise ValueError(f"data.{side}: kind=tokenizer and file=FILE belong together; give both or neither")
        return self


class OwnTaskSettings(Section):
    """A task of one's own: a registered name, `module:Class`, or an object from Python (contracts/parts.py)."""

    task: str
    arguments: dict[str, Any] = Field(default_factory=dict, description="of its constructor")

    @field_validator("task")
    @classmethod
    def _is_known(cls, value: str) -> str:
        if ":" not in value and value not in (OBJECT, *REGISTERED.names()):
            known = f"known: {', '.join(REGISTERED.names())}, module:Class"
            raise ValueError(f"data.task: unknown task '{value}'{REGISTERED.nearest(value)}; {known}")
        return value


def _task_of(value: Any) -> str:
    """Return the task of a section of data settings; spelling where it names none."""
    task = value.get("task", "spelling") if isinstance(value, dict) else getattr(value, "task", "spelling")
    return str(task) if task in TASKS else OWN


DataSettings = Annotated[
    Annotated[SpellingSettings, Tag("spelling")]
    | Annotated[TranslationSettings, Tag("translation")]
    | Annotated[OwnTaskSettings, Tag(OWN)],
    Discriminator(_task_of),
]
