"""Text files as lines: plain or gzipped UTF-8, with faults named by file and line."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path

from seqcritic.errors import UserError


def read_lines(path: str | Path, key: str) -> Iterator[str]:
    """Yield the lines of one plain or .gz file without their line ends; `key` is the setting that named it."""
    path = Path(path)
    if not path.exists():
        raise UserError(f"{key}: no such file: {path}; check the path, or give {key}=FILE if it has moved")
    if path.is_dir():
        raise UserError(f"{key}: {path} is a folder; name the text files in it")
    number = 0
    try:
        opened = gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # noqa: SIM115
        with opened as stream:
            for number, line in enumerate(stream, start=1):
                yield line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise UserError(
            f"{key}: {path}:{number}: not valid UTF-8 (byte {error.start + 1} of the line); "
            "convert the file, for example with iconv"
        ) from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{key}: {path}:{number + 1}: damaged gzip file ({error}); fetch it again") from None
    except OSError as error:
        raise UserError(f"{key}: cannot read {path}: {error.strerror or error}") from None
    if number == 0:
        raise UserError(f"{key}: {path} is empty; give a file with at least one line of text")


def read_all_lines(paths: tuple[str, ...], key: str) -> list[str]:
    """Return the lines of several files, one after the other."""
    return [line for path in paths for line in read_lines(path, key)]
