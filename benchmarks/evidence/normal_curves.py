"""What a normal run of each method looks like: loss, sampled return, validation score and the method's own measure.

    python benchmarks/evidence/normal_curves.py RUNS    # read the runs, keep their points, draw
    python benchmarks/evidence/normal_curves.py         # draw again from the points that were kept

RUNS is the folder of a comparison. Its metrics, of one seed, become at most 60 points a curve, each the mean of the
records it stands for, in docs/results/league/normal-curves.json; from them docs/images/normal-curves.svg is drawn, a
row of four small charts a method.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from seqcritic.errors import UserError
from seqcritic.report.formats import format_compact
from seqcritic.report.scales import Range, nice_ticks
from seqcritic.report.svg import FAINT, GRID, PALETTE, Frame, draw_line, draw_svg, element, join, text_width, write_text
from seqcritic.settings.methods import MIXED, method_labels
from seqcritic.training.run_folder import read_settings
from seqcritic.training.tracking import Record, read_metrics

DOCS = Path(__file__).parents[2] / "docs"
OWN_MEASURES = {
    "likelihood": "actor_gradient_norm",
    "reinforce": "baseline_loss",
    "reinforce-critic": "explained_variance",
    "actor-critic": "explained_variance",
    "reinforce-multisample": "policy_entropy",
    "self-critical": "baseline",
    "scheduled-sampling": "reference_probability",
    "mixer": "reinforced_fraction",
    "minimum-risk": "distinct_candidates",
    "raml": "target_distance",
    "entropy-actor-critic": "policy_entropy",
    "dagger": "explained_variance",
    "direct-loss": "pairs_differing",
    "beam-search-optimization": "violations",
    "grpo": "policy_entropy",
    "ppo": "clipped_share",
    "optimal-completion": "optimal_share",
}
MOST_POINTS = 60
COLUMNS, PANEL, GAP = 4, (232, 104), (12, 62)  # width and height of a chart, and the room between charts

Points = list[list[float]]  # [update, value]


def measures_of(label: str) -> tuple[str, ...]:
    """Return the names of the four measures of a method, in the order of their charts."""
    loss = "likelihood_loss" if label == "likelihood" else "actor_loss"
    return (loss, "sampled_return", "valid_score", OWN_MEASURES[label.removesuffix(MIXED)])


def read_runs(folder: Path, seed: int | None) -> dict[str, Any]:
    """Return the points of every method of a comparison, of its first seed unless another is asked for."""
    seeds = sorted(int(path.name.removeprefix("seed-")) for path in folder.glob("seed-*"))
    if not seeds or (seed is not None and seed not in seeds):
        raise UserError(f"{folder} holds no run of {'any seed' if seed is None else f'seed {seed}'}; name a comparison")
    chosen = seeds[0] if seed is None else seed
    runs = {label: folder / f"seed-{chosen}" / label for label in method_labels()}
    methods = {label: read_points(label, read_metrics(run)) for label, run in runs.items() if run.is_dir()}
    if not methods:
        raise UserError(f"{folder}/seed-{chosen} holds no method's run; name a comparison")
    recipe = read_settings(runs[next(iter(methods))]).name
    return {"recipe": recipe, "seed": chosen, "methods": methods}


def read_points(label: str, records: Sequence[Record]) -> dict[str, Points]:
    """Return the points of the method's own training by the names of their measures."""
    trained = [record for record in records if record["phase"] == "train"]
    found = {}
    for name in measures_of(label):
        points = [[record["update"], record[name]] for record in trained if name in record]
        found[name] = thin([point for point in points if math.isfinite(point[1])])
    return {name: points for name, points in found.items() if points}


def thin(points: Points) -> Points:
    """Return at most MOST_POINTS points, means of neighbours, to four digits; the first and the last stay."""
    inner = points[1:-1]
    size = math.ceil(len(inner) / (MOST_POINTS - 2)) or 1
    groups = [points[:1], *(inner[at : at + size] for at in range(0, len(inner), size)), points[1:][-1:]]
    means = [[sum(column) / len(group) for column in zip(*group, strict=True)] for group in groups if group]
    return [[round(update, 1), float(f"{value:.4g}")] for update, value in means]


def draw(content: dict[str, Any]) -> Markup:
    """Draw a row of charts for each method."""
    methods: dict[str, dict[str, Points]] = content["methods"]
    (width, height), (across, down) = PANEL, GAP
    parts = []
    for row, (label, measured) in enumerate(methods.items()):
        top = 8 + row * (height + down)
        parts.append(write_text(label, 8, top + 14, "start", "axis-title"))
        for column, name in enumerate(measures_of(label)):
            left = 8 + column * (width + across)
            parts.append(draw_panel(name, measured.get(name, []), left, top + 20))
    total = (16 + COLUMNS * (width + across), 16 + len(methods) * (height + down))
    described = f"training of {', '.join(methods)} on {content['recipe']}, seed {content['seed']}, against updates"
    return draw_svg(*total, described, parts)


def whole_range(values: Sequence[float]) -> Range:
    """Return a range that holds all values: what a run went through is shown, however far it went."""
    low, high = min(values), max(values)
    margin = 0.05 * (high - low) or max(0.05 * abs(high), 0.5)
    return Range(low - margin, high + margin)


def draw_panel(name: str, points: Points, left: float, top: float) -> Markup:
    """Draw one chart, its name above it."""
    width, height = PANEL
    title = write_text(name, left, top + 12, "start", "tick")
    if not points:
        return join([title, write_text("not measured", left + width / 2, top + height / 2 + 12, "middle", "tick")])
    values = whole_range([value for _, value in points])
    ticks = nice_ticks(values, 3)
    panel = Frame(
        left=left + 6 + max(text_width(format_compact(tick)) for tick in ticks),
        top=top + 20,
        right=left + width,
        bottom=top + height,
        values=values,
        across=Range(0, max(points[-1][0], 1)),
    )
    parts = [title]
    for tick in ticks:
        parts.append(draw_line(panel.left, panel.y(tick), panel.right, panel.y(tick), "grid", GRID))
        parts.append(write_text(format_compact(tick), panel.left - 5, panel.y(tick) + 4.5, "end", "tick"))
    parts.append(draw_line(panel.left, panel.bottom, panel.right, panel.bottom, "axis", FAINT))
    last = points[-1][0]
    parts.append(write_text(f"{last:,.0f} updates", panel.right, panel.bottom + 15, "end", "tick"))
    places = (f"{panel.x(update):.1f} {panel.y(value):.1f}" for update, value in points)
    path = {"class": "curve main", "d": "M" + "L".join(places), "fill": "none", "stroke": PALETTE[0]}
    parts.append(element("path", {**path, "stroke-width": 1.6, "stroke-linejoin": "round"}))
    return element("g", {"class": "method method-0", "data-label": name}, join(parts))


def main(arguments: Sequence[str] | None = None) -> int:
    """Read runs where some are named, and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="?", help="the folder of a comparison")
    parser.add_argument("--seed", type=int, help="the seed whose runs are read; the first of them if not given")
    parser.add_argument("--points", type=Path, default=DOCS / "results/league/normal-curves.json")
    parser.add_argument("--out", type=Path, default=DOCS / "images/normal-curves.svg")
    options = parser.parse_args(arguments)
    try:
        if options.runs is not None:
            options.points.parent.mkdir(parents=True, exist_ok=True)
            content = json.dumps(read_runs(options.runs, options.seed), separators=(",", ":"))
            options.points.write_text(content.replace("]],", "]],\n") + "\n", encoding="utf-8")
        drawing = draw(json.loads(options.points.read_text(encoding="utf-8")))
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(drawing + "\n", encoding="utf-8")
    except (UserError, OSError) as error:
        print(f"normal_curves: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
