"""The table of claims in Markdown, from the rows alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from side_by_side.claims import Row
from side_by_side.layers import matrices

HEADINGS = "| claim | threads | clock | measured | quartiles | target | met |\n|---|---:|---|---:|---:|---:|---|"


def render(rows: Sequence[Row]) -> str:
    """Return the table and the notes below it, each note once and numbered."""
    notes = list(dict.fromkeys(note for row in rows for note in row.notes))
    lines = [HEADINGS, *(_line(row, notes) for row in rows)]
    if notes:
        lines += ["", *(f"{number}. {note}." for number, note in enumerate(notes, start=1))]
    return "\n".join(lines) + "\n"


def render_times(rows: Sequence[Row]) -> str:
    """Return the medians behind the ratios, in milliseconds of CPU and wall time."""
    lines = ["| claim | threads | what | CPU ms | wall ms |", "|---|---:|---|---:|---:|"]
    for row in rows:
        for side, times in row.details.get("times", {}).items():
            cells = (row.claim, row.threads, side, f"{times['cpu_ms']:,.1f}", f"{times['wall_ms']:,.1f}")
            lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def render_report(report: dict[str, Any]) -> str:
    """Return a whole report as Markdown: conditions, table, times."""
    rows = [Row.from_dict(tree) for tree in report["rows"]]
    parts = [_conditions(report), "", render(rows), "The medians behind the ratios:", "", render_times(rows)]
    return "\n".join([*parts, "The models, a shared matrix counted once:", "", render_models(report["models"])])


def render_models(models: Sequence[dict[str, Any]]) -> str:
    """Return every side's parameters and weight matrices."""
    lines = ["| side | workload | parameters | weight matrices |", "|---|---|---:|---|"]
    for model in models:
        workload = model["workload"] + (", tied" if model["tied"] else "")
        lines.append(f"| {model['side']} | {workload} | {model['parameters']:,} | {matrices(model['layers'])} |")
    return "\n".join(lines) + "\n"


def _line(row: Row, notes: list[str]) -> str:
    marks = ", ".join(str(notes.index(note) + 1) for note in row.notes)
    target = "" if row.target is None else f"{'≥' if row.sense == 'at least' else '≤'} {_figure(row.target, row.unit)}"
    met = {None: "", True: "yes", False: "**no**"}[row.met]
    spread = f"{_figure(row.low, '')} – {_figure(row.high, '')}" if row.low != row.high else ""
    claim = row.claim + (f" [{marks}]" if marks else "")
    clock = {"cpu": "CPU", "wall": "wall", "none": ""}[row.clock]
    cells = (claim, row.threads, clock, _figure(row.measured, row.unit), spread, target, met)
    return "| " + " | ".join(map(str, cells)) + " |"


def _figure(value: float, unit: str) -> str:
    return f"{value:.2f}{unit}"


def _conditions(report: dict[str, Any]) -> str:
    machine, load = report["machine"], report["load"]
    others = load["other_cores_mean"]
    rounds = f"{report['effort']:g} × the usual rounds" if report["effort"] else "one round each"
    busy = "not known" if others is None else f"{others:.2f} cores"
    return (
        f"{report['date']}, {machine['processor']}, {machine['cores']} cores, Python {machine['python']}, "
        f"{rounds}; load average before {load['average_before'][0]:.2f}, "
        f"other processes meanwhile: {busy}."
        + ("" if others is None or others <= load["tolerated"] else " **Not an idle machine.**")
    )
