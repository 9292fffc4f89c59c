"""Checks of the extraction, the splits and the cache of the embedded text."""

from __future__ import annotations

import gzip
import multiprocessing
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from seqcritic.data import embedded
from seqcritic.data.embedded import EmbeddedText, embedded_sentences, embedded_text, split_text
from seqcritic.errors import UserError

SOURCE = '''"""This is the text of the module."""

# This is the first line of a comment that
# goes on in the second line.


class Thing:
    """This is the text of the class.  It has two sentences in all."""

    def act(self) -> None:
        """THIS is the text of the module."""
        message = f"""This is a formatted string that is
            long enough to be taken for documentation, but it is cut in {self}."""


add_docstr(Thing.act, r"""
act(self) -> None

This is the text of a compiled function.
The second line has no marks of its own.
""".format(**arguments))
topics = {'thing': 'This is the text of the topic about all of the '
                   'things.\\n\\nThis is the end of the topic about things.\\n'}
'''
SOURCE_SENTENCES = [
    "This is the text of the module.",
    "This is the first line of a comment that goes on in the second line.",
    "This is the text of the class.",
    "It has two sentences in all.",
    "This is the text of a compiled function.",
    "The second line has no marks of its own.",
    "This is the text of the topic about all of the things.",
    "This is the end of the topic about things.",
]


@pytest.fixture
def small_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put a small folder of source files in the place of the installed packages."""
    root = tmp_path / "sources"
    (root / "tests").mkdir(parents=True)
    (root / "package").mkdir()
    (root / "b.py").write_text(SOURCE)
    (root / "a.pyi").write_text('"""This is the text of a stub file."""\n')
    (root / "package" / "c.py").write_bytes(
        b'# This is a comment in a file.\r\n#\r\n"""And this is a docstring."""\r\n'
    )
    (root / "broken.py").write_text('"""This is the text of a broken file."""\nif:\n')
    (root / "null.py").write_bytes(b'"""This is the text of a null file."""\n\0')
    (root / "notes.txt").write_text('"""This is the text of another file."""\n')
    (root / "tests" / "test_a.py").write_text('"""This is the text of a test file."""\n')
    monkeypatch.setattr(embedded, "source_roots", lambda: [root])
    return root


@pytest.fixture(scope="module")
def installed_text(tmp_path_factory: pytest.TempPathFactory) -> EmbeddedText:
    """Extract the text of the installed packages once for all tests that need it."""
    return embedded_text(tmp_path_factory.mktemp("cache"))


def count_extractions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows by one item with each extraction."""
    calls: list[int] = []
    extract = embedded.embedded_sentences

    def extract_and_count(progress: embedded.Progress | None = None) -> list[str]:
        calls.append(1)
        return extract(progress)

    monkeypatch.setattr(embedded, "embedded_sentences", extract_and_count)
    return calls


@pytest.mark.usefixtures("small_tree")
def test_sentences_in_order_of_paths_and_lines() -> None:
    assert embedded_sentences() == [
        "This is the text of a stub file.",
        *SOURCE_SENTENCES,
        "This is a comment in a file.",
        "And this is a docstring.",
    ]


@pytest.mark.usefixtures("small_tree")
def test_order_of_the_file_system_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = embedded_sentences()
    walk = os.walk

    def walk_backwards(root: Path) -> Iterator[tuple[str, list[str], list[str]]]:
        for folder, subfolders, names in walk(root):
            subfolders.sort(reverse=True)
            yield folder, subfolders, sorted(names, reverse=True)

    monkeypatch.setattr("os.walk", walk_backwards)
    assert embedded_sentences() == expected


@pytest.mark.usefixtures("small_tree")
def test_progress_counts_files() -> None:
    reports: list[tuple[int, int]] = []
    embedded_sentences(lambda done, total: reports.append((done, total)))
    assert reports == [(1, 5), (2, 5), (3, 5), (4, 5), (5, 5)]


def test_split_depends_on_the_sentence_alone() -> None:
    sentences = [f"This is the sentence number {number}." for number in range(2000)]
    text = split_text(sentences)
    assert (len(text.train), len(text.valid), len(text.test)) == (1809, 85, 106)
    assert text.fingerprint == "33d42e4f20164d57e2ddce525cb18932"
    shouted = split_text(f"  {sentence.upper()}" for sentence in sentences)
    assert [sentence.strip().capitalize() for sentence in shouted.valid] == list(text.valid)
    assert split_text(reversed(sentences)).fingerprint != text.fingerprint


@pytest.mark.usefixtures("small_tree")
def test_second_call_reads_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count_extractions(monkeypatch)
    cache = tmp_path / "new" / "cache"
    first = embedded_text(cache)
    assert embedded_text(cache) == first
    assert len(calls) == 1
    assert [path.name for path in cache.iterdir()] == [embedded.cache_file_name()]


@pytest.mark.usefixtures("small_tree")
def test_other_version_is_extracted_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count_extractions(monkeypatch)
    embedded_text(tmp_path)
    monkeypatch.setattr("importlib.metadata.version", lambda name: "0.0.1")
    assert "numpy0.0.1-torch0.0.1" in embedded.cache_file_name()
    embedded_text(tmp_path)
    assert len(calls) == 2


@pytest.mark.usefixtures("small_tree")
@pytest.mark.parametrize("damage", ["empty", "text", "truncated", "flipped", "shortened", "binary"])
def test_damaged_cache_is_built_again(damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = embedded_text(tmp_path)
    path = tmp_path / embedded.cache_file_name()
    whole = path.read_bytes()
    middle = len(whole) // 2
    path.write_bytes(
        {
            "empty": b"",
            "text": b"no gzip file",
            "truncated": whole[:middle],
            "flipped": whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :],
            "shortened": gzip.compress(gzip.decompress(whole)[:-40]),
            "binary": gzip.compress(b"\xff\xfe"),
        }[damage]
    )
    calls = count_extractions(monkeypatch)
    assert embedded_text(tmp_path) == expected
    assert len(calls) == 1
    assert path.read_bytes() == whole


@pytest.mark.usefixtures("small_tree")
def test_unwritable_cache_is_no_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = embedded_text(tmp_path / "good")
    (tmp_path / "file").write_text("in the way")
    assert embedded_text(tmp_path / "file" / "cache") == expected

    def refuse(source: str, target: Path) -> None:
        raise PermissionError(13, "read-only")

    monkeypatch.setattr("os.replace", refuse)
    assert embedded_text(tmp_path / "locked") == expected
    assert list((tmp_path / "locked").iterdir()) == []


def test_default_cache_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEQCRITIC_CACHE", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "shared"))
    assert embedded.default_cache_directory() == tmp_path / "own"
    monkeypatch.delenv("SEQCRITIC_CACHE")
    assert embedded.default_cache_directory() == tmp_path / "shared" / "seqcritic"
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert embedded.default_cache_directory() == tmp_path / ".cache" / "seqcritic"


def test_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match="pip install numpy"):
        embedded.source_roots()


def write_often(path: Path) -> None:
    """Write the same cache file many times, as one of several processes."""
    sentences = ["This is the sentence in the cache."] * 1000
    for _ in range(100):
        embedded.write_cache(path, sentences, split_text(sentences).fingerprint)


def test_processes_do_not_disturb_each_other(tmp_path: Path) -> None:
    path = tmp_path / "cache.txt.gz"
    write_often(path)
    processes = [multiprocessing.get_context("spawn").Process(target=write_often, args=(path,)) for _ in range(2)]
    for process in processes:
        process.start()
    num_reads = 0
    while num_reads == 0 or any(process.is_alive() for process in processes):
        assert embedded.read_cache(path) is not None
        num_reads += 1
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    assert list(tmp_path.iterdir()) == [path]


def test_import_does_not_load_torch() -> None:
    program = "import sys, seqcritic.data.embedded as e; e.source_roots(); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_installed_text_is_large(installed_text: EmbeddedText) -> None:
    splits = (installed_text.train, installed_text.valid, installed_text.test)
    sentences = [sentence for split in splits for sentence in split]
    assert len(sentences) >= 20_000
    assert sum(len(sentence) + 1 for sentence in sentences) >= 3_500_000
    for split in splits[1:]:
        assert 0.04 < len(split) / len(sentences) < 0.06


def test_installed_text_has_disjoint_splits(installed_text: EmbeddedText) -> None:
    splits = (installed_text.train, installed_text.valid, installed_text.test)
    sentences = [" ".join(sentence.lower().split()) for split in splits for sentence in split]
    assert len(set(sentences)) == len(sentences)


def test_installed_text_has_all_sources(installed_text: EmbeddedText) -> None:
    """Look for a sentence of a topic of `help`, of an array method, of a tensor method and of a comment."""
    sentences = {*installed_text.train, *installed_text.valid, *installed_text.test}
    assert "Objects are Python's abstraction for data." in sentences
    assert "Returns the indices that would partition this array." in sentences
    assert "Returns a view of this tensor with its dimensions reversed." in sentences
    assert "Text ended with newline; don't count an extra line after it." in sentences
