"""What the command knows of a corpus before it has seen it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from seqcritic.corpora.download import Download
from seqcritic.corpora.sets import Sets
from seqcritic.progress import Bar

Item = TypeVar("Item")


@dataclass(frozen=True)
class Size:
    """How large a part is where it was published, in words and as bounds; without `high` there is no upper one."""

    text: str
    low: int
    high: int | None = None

    def admits(self, count: int) -> bool:
        """Return whether a count is what was published."""
        return count >= self.low and (self.high is None or count <= self.high)


def exactly(count: int) -> Size:
    """Return the size of a part whose count is known."""
    return Size(f"{count:,}", count, count)


@dataclass
class Built:
    """What came of a corpus beside its sets: how much was read for training, what was left out, what to know."""

    num_read: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def count(self, title: str, items: Iterable[Item]) -> Iterator[Item]:
        """Yield what is read for training, and tell how much it is so far."""
        with Bar(title) as bar:
            for item in bar.over(items):
                self.num_read += 1
                yield item

    def leave_out(self, fault: str) -> None:
        """Count a pair that is not trained on."""
        self.left_out[fault] = self.left_out.get(fault, 0) + 1


@dataclass(frozen=True)
class Package:
    """An installed package that carries a corpus: where in it the file is, and how it is got."""

    name: str
    find: Callable[[], Path | None]
    advice: str


@dataclass(frozen=True)
class Corpus:
    """How to get and to recognise a corpus, and how to make its sets.

    `key_of` names the files of use and returns None for others; `missing` says in words what is not among the keys
    found and must be; `build` writes the sets.
    """

    name: str
    downloads: tuple[Download, ...]
    sides: tuple[str, ...]
    settings: Mapping[str, object]
    sizes: Mapping[str, Size]
    key_of: Callable[[str], str | None]
    missing: Callable[[AbstractSet[str]], str | None]
    build: Callable[[Mapping[str, Path], Sets], Built]
    software: Callable[[], str | None]
    package: Package | None = None
