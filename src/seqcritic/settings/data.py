"""The settings of the tasks: which text, in which tokens, cut and filtered how."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from seqcritic.contracts.registry import TASKS as REGISTERED
from seqcritic.settings.base import Paths, Positive, Section, Weight
from seqcritic.settings.bounds import LARGEST, LARGEST_SEED

EMBEDDED = "embedded"
OBJECT = "object"  # what was passed from Python and has to be passed again
OWN = "own"
TASKS = ("spelling", "translation")
SPLITS = ("train", "valid", "test")
# Of either of two splits: at least a fifth is left to train on.
Share = Annotated[float, Field(ge=0, le=0.4)]
NUM_BYTES = 256  # byte-level BPE begins with a token for each


class TypingSettings(Section):
    """Noise of the spelling task as people make it: how much of it a line has, and how often each kind comes."""

    clean: float = Field(0.3, ge=0, lt=1, description="share of the lines without any error")
    highest_rate: float = Field(
        0.1, gt=0, le=1, description="the others have a rate of errors a character of their own, uniform up to this"
    )
    neighbours: Weight = Field(1.0, description="how often a key beside the right one is hit; all kinds by weights")
    transpositions: Weight = Field(1.0, description="two letters change places")
    omissions: Weight = Field(1.0, description="a letter is left out")
    insertions: Weight = Field(1.0, description="a key beside the right one is hit too")
    doubled_letters: Weight = Field(1.0, description="a letter comes twice, or one of two that are the same is lost")
    phonetic_confusions: Weight = Field(1.0, description="letters that sound alike: ie and ei, f and ph, ance and ence")
    missing_spaces: Weight = Field(0.25, description="two words run together")
    split_words: Weight = Field(0.25, description="a space inside a word")

    @model_validator(mode="after")
    def _has_a_kind(self) -> TypingSettings:
        # data/typing_noise.py divides the weights by their sum.
        if not any(value for name, value in self if name not in ("clean", "highest_rate")):
            raise ValueError("data.typing: all kinds have the weight 0; give at least one of them another")
        return self


class SpellingSettings(Section):
    """The spelling task: which text, cut how, with how much noise."""

    task: Literal["spelling"] = "spelling"
    train: Paths = Field((EMBEDDED,), description="text files, plain or .gz; 'embedded' for the built-in text")
    valid: Paths = (EMBEDDED,)
    test: Paths = (EMBEDDED,)
    # The bound: data/windows.py keeps the lengths of windows in a byte each.
    length: int = Field(10, ge=1, le=250, description="L: characters kept of each sentence")
    minimum_length: Positive = Field(1, description="sentences with fewer characters are left out")
    noise: float = Field(0.3, ge=0, le=1, description="η: probability of replacing a character")
    typing: TypingSettings | None = Field(
        None, description="errors as people make them, in the place of the paper's noise; null: the paper's, by `noise`"
    )
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
        description="files with both sides: .tsv (two columns); .csv, .jsonl or .parquet, whose columns data.columns "
        "names; all but the last or .gz. Or a folder of sounds, each with its .txt",
    )


class HeldOutSettings(Section):
    """Which shares of the training pairs are kept apart; where a split names no files, they are what it has.

    A hash of the source decides: no source is on two sides, and pairs that are added move none.
    """

    valid: Share = Field(0.0, description="share of the sources of data.train that validates; 0: none")
    test: Share = Field(0.0, description="share of the sources of data.train that tests; 0: none")


class ColumnSettings(Section):
    """What the two sides are called in files and datasets with named columns; `a.b` is the field b of the column a."""

    source: str = Field("source", description="of sounds: the path, told from the file's folder, or the sound itself")
    target: str = Field("target", description="one text, or a list of references of which the first is learnt from")


class DatasetSettings(Section):
    """A dataset of the library `datasets`, for the splits that have no files of their own."""

    name: str = Field(description="a folder that save_to_disk has written, one of data files, or a name of the hub")
    config: str | None = Field(None, description="which of several configurations, as de-en")
    train: str = Field("train", description="what the split is called there")
    valid: str = "validation"
    test: str = "test"

    @field_validator("name")
    @classmethod
    def _from_the_root(cls, value: str) -> str:
        # The run's folder tells it, and may be read from elsewhere.
        return str(Path(value).resolve()) if Path(value).is_dir() else value


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
    columns: ColumnSettings = ColumnSettings()
    dataset: DatasetSettings | None = None
    source_tokens: TokenSettings = TokenSettings()
    target_tokens: TokenSettings = TokenSettings()
    origin: str = Field("", description="the command that makes these files, told where one of them is missing")
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
        # A class of one's own is imported where the task is built: files of settings can be read without it.
        if ":" not in value and value not in (OBJECT, *REGISTERED.names()):
            known = f"known: {', '.join(REGISTERED.names())}, module:Class"
            raise ValueError(f"data.task: unknown task '{value}'{REGISTERED.nearest(value)}; {known}")
        return value


def _task_of(value: Any) -> str:
    """Return the task of a section of data settings; spelling where it names none."""
    # A dictionary of YAML's, or a section that is validated already; pydantic asks of both.
    task = value.get("task", "spelling") if isinstance(value, dict) else getattr(value, "task", "spelling")
    return str(task) if task in TASKS else OWN


DataSettings = Annotated[
    Annotated[SpellingSettings, Tag("spelling")]
    | Annotated[TranslationSettings, Tag("translation")]
    | Annotated[OwnTaskSettings, Tag(OWN)],
    Discriminator(_task_of),
]
