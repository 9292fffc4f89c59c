"""Print the Markdown of a report that `make bench` wrote.

    python benchmarks/render.py [benchmarks/results/bench.json]
    python benchmarks/render.py --into docs/speed.md

With `--into`, the part of the page between its two `bench` marks is replaced.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from side_by_side.session import REPORT
from side_by_side.table import render_report

BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"


def main() -> None:
    """Print, or put into a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path, nargs="?", default=REPORT)
    parser.add_argument("--into", type=Path, help="a Markdown page with the two marks")
    options = parser.parse_args()
    text = render_report(json.loads(options.report.read_text(encoding="utf-8")))
    if options.into is None:
        print(text, end="")
    else:
        page = options.into.read_text(encoding="utf-8")
        options.into.write_text(replaced(page, text), encoding="utf-8")


def replaced(page: str, text: str) -> str:
    """Return the page with the text between its marks."""
    if page.count(BEGIN) != 1 or page.count(END) != 1 or page.index(BEGIN) > page.index(END):
        raise SystemExit(f"the page needs one line {BEGIN} and below it one line {END}")
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n{text}{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    main()
