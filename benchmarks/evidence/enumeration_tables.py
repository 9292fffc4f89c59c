"""Table and picture of docs/results/gradients/enumeration.json: exact figures beside measured ones."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from seqcritic.report.charts import Dot, DotLine, draw_dot_plot
from seqcritic.report.diagnosis import CERTAIN, Figure
from seqcritic.report.diagnosis_tables import MEANINGS, format_figure, format_number
from seqcritic.report.tables import Column, markdown_columns


@dataclass(frozen=True, slots=True)
class Compared:
    """One estimator with one critic: what is exact and what was measured, in units of the true gradient's length."""

    noise: float
    name: str
    is_truth: bool  # whether the others were measured against it
    exact: dict[str, float]
    measured: dict[str, Figure]

    @property
    def bias(self) -> Figure:
        """The measured length of the bias; its error is that of a square root, and none where the square is noise."""
        square = self.measured["bias_square"]
        if square.value <= CERTAIN * square.error:
            return Figure(math.sqrt(max(square.value + CERTAIN * square.error, 0.0)), math.nan)
        length = math.sqrt(square.value)
        return Figure(length, square.error / (2 * length))


def read_enumeration(path: Path) -> tuple[Compared, ...]:
    """Return every estimator with every critic, in the order of the file."""
    return tuple(_read_rows(path))


def _read_rows(path: Path) -> Iterator[Compared]:
    for row in json.loads(path.read_text(encoding="utf-8"))["rows"]:
        for entry in row["estimators"]:
            measured = {name: Figure(*pair) for name, pair in entry["measured"].items() if name != "bias"}
            yield Compared(row["noise"], entry["name"], entry["name"] == row["truth"], entry["exact"], measured)


def enumeration(path: Path) -> str:
    """Return one line for each critic and estimator."""
    rows = [
        (
            f"{row.noise:g}",
            MEANINGS[row.name],
            _both(row.exact["variance"], format_figure(row.measured["variance"])),
            _both(row.exact["bias"], _measured_bias(row)),
            _both(row.exact["cosine"], "the truth" if row.is_truth else format_figure(row.measured["cosine"])),
        )
        for row in read_enumeration(path)
    ]
    headings = ("critic's error", "estimator", "variance: exact / measured", "bias", "cosine")
    columns = zip(headings, zip(*rows, strict=True), strict=True)
    return markdown_columns([Column(name, name, cells) for name, cells in columns])


def draw_enumeration(path: Path) -> Markup:
    """Draw bias² and variance of actor-critic and the variance of REINFORCE with the critic, over the critic's error.

    Measured ones have bounds of two standard errors. The axis is logarithmic: what is not above 0 is left out.
    """
    rows = read_enumeration(path)
    noises = list(dict.fromkeys(row.noise for row in rows))
    lines = []
    for name, figure, title in (
        ("actor-critic", "bias_square", "bias² of actor-critic"),
        ("actor-critic", "variance", "variance of actor-critic"),
        ("reinforce-critic", "variance", "variance of REINFORCE, critic"),
    ):
        shown = [row for row in rows if row.name == name]
        exact = tuple(Dot(row.exact[figure]) for row in shown)
        measured = tuple(_dot(row.measured[figure]) for row in shown)
        lines.append(DotLine(f"{title}, exact", exact, len(lines)))
        lines.append(DotLine(f"{title}, measured", measured, len(lines)))
    noises_shown, title = [f"{noise:g}" for noise in noises], "bias² and variance of one draw / ‖∇V‖²"
    return draw_dot_plot(noises_shown, lines, title, "standard deviation of the critic's error", logarithmic=True)


def _measured_bias(row: Compared) -> str:
    if row.is_truth:
        return "the truth"
    bias = row.bias
    return format_figure(bias) if math.isfinite(bias.error) else f"<{format_number(bias.value)}"


def _both(exact: float, measured: str) -> str:
    return f"{format_number(exact)} / {measured}"


def _dot(figure: Figure) -> Dot:
    reach = CERTAIN * figure.error
    return Dot(figure.value, figure.value - reach, figure.value + reach)
