"""Checks of tokenizers that others have made: tokenizer.json, and SentencePiece models beside their own library."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

import seqcritic
from seqcritic.data.tokens import TextVocabulary, learn_vocabulary, vocabulary_from_dict
from seqcritic.errors import UserError
from seqcritic.settings.data import TokenSettings

SENTENCES = [
    "Das Wetter ist heute gut, nicht wahr?",
    "Übergrößen sind häufig, sagte sie leise.",
    "Der kleine Hund läuft über die Straße.",
    "Wir gehen heute Abend ins Kino, wenn du willst.",
]


def read(path: Path, **settings: Any) -> TextVocabulary:
    return learn_vocabulary([], TokenSettings(kind="tokenizer", file=str(path), **settings), "data.source_tokens")


def word_pieces(path: Path, lowercase: bool = False) -> Path:
    """A tokenizer in the manner of BERT's: pieces of words, with special tokens, padding and truncation."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "das", "Das", "wet", "##ter", "ist", "gut", "!", "[", "]", "CLS"]
    tokenizer = Tokenizer(models.WordPiece({piece: k for k, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.add_special_tokens(["[PAD]", "[UNK]", "[CLS]", "[SEP]"])
    if lowercase:
        tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.decoder = decoders.WordPiece(cleanup=False)
    tokenizer.enable_padding(length=50)
    tokenizer.enable_truncation(2)
    tokenizer.save(str(path))
    return path


def test_a_tokenizer_file_gives_pieces_without_its_own_special_tokens(tmp_path: Path) -> None:
    vocabulary = read(word_pieces(tmp_path / "tokenizer.json"))
    assert len(vocabulary) == 2 + 10
    ids = vocabulary.encode("das wetter ist toll !")
    assert vocabulary.tokens(ids) == ["das", "wet", "##ter", "ist", "<unk>", "!"]
    assert vocabulary.decode([*ids, 0, 3]) == "das wetter ist ⁇ !"
    assert vocabulary.tokens(vocabulary.encode("[CLS]"))[0] != "[CLS]", "text is never read as a special token"


def test_a_tokenizer_is_stored_whole(tmp_path: Path) -> None:
    path = word_pieces(tmp_path / "tokenizer.json")
    vocabulary = read(path)
    path.unlink()
    again = vocabulary_from_dict(json.loads(json.dumps(vocabulary.to_dict())))
    assert (again.kind, len(again)) == ("tokenizer", len(vocabulary))
    assert again.encode("das wetter") == vocabulary.encode("das wetter") != []


def test_one_that_lowers_case_needs_the_setting(tmp_path: Path) -> None:
    path = word_pieces(tmp_path / "tokenizer.json", lowercase=True)
    with pytest.raises(UserError, match=r"data\.source_tokens\.lowercase: .* lower case; set it true"):
        read(path)
    assert read(path, lowercase=True).lowercase


def test_pairs_are_read_by_a_tokenizer_and_its_codec_goes_on(tmp_path: Path) -> None:
    tokens = {"kind": "tokenizer", "file": str(word_pieces(tmp_path / "tokenizer.json"))}
    given = [("das wetter", "ist gut"), ("das", "gut"), ("wetter", "ist")]
    task = seqcritic.pairs(given, given, source_tokens=tokens, target_tokens={"kind": "characters"})
    further = seqcritic.pairs([("Das", "neu"), ("das", "gut")], given, codec=task.codec)
    assert further.codec.encode_references(["gut"]) == task.codec.encode_references(["gut"])
    assert further.codec.score_options().tokens == "characters"
    assert "tokens:characters" in further.conditions("valid")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b'{"a": 1}', "neither a tokenizer.json"),
        (b"#version: 0.2\na b\n", "neither a tokenizer.json"),
        (b"", "it lists no pieces"),
        (b"\x80\x04\x95", "neither a tokenizer.json"),
        (b"\xff" * 40, "neither a tokenizer.json"),
    ],
)
def test_files_of_other_formats_are_refused_in_one_line(content: bytes, complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer"
    path.write_bytes(content)
    with pytest.raises(UserError, match=complaint) as told:
        read(path)
    assert str(told.value).startswith(f"data.source_tokens.file: {path}")
    assert "\n" not in str(told.value)


def test_folders_and_missing_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is a folder"):
        read(tmp_path)
    with pytest.raises(UserError, match=r"cannot read .*absent"):
        read(tmp_path / "absent.json")
    with pytest.raises(UserError, match="kind=tokenizer and file=FILE belong together"):
        seqcritic.pairs([("a", "b"), ("c", "d")], source_tokens={"kind": "tokenizer"})


@pytest.mark.parametrize(
    ("kind", "byte_fallback"), [("unigram", False), ("unigram", True), ("bpe", False), ("bpe", True)]
)
def test_sentencepiece_models_read_as_by_their_own_library(kind: str, byte_fallback: bool, tmp_path: Path) -> None:
    library = pytest.importorskip("sentencepiece")
    generator = random.Random(3)
    words = sorted({word for line in SENTENCES for word in line.split()})
    lines = [" ".join(generator.choices(words, k=8)) for _ in range(400)]
    prefix = tmp_path / "m"
    library.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_prefix=str(prefix),
        vocab_size=400 if byte_fallback else 120,
        model_type=kind,
        byte_fallback=byte_fallback,
        hard_vocab_limit=False,
        user_defined_symbols=["<sep>"],
        minloglevel=2,
    )
    processor = library.SentencePieceProcessor(model_file=f"{prefix}.model")
    vocabulary = read(prefix.with_suffix(".model"))
    alphabet = "".join(words) + "  ¼ﬁＡ漢😀\u00a0<sep>"
    for number in range(300):
        line = lines[number] if number < 50 else "".join(generator.choices(alphabet, k=generator.randint(1, 30)))
        ids = processor.encode(line)
        expected = ["<unk>" if processor.is_unknown(number) else processor.id_to_piece(number) for number in ids]
        found = vocabulary.encode(line)
        assert vocabulary.tokens(found) == expected
        if "<unk>" not in expected:
            assert vocabulary.decode(found) == processor.decode(ids).strip()
