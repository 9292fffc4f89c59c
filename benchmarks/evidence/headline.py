"""docs/results/headline.json: one object for each study, method and search, for machines to read.

    {"study", "method", "metric", "search", "seeds", "baseline", "score", "gain", "p"}

`baseline` is the score of likelihood continued with the same compute, judged by the same search; `gain` is in points of
the metric and positive where the method is better; `p` is corrected for the number of methods of the study (Holm), null
where nothing was tested. Greedy and beam search come from a study's comparison.json, minimum Bayes risk from a
comparison of its own beside it, mbr.json.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

from seqcritic.report.comparison import Comparison
from tables import RESULTS, read_comparison

FILE = RESULTS / "headline.json"


def render_headline() -> str:
    """Return the file's content, an object a line."""
    lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in _objects())
    return f"[\n{lines}\n]\n"


def _objects() -> Iterator[dict[str, object]]:
    for folder in sorted(path.parent for path in RESULTS.glob("*/comparison.json")):
        greedy = read_comparison(folder / "comparison.json")
        yield from objects_of(folder.name, greedy, "greedy")
        if (by_beam := greedy.with_beam) is not None:
            yield from objects_of(folder.name, by_beam, "beam")
        if (by_risk := folder / "mbr.json").is_file():
            yield from objects_of(folder.name, read_comparison(by_risk), "mbr")


def objects_of(study: str, comparison: Comparison, search: str) -> Iterator[dict[str, object]]:
    """Yield what is told of every method of a comparison but the baseline itself."""
    baseline = comparison.baseline_row
    assert baseline is not None, f"{study}: nothing to compare"
    sign = -1 if comparison.lower_is_better else 1
    for row in comparison.rows:
        if row is baseline or not math.isfinite(row.score):
            continue
        p_value = comparison.p_value(row)
        yield {
            "study": study,
            "method": row.label,
            "metric": comparison.score_name,
            "search": search,
            "seeds": len(row.seed_scores),
            "baseline": round(baseline.score, 4),
            "score": round(row.score, 4),
            "gain": round(sign * (row.score - baseline.score), 4),
            "p": None if p_value is None else round(p_value, 6),
        }
