"""Archives from their addresses: resumable, checked where the checksum is known."""

from __future__ import annotations

import http.client
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seqcritic.corpora.collection import CHUNK
from seqcritic.corpora.sources import digest
from seqcritic.errors import UserError
from seqcritic.progress import Bar, log

TIMEOUT_SECONDS = 30.0
RESUMED = 206
NOTHING_LEFT = 416


@dataclass(frozen=True)
class Download:
    """Where an archive is; `sha256` is None where nobody has published it."""

    address: str
    sha256: str | None = None

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.address.rpartition("/")[2]


def fetch(downloads: Sequence[Download], folder: Path) -> list[Path]:
    """Return the files, fetching what is not there yet; an interrupted command leaves `NAME.partial` to resume."""
    for download in downloads:
        if not (folder / download.name).is_file():
            _fetch_one(download, folder)
    return [folder / download.name for download in downloads]


def _fetch_one(download: Download, folder: Path) -> None:
    partial = folder / f"{download.name}.partial"
    try:
        total = _transfer(download.address, partial)
    # Before URLError, which it is one of: with a server's answer there is more to say.
    except urllib.error.HTTPError as error:
        raise _cannot_fetch(download, f"the server answers {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise _cannot_fetch(download, str(error.reason)) from None
    except (ConnectionError, TimeoutError, http.client.HTTPException) as error:
        raise _broken_off(download, partial, str(error) or type(error).__name__) from None
    size = partial.stat().st_size
    if total is not None and size != total:
        raise _broken_off(download, partial, f"{size:,} of {total:,} bytes")
    # Of the whole file, for the beginning of a resumed one may be of another edition.
    if download.sha256 is not None and digest(partial) != download.sha256:
        partial.unlink()
        raise UserError(
            f"{download.address}: the SHA-256 of what came is not {download.sha256}; it was removed: "
            "give the same command again, or the right archive as the source"
        )
    # Under its name there is only what is whole, so that a file that is there need not be asked for again.
    partial.rename(folder / download.name)
    log.info(f"fetched {download.name}, {size / 1e6:,.1f} MB")


def _transfer(address: str, partial: Path) -> int | None:
    """Append what is missing to `partial` and return how long the whole file should be, if the server says so."""
    start = partial.stat().st_size if partial.exists() else 0
    headers = {"User-Agent": "seqcritic"} | ({"Range": f"bytes={start}-"} if start else {})
    request = urllib.request.Request(address, headers=headers)
    log.info(f"fetching {address}" + (f" from {start / 1e6:,.1f} MB on" if start else ""))
    try:
        answer = urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS)
    except urllib.error.HTTPError as error:
        if error.code != NOTHING_LEFT or not start:
            raise
        # All of it is here already, or more than there is: then a file of another origin.
        if error.headers.get("Content-Range", "") == f"bytes */{start}":
            return start
        partial.unlink()
        return _transfer(address, partial)
    with answer:
        # A server that cannot resume sends the whole file again.
        size = start if answer.status == RESUMED else 0
        length = answer.headers.get("Content-Length", "")
        # The length is that of what is still to come; servers that send in chunks tell none.
        total = size + int(length) if length.isdecimal() else None
        partial.parent.mkdir(parents=True, exist_ok=True)
        bar = Bar(f"fetching {partial.stem}", total, "bytes", start=size)
        with partial.open("ab" if size else "wb") as file, bar:
            while chunk := answer.read(CHUNK):
                bar.update(bar.done + file.write(chunk))
    return total


def _cannot_fetch(download: Download, reason: str) -> UserError:
    return UserError(
        f"cannot fetch {download.address}: {reason}; with a network, give the same command again; "
        "with the archive at hand, name it as the source"
    )


def _broken_off(download: Download, partial: Path, reason: str) -> UserError:
    return UserError(
        f"{download.address}: the connection broke off ({reason}); "
        f"{partial} is kept: give the same command again to resume"
    )
