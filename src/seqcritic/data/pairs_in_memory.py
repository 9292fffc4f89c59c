"""A task made of pairs that are at hand: lists, datasets, generators and frames, without files and without a cache."""

from __future__ import annotations

import hashlib
import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from pydantic import ValidationError

from seqcritic.contracts.codec import Codec
from seqcritic.contracts.task import Task
from seqcritic.data.pairs import PairsTask
from seqcritic.data.parallel import Pair, clean_pair, is_text, pair_in_lines
from seqcritic.data.sounds import is_sound, sound_path
from seqcritic.data.tables import field_of, undecoded
from seqcritic.data.token_cache import EncodedPairs, encoded_in_memory
from seqcritic.errors import UserError
from seqcritic.settings.data import TokenSettings, TranslationSettings

HELD_OUT = 0.05
MOST_HELD_OUT = 1_000
Tokens = TokenSettings | Mapping[str, Any]


def pairs(
    train: Iterable[Any],
    valid: Iterable[Any] | None = None,
    test: Iterable[Any] | None = None,
    *,
    source: str = "source",
    target: str = "target",
    source_tokens: Tokens | None = None,
    target_tokens: Tokens | None = None,
    maximum_length: int = 50,
    maximum_ratio: float | None = None,
    valid_size: int | None = None,
    test_size: int | None = None,
    codec: Codec | None = None,
) -> Task:
    """Return a task of pairs that are at hand.

    Each split is a list, a dataset with a length, a generator, or a pandas frame. A pair is (source, target),
    (source, [several targets]), or a mapping with the fields that `source` and `target` name; `translation.de` is the
    field `de` of the field `translation`. The first of several targets is learnt from, scores see all.

    Without `valid`, some 5 % of `train` are held out, at most 1,000 pairs, chosen by a hash of their sources.
    `source_tokens` and `target_tokens` are settings such as {"kind": "subwords", "size": 8000}; `codec`, that of a
    trained model or of a pretrained one (`actor.codec`), is used instead of them.
    """
    if codec is not None and (source_tokens is not None or target_tokens is not None):
        raise UserError("codec: it has its own tokens; give either codec, or source_tokens and target_tokens")
    settings = _validated(
        source_tokens=source_tokens or {},
        target_tokens=target_tokens or {},
        maximum_length=maximum_length,
        maximum_ratio=maximum_ratio,
        valid_size=valid_size,
        test_size=test_size,
    )
    given = {"train": train, "valid": valid, "test": test}
    fields = (source, target)
    splits = {split: read_given(found, split, fields) for split, found in given.items() if found is not None}
    # Training chooses its best actor by it; test may be missing.
    if "valid" not in splits:
        splits["train"], splits["valid"] = hold_out(splits["train"])
    return PairsInMemory(splits, settings, codec)


class PairsInMemory(PairsTask):
    """Pairs that are at hand."""

    def __init__(
        self,
        splits: Mapping[str, list[Pair]],
        settings: TranslationSettings,
        codec: Codec | None = None,
    ) -> None:
        super().__init__(settings, codec, logging.INFO)
        self._splits = splits

    def _name(self, setting: str) -> str:
        """Return the argument."""
        return setting

    def _place(self, split: str, pair: Pair) -> str:
        """Return which pair it is of those that were given."""
        return f"{pair.path}[{pair.line}]"

    def _require(self, split: str) -> None:
        if split not in self._splits:
            raise UserError(f"{split}: no pairs given; pass {split}=… to seqcritic.pairs")

    def _read(self, split: str) -> Iterator[Pair]:
        self._require(split)
        return iter(self._splits[split])

    def _encoded_pairs(self, activity: str, with_texts: bool = False) -> EncodedPairs:
        read = self._read_training(activity)
        return encoded_in_memory(self._vocabularies, self._pair_filter, read, with_texts, self._name("train"))


def read_given(given: Any, split: str, fields: tuple[str, str]) -> list[Pair]:
    """Return the pairs of what a user passes as a split."""
    found = [_pair_of(row, split, number, fields) for number, row in enumerate(_rows(given, split))]
    if not found:
        raise UserError(f"{split}: no pairs; give at least one (source, target)")
    return found


def hold_out(given: list[Pair]) -> tuple[list[Pair], list[Pair]]:
    """Split pairs into those to train on and those to validate on: 5 %, at least one and at most 1,000.

    A hash of the source decides, so that they hardly change when pairs are added, and no source is on both sides.
    """
    by_source: dict[str, list[Pair]] = defaultdict(list)
    for pair in given:
        by_source[pair.source].append(pair)
    # A reference that is empty cannot be scored against.
    groups = [own for own in by_source.values() if all(text.strip() for pair in own for text in pair.targets)]
    # One source has to be left to train on.
    if len(by_source) < 2 or not groups:
        raise UserError("valid: no pairs given, and none of train can be held out; pass valid=…")
    # By hash, not by place: pairs that are added come anywhere in the order, and those chosen mostly stay.
    groups.sort(key=lambda own: hashlib.blake2b(own[0].source.encode(), digest_size=8).digest())
    wanted = max(1, min(MOST_HELD_OUT, round(HELD_OUT * len(given))))
    chosen: set[str] = set()
    num_chosen = 0
    for own in groups:
        # A source with too many pairs is passed over; a later one may fit.
        if num_chosen + len(own) <= wanted:
            chosen.add(own[0].source)
            num_chosen += len(own)
    if not chosen:  # every source stands more often than that
        chosen.add(min(groups, key=len)[0].source)
    return (
        [pair for pair in given if pair.source not in chosen],
        [pair for pair in given if pair.source in chosen],
    )


def _rows(given: Any, split: str) -> Iterator[Any]:
    """Yield what should be pairs, of anything that has rows."""
    if isinstance(given, str | bytes):
        raise UserError(f"{split}: a text where a list of pairs should be; files are for recipes, data.{split}")
    if isinstance(given, Mapping):  # a DatasetDict is one too
        raise UserError(f"{split}: a mapping where a list of pairs should be; pass one of its values")
    if isinstance(given, AbstractSet):
        raise UserError(f"{split}: a set has no order, and results would change; pass a list")
    if hasattr(given, "itertuples"):  # a pandas frame, whose own rows are its columns
        return iter(given.to_dict("records"))
    if hasattr(given, "cast_column") and hasattr(given, "features"):  # a Hugging Face dataset
        given = undecoded(given)
    if hasattr(given, "__len__") and hasattr(given, "__getitem__"):
        return (given[number] for number in range(len(given)))  # a dataset need not end its own iteration
    try:
        return iter(given)
    except TypeError:
        raise UserError(f"{split}: {type(given).__name__}, not a list of pairs") from None


def _pair_of(row: Any, split: str, number: int, fields: tuple[str, str]) -> Pair:
    place = f"{split}[{number}]"
    if isinstance(row, Mapping):
        given, wanted = (field_of(row, field, place, "source=… and target=…") for field in fields)
    elif isinstance(row, str) or not isinstance(row, tuple | list):
        shown = repr(row) if len(repr(row)) <= 40 else f"{repr(row)[:39]}…"
        raise UserError(f"{place}: {shown} is no pair; give (source, target), or (source, [several targets])")
    elif len(row) != 2:
        raise UserError(f"{place}: {len(row)} entries, not the two of source and target; several targets are a list")
    else:
        given, wanted = row
    if is_sound(given):
        given = sound_path(given, place)
    targets = list(wanted) if isinstance(wanted, tuple | list) else [wanted]
    if not targets:
        raise UserError(f"{place}: no target; give at least one")
    for side, text in (("source", given), *(("target", text) for text in targets)):
        if not is_text(text):
            told = "text with half a surrogate pair" if isinstance(text, str) else type(text).__name__
            raise UserError(f"{place}: the {side} is {told}, not text")
    return clean_pair(pair_in_lines(given, targets, split, number))


def _validated(**given: Any) -> TranslationSettings:
    try:
        return TranslationSettings.model_validate(given)
    except ValidationError as error:
        fault = error.errors()[0]
        if fault["type"] == "value_error":
            raise UserError(str(fault["ctx"]["error"]).removeprefix("data.")) from None  # arguments, not settings
        key = ".".join(map(str, fault["loc"]))
        if fault["type"] == "extra_forbidden":
            known = ", ".join(TokenSettings.model_fields)
            raise UserError(f"{key}: unknown; known: {known}") from None
        raise UserError(f"{key}: {fault['msg'][0].lower()}{fault['msg'][1:]}, not {fault['input']!r}") from None
