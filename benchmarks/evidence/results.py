"""The tables and pictures of docs/results from the small result files that are committed beside them.

    python benchmarks/evidence/results.py            # write them anew
    python benchmarks/evidence/results.py --check    # leave with 1 where a page is not what its files say

A page has what is made here between two marks, `<!-- KIND -->` or `<!-- KIND FILE -->` and `<!-- end -->`, FILE below
docs/results. Kinds: `headlines`, `spelling` and `translation` stand over several files; `table` shows a comparison,
`ablation` an ablation, `gradients` a diagnosis, `errors` its squared errors with several samples, `estimators` all of
one checkpoint, `trials` runs that were tried, `trial-means` their means over seeds, `rates` those that a study chose
from, `samples` what samples returned, `token-values` what critics know of tokens, `enumeration` measured figures beside
exact ones, `pronunciation` error rates of words and phonemes, `privilege` what critics gain by reading the answer.
Pictures go to docs/images, named after the files they come from: the curves of every comparison.json, every
ablation.json, variance, bias and cosine of every diagnosis, every token-values.json, and every enumeration.json.
headline.json tells of every study, method and search in one list.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import enumeration_tables
import headline
import tables
from critics_picture import draw_critics
from seqcritic.report.ablation import list_ablation_columns
from seqcritic.report.charts import draw_ablation, draw_curves, draw_dot_plot
from seqcritic.report.comparison_tables import markdown_table
from seqcritic.report.diagnosis_tables import ESTIMATOR_PICTURES
from seqcritic.report.tables import markdown_columns

RESULTS = tables.RESULTS
IMAGES = RESULTS.parent / "images"
OVER_SEVERAL = {"headlines": tables.headlines, "spelling": tables.spelling, "translation": tables.translation}
OF_ONE_FILE = {
    "table": lambda path: markdown_table(tables.read_comparison(path), hidden=("minutes",)),
    "ablation": lambda path: markdown_columns(list_ablation_columns(tables.read_ablation(path))),
    "gradients": tables.gradients,
    "errors": tables.errors,
    "estimators": tables.estimators,
    "trials": tables.trials,
    "trial-means": tables.trial_means,
    "rates": tables.rates,
    "samples": tables.samples,
    "token-values": tables.token_values,
    "pronunciation": tables.pronunciation,
    "privilege": tables.privilege,
    "enumeration": enumeration_tables.enumeration,
}
KINDS = "|".join((*OVER_SEVERAL, *OF_ONE_FILE))
BLOCK = re.compile(rf"(<!-- ({KINDS})(?: (\S+))? -->\n).*?(<!-- end -->)", re.DOTALL)


def rendered(page: str) -> str:
    """Return a page with everything between its marks made anew."""

    def block(match: re.Match[str]) -> str:
        begin, kind, name, end = match.groups()
        text = OF_ONE_FILE[kind](RESULTS / name) if name else OVER_SEVERAL[kind]()
        return f"{begin}{text.rstrip()}\n{end}"

    return BLOCK.sub(block, page)


def pictures() -> Iterator[tuple[str, str]]:
    """Yield the name of every picture with its content."""
    for path in sorted(RESULTS.glob("*/comparison.json")):
        comparison = tables.read_comparison(path)
        score, curves, train_curves = comparison.score_name, comparison.curves, comparison.train_curves
        yield f"{path.parent.name}-curves", draw_curves(curves, score)
        if train_curves:
            yield (
                f"{path.parent.name}-training",
                draw_curves(train_curves, score, title=f"{score} on training examples"),
            )
    for path in sorted(RESULTS.glob("*/ablation.json")):
        yield path.parent.name, draw_ablation(tables.read_ablation(path))
    for path in sorted(RESULTS.glob("*/gradients*.json")):
        rows = tables.read_diagnosis(path).rows
        study = path.stem if path.parent.name == "gradients" else f"{path.parent.name}-{path.stem}"
        for kind in ("variance", "bias", "cosine") if len(rows) > 1 else ():
            picture = ESTIMATOR_PICTURES[kind]
            drawn = draw_dot_plot(
                [row.label for row in rows], picture.lines(rows), picture.title, "", picture.logarithmic
            )
            yield f"{study}-{kind}", drawn
    for path in sorted(RESULTS.glob("*/token-values.json")):
        yield f"{path.parent.name}-{path.stem}", draw_critics(path)
    for path in sorted(RESULTS.glob("*/enumeration.json")):
        yield f"{path.parent.name}-{path.stem}", enumeration_tables.draw_enumeration(path)


def pages() -> Iterator[tuple[Path, str]]:
    """Yield every file that is made here with its content."""
    for path in sorted(RESULTS.glob("*.md")):
        yield path, rendered(path.read_text(encoding="utf-8"))
    for name, content in pictures():
        yield IMAGES / f"{name}.svg", content
    yield headline.FILE, headline.render_headline()


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
        place = path.relative_to(RESULTS.parents[1])
        print(f"{place}{' is not what its result files say' if options.check else ''}")
        if not options.check:
            path.write_text(content, encoding="utf-8")
    return int(options.check and bool(stale))


if __name__ == "__main__":
    raise SystemExit(main())
