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
        # Read as bytes and decoded line by line, so that a fault of encoding has its line.
        opened = gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # noqa: SIM115
        with opened as stream:
            for number, line in enumerate(stream, start=1):
                if number == 1:
                    _refuse_other_forms(line, f"{key}: {path}")
                # A byte order mark at the beginning is no text; the line's end may be that of Windows.
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


def _refuse_other_forms(line: bytes, place: str) -> None:
    """Refuse a file whose first line shows that it is no text of lines in UTF-8."""
    # A byte order mark, or many zeros: every second byte of Latin letters in UTF-16.
    if line[:2] in (b"\xff\xfe", b"\xfe\xff") or 4 * line.count(0) > len(line):
        raise UserError(f"{place}: it looks like UTF-16; convert the file, for example with iconv -f UTF-16 -t UTF-8")
    if b"\n" not in line and b"\r" in line.rstrip(b"\r"):
        raise UserError(f"{place}: its lines end in CR alone, as on an old Mac; convert them, by tr '\\r' '\\n'")


def read_all_lines(paths: tuple[str, ...], key: str) -> list[str]:
    """Return the lines of several files, one after the other."""
    return [line for path in paths for line in read_lines(path, key)]
