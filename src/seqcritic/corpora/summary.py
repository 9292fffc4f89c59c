"""What the command prints when the sets are there: sizes beside the published ones, and what to know of them."""

from __future__ import annotations

from seqcritic.corpora.prepare import Prepared
from seqcritic.corpora.sets import SPLITS

ROWS = {"read": "read for training"} | {split: split for split in SPLITS}


def summary(prepared: Prepared) -> list[str]:
    """Return the lines to print."""
    record = prepared.record
    state = "prepared in" if prepared.is_new else "was prepared before, from the same source, in"
    lines = [f"{record['corpus']} {state} {prepared.folder}", "", *_table(prepared), ""]
    if record["left_out"]:
        faults = ", ".join(f"{count:,} {fault}" for fault, count in record["left_out"].items())
        lines.append(f"left out of training: {faults}")
    lines += [f"note: {note}" for note in record["notes"]]
    for part in record["differing"]:
        found, expected = record["counts"][part], record["expected"][part]
        lines.append(
            f"warning: {ROWS[part]}: {found:,}, not {expected}; the source is incomplete or another edition, "
            "so scores do not compare with published ones"
        )
    files = ", ".join(record["files"])
    return [*lines, f"files: {files}"]


def _table(prepared: Prepared) -> list[str]:
    rows = [("", "expected", "found")]
    for part, label in ROWS.items():
        rows.append((label, prepared.record["expected"].get(part, "-"), f"{prepared.record['counts'][part]:,}"))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return [f"{a:{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}".rstrip() for a, b, c in rows]
