"""Lines from a pipe as they arrive: all that are complete at once, so that a slow writer is answered at once."""

from __future__ import annotations

import os
from collections.abc import Iterator

from seqcritic.errors import UserError

CHUNK_BYTES = 1 << 16


def arriving_lines(descriptor: int) -> Iterator[list[str]]:
    """Yield lists of the complete lines that one read brought; a last line without an end counts too.

    Lines before one that cannot be read are yielded still.
    """
    pending = b""
    number = 0
    while True:
        chunk = os.read(descriptor, CHUNK_BYTES)
        *complete, pending = (pending + chunk).split(b"\n")
        if not chunk and pending:
            complete, pending = [*complete, pending], b""
        lines: list[str] = []
        fault: UserError | None = None
        for line in complete:
            number += 1
            try:
                lines.append(_decode(line, number))
            except UserError as error:
                fault = error
                break
        if lines:
            yield lines
        if fault:
            raise fault
        if not chunk:
            return


def _decode(line: bytes, number: int) -> str:
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r")
    except UnicodeDecodeError:
        raise UserError(f"standard input:{number}: not valid UTF-8; convert it, for example with iconv") from None
