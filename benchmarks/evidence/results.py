"""The tables and curves of docs/results from the small result files that are committed beside them.

    python benchmarks/evidence/results.py            # write them anew
    python benchmarks/evidence/results.py --check    # leave with 1 where a page is not what its files say

A page has what is made here between two marks: `<!-- table FILE -->`, `<!-- headlines -->` or `<!-- spelling -->` and
`<!-- end -->`, FILE a `comparison.json` below docs/results. Each such file also has its curves, in docs/images.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path

from paper import SETTINGS, TABLE_1
from seqcritic.report.columns import Column, markdown_columns
from seqcritic.report.comparison import Comparison, MethodRow
from seqcritic.report.curves import draw_curves
from seqcritic.report.formats import format_count, format_p_value, format_score
from seqcritic.report.tables import markdown_table

DOCS = Path(__file__).parents[2] / "docs"
RESULTS = DOCS / "results"
BLOCK = re.compile(r"(<!-- (table|headlines|spelling)(?: (\S+))? -->\n).*?(<!-- end -->)", re.DOTALL)


def read(path: Path) -> Comparison:
    """Return a committed comparison."""
    return Comparison.from_dict(json.loads(path.read_text(encoding="utf-8")))


def reduction(comparison: Comparison, row: MethodRow) -> float:
    """Return by how many percent a row is better than the baseline."""
    baseline = comparison.baseline_row
    assert baseline is not None, "a comparison of one method has no reduction"
    change = 100 * (row.score - baseline.score) / baseline.score
    return -change if comparison.lower_is_better else change


def headlines() -> str:
    """Return one line for each comparison: the baseline, the best method and what lies between them."""
    columns: dict[str, list[str]] = {
        name: [] for name in ("study", "score", "seeds", "likelihood", "best method", "its score", "better by", "p")
    }
    for path in sorted(RESULTS.glob("*/comparison.json")):
        comparison = read(path)
        baseline, best = comparison.baseline_row, comparison.best_rows[0]
        assert baseline is not None, f"{path}: nothing to compare"
        cells = (
            path.parent.name,
            comparison.score_name,
            str(comparison.num_seeds),
            format_score(baseline.score),
            best.label,
            format_score(best.score),
            f"{reduction(comparison, best):.1f} %",
            format_p_value(best.p_value),
        )
        for column, cell in zip(columns.values(), cells, strict=True):
            column.append(cell)
    return markdown_columns([Column(name, name, tuple(cells)) for name, cells in columns.items()])


def spelling() -> str:
    """Return Table 1: every setting and method on both test sets, with the paper's reductions beside ours."""
    rows: list[tuple[str, ...]] = []
    for setting in SETTINGS:
        folder = RESULTS / f"spelling-{setting}"
        if not (folder / "comparison.json").is_file():
            continue
        domain, news = read(folder / "comparison.json"), read(folder / "news.json")
        for row in domain.rows:
            other = next(candidate for candidate in news.rows if candidate.label == row.label)
            is_baseline = row.label == domain.baseline
            paper = TABLE_1[setting].get(row.label)
            rows.append(
                (
                    setting,
                    row.label,
                    f"{format_score(row.score)} [{format_score(row.low)}, {format_score(row.high)}]",
                    "–" if is_baseline else f"{reduction(domain, row):.1f} %",
                    format_p_value(row.p_value),
                    f"{format_score(other.score)} [{format_score(other.low)}, {format_score(other.high)}]",
                    "–" if is_baseline else f"{reduction(news, other):.1f} %",
                    "–" if paper is None else f"{paper:.1f} %",
                    str(len(row.seed_scores)),
                    format_count(row.updates),
                )
            )
    headings = ("setting", "method", "CER ↓ in domain", "better by", "p", "CER ↓ news", "better by", "in the paper")
    names = (*headings, "seeds", "updates")
    return markdown_columns(
        [Column(name, name, cells) for name, cells in zip(names, zip(*rows, strict=True), strict=True)]
    )


def rendered(page: str) -> str:
    """Return a page with everything between its marks made anew."""

    def block(match: re.Match[str]) -> str:
        begin, kind, name, end = match.groups()
        made = {"headlines": headlines, "spelling": spelling}
        text = markdown_table(read(RESULTS / name), hidden=("minutes",)) if kind == "table" else made[kind]()
        return f"{begin}{text.rstrip()}\n{end}"

    return BLOCK.sub(block, page)


def pages() -> Iterator[tuple[Path, str]]:
    """Yield every file that is made here with its content."""
    for path in sorted(RESULTS.glob("*.md")):
        yield path, rendered(path.read_text(encoding="utf-8"))
    for path in sorted(RESULTS.glob("*/comparison.json")):
        comparison = read(path)
        yield DOCS / f"images/{path.parent.name}-curves.svg", draw_curves(comparison.curves, comparison.score_name)


def main() -> int:
    """Write, or check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, leave with 1 where something has changed")
    options = parser.parse_args()
    stale = [
        (path, content)
        for path, content in pages()
        if not path.is_file() or path.read_text(encoding="utf-8") != content
    ]
    for path, content in stale:
        print(f"{path.relative_to(DOCS.parent)}{' is not what its result files say' if options.check else ''}")
        if not options.check:
            path.write_text(content, encoding="utf-8")
    return int(options.check and bool(stale))


if __name__ == "__main__":
    raise SystemExit(main())
