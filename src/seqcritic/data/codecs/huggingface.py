"""The codec of a pretrained Hugging Face model: its own tokenizer, by the model's conventions.

Sources of encoder-decoders are what the tokenizer makes of a line: language tags, an end token, after a text that the
model knows its task by (`source_prefix`). Sources of decoder-only models are prompts, made by a template such as
`{source} =`. References are the tokens between what is always given and the end.

The tokenizer's own files are stored with the model, so that it needs no other folder.

Shapes: B lines, S source tokens.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import torch
from tokenizers import decoders
from torch import Tensor

from seqcritic.contracts.actor import SpecialTokens
from seqcritic.contracts.batch import pad_rows
from seqcritic.contracts.codec import Codec, register_codec
from seqcritic.contracts.score import ScoreOptions
from seqcritic.errors import UserError

try:
    from transformers import AutoTokenizer
except ImportError:
    raise UserError("Hugging Face models need the extra 'hf': pip install 'seqcritic[hf]'") from None

SOURCE = "{source}"
WORD_START = "\N{LOWER ONE EIGHTH BLOCK}"
OPTIONS_FILE = "tokenizer_config.json"  # options of loading, among them paths; all that decides ids is in the others


@dataclass(frozen=True)
class TextForm:
    """How texts are given to a model, where its tokenizer alone does not know it."""

    template: str | None = None  # of a decoder-only model's prompt
    source_prefix: str = ""
    source_language: str | None = None
    target_language: str | None = None


@register_codec("huggingface")
class HuggingFaceCodec(Codec):
    """Raw lines in the tokens of a pretrained model; one set of ids for both sides."""

    def __init__(
        self, tokenizer: Any, special: SpecialTokens, num_tokens: int, crosses: bool, form: TextForm | None = None
    ) -> None:
        """Take a tokenizer as its library made it, and the model's special tokens and number of ids.

        `crosses`: the model is an encoder-decoder.
        """
        self.tokenizer = _prepared(tokenizer)
        self.num_source_tokens = self.num_target_tokens = num_tokens
        self.special, self.crosses = special, crosses
        self.form = TextForm() if form is None else form
        self._refuse_strangers()
        _set_languages(self.tokenizer, self.form)
        if not crosses and SOURCE not in (self.form.template or ""):
            raise UserError(
                f"actor.template: a decoder-only model reads a prompt; say how one is made of a source, as '{SOURCE} ='"
            )

    def _refuse_strangers(self) -> None:
        """Refuse a tokenizer that cannot be the model's."""
        largest = max(self.tokenizer.get_vocab().values())
        # Such an id has no embedding, and would end deep in torch at the first line that has it.
        if largest >= self.num_target_tokens:
            raise UserError(
                f"actor.pretrained: the tokenizer does not belong to the model: it has ids up to {largest:,}, the "
                f"model {self.num_target_tokens:,} tokens"
            )
        end = self.tokenizer.eos_token_id
        if end is not None and end not in self.special.end:
            raise UserError(
                f"actor.pretrained: the tokenizer does not belong to the model: it ends a text with {end}, the model "
                f"with {', '.join(map(str, self.special.end))}"
            )

    def encode_sources(self, lines: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Return padded ids [B, S] of source lines, and their mask [B, S]; padding stands on the right."""
        rows = self._read(lines)
        return pad_rows([torch.tensor(row, dtype=torch.int64) for row in rows], self.special.padding)

    def _read(self, lines: Sequence[str]) -> list[list[int]]:
        if self.crosses:
            return self._ids([self.form.source_prefix + line for line in lines], add_special_tokens=True)
        # A prompt goes on: what the tokenizer puts before a text stands before it, nothing after it.
        before = list(self.source_frame[0])
        prompts = [self._template.replace(SOURCE, self.form.source_prefix + line) for line in lines]
        # No row is empty: of a prompt without a token the model could say nothing.
        return [before + row or [self.special.end[0]] for row in self._ids(prompts, add_special_tokens=False)]

    def encode_references(self, lines: Sequence[str]) -> list[list[int]]:
        """Return the ids of target lines without what is given before them and without an end token."""
        if self.crosses:
            return self._ids(lines, add_special_tokens=False, target=True)
        # An answer is tokenised as it follows the prompt: many tokenizers begin words with the space before them.
        # Where a prompt ends with the source any mark will do, so that the answer's first word stands inside a line.
        start = self._template.rpartition(SOURCE)[2] or ":"
        before = self._ids([start], add_special_tokens=False)[0]
        space = "" if start[-1].isspace() else " "
        joined = self._ids([start + space + line for line in lines], add_special_tokens=False)
        # Else a token has grown over the border, and answers cannot be cut off behind the prompt.
        if all(row[: len(before)] == before for row in joined):
            return [row[len(before) :] for row in joined]
        return self._ids([space + line for line in lines], add_special_tokens=False)

    @property
    def _template(self) -> str:
        assert self.form.template is not None, "of a decoder-only model"
        return self.form.template

    def _ids(self, lines: Sequence[str], add_special_tokens: bool, target: bool = False) -> list[list[int]]:
        if not lines:
            return []
        # Targets have a name of their own: tokenizers of translation models frame them by another language.
        given: dict[str, Any] = {"text_target" if target else "text": list(lines)}
        found: list[list[int]] = self.tokenizer(**given, add_special_tokens=add_special_tokens)["input_ids"]
        return found

    @cached_property
    def source_frame(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What the tokenizer puts before and after a source."""
        return self._frame(target=False)

    @cached_property
    def target_frame(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What the tokenizer puts before and after a target."""
        return self._frame(target=True)

    def _frame(self, target: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
        # A letter that every tokenizer has, with and without what is put around texts.
        bare, framed = (self._ids(["a"], add, target)[0] for add in (False, True))
        for first in range(len(framed) - len(bare) + 1):
            if framed[first : first + len(bare)] == bare:
                return tuple(framed[:first]), tuple(framed[first + len(bare) :])
        raise UserError("actor.pretrained: the tokenizer changes a text where it adds special tokens")

    def decode(self, ids: Sequence[int]) -> str:
        """Return ids as text up to the end token, without special tokens, cleaned up as the tokenizer says."""
        text: str = self.tokenizer.decode(self._answer(ids), skip_special_tokens=True)
        return text.strip()

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Return ids as single tokens up to the end token; `▁` stands for the space before a word."""
        return self._show(self._answer(ids))

    def source_tokens(self, ids: Sequence[int]) -> list[str]:
        """Return source ids as single tokens, to be shown."""
        return self._show(list(ids))

    def _answer(self, ids: Sequence[int]) -> list[int]:
        over = {*self.special.end, self.special.padding}
        last = next((position for position, token in enumerate(ids) if token in over), len(ids))
        return list(ids[:last])

    def _show(self, ids: list[int]) -> list[str]:
        pieces: list[str] = self.tokenizer.convert_ids_to_tokens(ids)
        pieces = ["" if piece is None else piece for piece in pieces]  # an id that the tokenizer has no use for
        if not self._writes_bytes:
            return pieces
        texts = [decoders.ByteLevel().decode([piece]) for piece in pieces]
        # Part of a character has no text of its own.
        return [
            piece if "\N{REPLACEMENT CHARACTER}" in text else text.replace(" ", WORD_START)
            for piece, text in zip(pieces, texts, strict=True)
        ]

    @cached_property
    def _writes_bytes(self) -> bool:
        """Whether pieces stand for bytes, one character each."""
        return self.tokenizer.is_fast and isinstance(self.tokenizer.backend_tokenizer.decoder, decoders.ByteLevel)

    def score_options(self) -> ScoreOptions:
        """Return what a score must know: tokens are subwords, texts are plain."""
        unknown = self.tokenizer.unk_token_id
        # Some tokenizers that know every text name the end token here.
        return ScoreOptions(tokens="subwords", unknown=None if unknown in self.special.end else unknown)

    def content(self) -> dict[str, Any]:
        """Return the tokenizer's files, packed, and the model's conventions."""
        return {
            "files": {
                name: base64.b64encode(zlib.compress(found, 6)).decode("ascii") for name, found in self.files.items()
            },
            "special": asdict(self.special),
            "num_tokens": self.num_target_tokens,
            "crosses": self.crosses,
            "form": asdict(self.form),
        }

    @cached_property
    def files(self) -> dict[str, bytes]:
        """The tokenizer's own files by name."""
        with tempfile.TemporaryDirectory() as folder:
            self.tokenizer.save_pretrained(folder)
            return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}

    def save_pretrained(self, folder: Path) -> None:
        """Write what the model needs beside its weights, as its own library does."""
        self.tokenizer.save_pretrained(folder)

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """Return the codec that `to_dict` described."""
        tokenizer, files = tokenizer_from(stored["files"])
        special = SpecialTokens(**stored["special"] | {"end": tuple(stored["special"]["end"])})
        codec = cls(tokenizer, special, stored["num_tokens"], stored["crosses"], TextForm(**stored["form"]))
        codec.files = files  # written again, they might differ in what means nothing
        return codec

    def reads_like(self, other: Codec) -> bool:
        """Whether ids mean the same to both."""
        return isinstance(other, HuggingFaceCodec) and self.digest() == other.digest()

    def digest(self) -> str:
        """Return a short hash of all that decides ids."""
        told = {name: hashlib.blake2b(found).hexdigest() for name, found in self.files.items() if name != OPTIONS_FILE}
        told |= {"rest": repr((self.special, self.num_target_tokens, self.crosses, self.form))}
        return hashlib.blake2b(repr(sorted(told.items())).encode(), digest_size=12).hexdigest()


def tokenizer_from(packed: dict[str, str]) -> tuple[Any, dict[str, bytes]]:
    """Return the tokenizer of packed files, and the files."""
    files = {name: zlib.decompress(base64.b64decode(text)) for name, text in packed.items()}
    with _folder_of(files) as folder:
        return AutoTokenizer.from_pretrained(folder, local_files_only=True), files


def _prepared(tokenizer: Any) -> Any:
    """Return a copy of a tokenizer that neither pads nor cuts: what it was called with before is no matter here."""
    own = copy.deepcopy(tokenizer)
    if own.is_fast:
        own.backend_tokenizer.no_padding()
        own.backend_tokenizer.no_truncation()
    return own


def _set_languages(tokenizer: Any, form: TextForm) -> None:
    for setting, attribute in (("source_language", "src_lang"), ("target_language", "tgt_lang")):
        language = getattr(form, setting)
        if language is None:
            continue
        if is_whisper(tokenizer) and setting == "target_language":
            _set_whisper_language(tokenizer, language)
            continue
        if not knows_languages(tokenizer):
            raise UserError(f"actor.{setting}: the model's tokenizer knows no languages; leave it null")
        language_id(tokenizer, language, setting)
        setattr(tokenizer, attribute, language)


def is_whisper(tokenizer: Any) -> bool:
    """Tell whether a tokenizer is Whisper's, which begins texts with a language and a task of its own."""
    return type(tokenizer).__name__.startswith("Whisper")


def _set_whisper_language(tokenizer: Any, language: str) -> None:
    try:
        tokenizer.set_prefix_tokens(language=language, task="transcribe")
    except ValueError:
        raise UserError(
            f"actor.target_language: Whisper knows no '{language}'; give one such as en or german"
        ) from None


def knows_languages(tokenizer: Any) -> bool:
    """Tell whether a tokenizer marks texts by their language."""
    return hasattr(type(tokenizer), "tgt_lang") or "tgt_lang" in vars(tokenizer)


def language_id(tokenizer: Any, language: str, setting: str = "target_language") -> int:
    """Return the token of a language."""
    named = getattr(tokenizer, "get_lang_token", None)  # M2M100 writes `de` as `__de__`
    token = language if named is None else f"__{language}__"
    found = tokenizer.get_vocab().get(token)
    if found is None:
        raise UserError(f"actor.{setting}: the model's tokenizer knows no '{language}'; see its model card")
    return int(found)


@contextmanager
def _folder_of(files: dict[str, bytes]) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            if Path(name).name != name:
                raise ValueError(f"the file {name!r} of the tokenizer has no plain name")
            (Path(folder) / name).write_bytes(content)
        yield folder
