"""English prose that every installation already carries: the documentation of Python, NumPy and PyTorch.

The sentences come from docstrings, other long string literals and comment blocks, read from the source files
without importing or running them. What is found depends on the installed versions, so a text carries a
fingerprint; results on two machines are comparable only where the fingerprints agree.
"""

from __future__ import annotations

import ast
import gzip
import hashlib
import importlib.metadata
import importlib.util
import os
import platform
import re
import sysconfig
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from seqcritic.data.prose import extract_sentences
from seqcritic.errors import UserError

# Raise this number with every change of the extraction, so that texts cached before it are not used.
EXTRACTION_VERSION = 1
PACKAGES = ("numpy", "torch")
SKIPPED_FOLDERS = frozenset(
    {"__pycache__", "site-packages", "dist-packages", "test", "tests", "idle_test", "_testing", "_internal"}
)
SHORTEST_LITERAL = 80
VALID_PERCENT = 5
TEST_PERCENT = 5
COMMENT_BLOCK = re.compile(r"(?:^[ \t]*#(?: .*)?\n)+", re.MULTILINE)
COMMENT_MARK = re.compile(r"^[ \t]*# ?", re.MULTILINE)

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class EmbeddedText:
    """The embedded sentences in three disjoint splits, and a hash of all of them."""

    train: tuple[str, ...]
    valid: tuple[str, ...]
    test: tuple[str, ...]
    fingerprint: str


def embedded_text(cache_directory: Path | None = None, progress: Progress | None = None) -> EmbeddedText:
    """Return the embedded sentences, from the cache if it holds them, otherwise extracted and cached.

    `progress` is called with the number of files done and of all files, and only during an extraction. A
    cache that is damaged is built again; one that cannot be written only costs the time to extract.
    """
    path = (cache_directory or default_cache_directory()) / cache_file_name()
    cached = read_cache(path)
    if cached is not None:
        return cached
    sentences = embedded_sentences(progress)
    text = split_text(sentences)
    with suppress(OSError):
        write_cache(path, sentences, text.fingerprint)
    return text


def embedded_sentences(progress: Progress | None = None) -> list[str]:
    """Extract the unique sentences of all source files, in the order of packages, paths and lines."""
    paths = [path for root in source_roots() for path in list_source_files(root)]
    sentences: dict[str, str] = {}
    for number, path in enumerate(paths, start=1):
        for document in read_documents(path):
            for sentence in extract_sentences(document):
                sentences.setdefault(normalise(sentence), sentence)
        if progress is not None:
            progress(number, len(paths))
    return list(sentences.values())


def source_roots() -> list[Path]:
    """Return the folders of the standard library and of the packages, found without importing them."""
    roots = [Path(sysconfig.get_path("stdlib"))]
    for name in PACKAGES:
        specification = importlib.util.find_spec(name)
        if specification is None or specification.origin is None:
            raise UserError(f"the embedded text needs the package {name}; install it with: pip install {name}")
        roots.append(Path(specification.origin).parent)
    return roots


def list_source_files(root: Path) -> list[Path]:
    """Return the source files below a folder, without tests, in the order of their relative paths."""
    paths: list[Path] = []
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [name for name in subfolders if name not in SKIPPED_FOLDERS]
        paths.extend(Path(folder, name) for name in names if name.endswith((".py", ".pyi")))
    return sorted(paths, key=lambda path: path.relative_to(root).as_posix())


def read_documents(path: Path) -> list[str]:
    """Return the documentation in a source file from top to bottom; a file that does not parse has none."""
    try:
        source = path.read_bytes()
        with warnings.catch_warnings():
            # Other people's invalid escape sequences are no concern of our users.
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (OSError, SyntaxError, ValueError):
        return []
    # Python reads all line ends alike, so comments must not depend on them either.
    lines = source.decode("utf-8", errors="replace").replace("\r\n", "\n")
    documents = [*find_literals(tree), *find_comments(lines)]
    return [text for _, text in sorted(documents)]


def find_literals(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and text of every docstring, and of every other long literal over several lines.

    The latter are the documentation of compiled functions, of pickle opcodes and of the topics of `help`.
    """
    pending = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if isinstance(node.value.value, str):
                yield node.lineno, node.value.value
        elif isinstance(node, ast.expr) and node.lineno == node.end_lineno:
            # Most expressions take one line; not to look into them saves seconds.
            continue
        elif isinstance(node, ast.Constant):
            if isinstance(node.value, str) and len(node.value) >= SHORTEST_LITERAL:
                yield node.lineno, node.value
        elif not isinstance(node, ast.JoinedStr):
            # The pieces of a formatted string are cut in the middle of sentences.
            pending.extend(ast.iter_child_nodes(node))


def find_comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and text of every block of whole-line comments."""
    line, position = 1, 0
    for block in COMMENT_BLOCK.finditer(source):
        line += source.count("\n", position, block.start())
        position = block.start()
        yield line, COMMENT_MARK.sub("", block.group())


def normalise(sentence: str) -> str:
    """Return what two sentences that count as the same have in common."""
    return " ".join(sentence.lower().split())


def split_text(sentences: Iterable[str]) -> EmbeddedText:
    """Split sentences by a hash of each, so that none straddles and new versions move none across."""
    train: list[str] = []
    valid: list[str] = []
    test: list[str] = []
    for sentence in sentences:
        digest = hashlib.blake2b(normalise(sentence).encode(), digest_size=8).digest()
        percentile = int.from_bytes(digest, "big") % 100
        if percentile < VALID_PERCENT:
            valid.append(sentence)
        elif percentile < VALID_PERCENT + TEST_PERCENT:
            test.append(sentence)
        else:
            train.append(sentence)
    content = "\n\n".join("\n".join(split) for split in (train, valid, test))
    fingerprint = hashlib.blake2b(content.encode(), digest_size=16).hexdigest()
    return EmbeddedText(tuple(train), tuple(valid), tuple(test), fingerprint)


def default_cache_directory() -> Path:
    """Return `$SEQCRITIC_CACHE`, else the folder seqcritic in `$XDG_CACHE_HOME`, else in ~/.cache."""
    if own := os.environ.get("SEQCRITIC_CACHE"):
        return Path(own)
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared, "seqcritic")
    try:
        return Path.home() / ".cache" / "seqcritic"
    except RuntimeError:
        raise UserError("no home folder for the cache; set SEQCRITIC_CACHE to a folder for it") from None


def cache_file_name() -> str:
    """Name the cache file after all that decides its content."""
    versions = [f"python{platform.python_version()}"]
    versions += [f"{name}{importlib.metadata.version(name)}" for name in PACKAGES]
    return f"embedded-{EXTRACTION_VERSION}-{'-'.join(versions)}.txt.gz"


def read_cache(path: Path) -> EmbeddedText | None:
    """Return the cached text, or None where the file is absent, damaged or not what was written."""
    try:
        content = gzip.decompress(path.read_bytes()).decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError):
        return None
    fingerprint, *sentences = content.split("\n")
    text = split_text(sentences)
    return text if text.fingerprint == fingerprint else None


def write_cache(path: Path, sentences: list[str], fingerprint: str) -> None:
    """Write the cache file in one step, so that another process sees all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = gzip.compress("\n".join([fingerprint, *sentences]).encode(), mtime=0)
    descriptor, temporary = tempfile.mkstemp(prefix=path.name, suffix=".tmp", dir=path.parent)
    try:
        with open(descriptor, "wb") as stream:
            stream.write(content)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
