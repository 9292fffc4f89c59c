"""The critic on view: one prediction as an HTML page that needs nothing but itself.

Blue is the actor and orange the critic, everywhere. A step is chosen by pointer or arrow keys, and everything that
belongs to it lights up: where the actor looks in the source, where the critic looks in the reference, its line of the
table and its place in the drawing. Without the script the page shows the first step, and all of the rest.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from seqcritic.report.document import compose_document
from seqcritic.report.formats import format_compact
from seqcritic.report.frame import Frame
from seqcritic.report.labels import shorten, text_width
from seqcritic.report.markup import Attributes, Markup, element, join, text
from seqcritic.report.scales import nice_ticks
from seqcritic.report.values import ValueTable, show_token
from seqcritic.report.values_table import (
    NEXT_SIGN,
    TAKEN_SIGN,
    format_probability,
    format_reward,
    format_sum,
    format_value,
    render_steps,
    value_range,
)

_STRONG = 0.65  # a cell with more weight than this is too dark for dark text
_MANY_COLUMNS = 26
_STRIP_WIDTH = 880.0


def render_values(table: ValueTable) -> str:
    """Render the whole page."""
    sections = [
        _render_header(table),
        _render_strips(table),
        _render_chart(table),
        _render_table(table),
        _render_matrices(table),
    ]
    styles = ("page.css", "curves.css", "examples.css", "values.css")
    return compose_document(
        table.title, styles, "values.js", sections, "values spelled" if table.is_spelled else "values"
    )


def _render_header(table: ValueTable) -> Markup:
    first, num_steps = table.steps[0], len(table.steps)
    headline = (
        f"The prediction scores {format_sum(table.score)}. Before its first token the critic, who knows the "
        f"reference, forecast {format_value(first.value)}."
    )
    num_agreed = sum(step.token == step.best[0].token for step in table.steps if step.best)
    num_known = sum(
        following in [candidate.token for candidate in step.best]
        for step, following in zip(table.steps, table.expected, strict=True)
    )
    num_best = max(len(step.best) for step in table.steps)
    remarks = [
        f"Score: {table.score_name}. The rewards of all tokens add up to it.",
        "Q̂ of a token is the critic's forecast of the rewards from that token on, if the actor then went on by drawing "
        "tokens from its probabilities. Where it takes the likeliest instead, more may come than was forecast.",
        f"At {num_agreed} of {num_steps} steps the token taken is also the critic's first choice; at {num_known} "
        f"the reference's next token is among the critic's {num_best} best.",
        table.note,
    ]
    return element(
        "header",
        {},
        element("h1", {}, text(table.title)),
        element("p", {"class": "headline"}, text(headline)),
        element("ul", {"class": "remarks"}, *(element("li", {}, text(remark)) for remark in remarks if remark)),
    )


def _render_strips(table: ValueTable) -> Markup:
    """Render source, prediction and reference, the attention of the first step laid over two of them."""
    first = table.steps[0]
    buttons = []
    for index, step in enumerate(table.steps):
        attributes: Attributes = {
            "type": "button",
            "data-step": str(index),
            "data-summary": _summarise(table, index),
            "tabindex": "-1" if index else "0",
        }
        if index == 0:
            attributes["aria-current"] = "step"
        cells = (_show("token", show_token(step.token)), _show("weight", format_reward(step.reward)))
        buttons.append(element("li", {}, element("button", attributes, *cells)))
    rows = [
        _render_strip(
            "source actor", "Source", "% of the actor's attention", _cells(table.source, first.source_attention)
        ),
        _render_strip("prediction", "Prediction", "reward of each token", buttons),
        _render_strip(
            "reference critic",
            "Reference",
            "% of the critic's attention",
            _cells(table.reference, first.reference_attention),
        ),
    ]
    summary = element("p", {"class": "summary", "aria-live": "polite"}, text(_summarise(table, 0)))
    hint = text("Point at a token of the prediction, or move through it with the arrow keys.")
    # What would take more than two lines is one long line, so that the strips leave room for the rest of the page.
    texts = (table.source, table.reference, [step.token for step in table.steps])
    room = max(sum(max(text_width(token) * 1.1 + 12, 27.0) for token in tokens) for tokens in texts)
    return element(
        "section",
        {
            "id": "follow",
            "class": "long" if room > 2 * _STRIP_WIDTH else "",
            "aria-label": "The example, with attention at the chosen step",
        },
        element("p", {"class": "hint", "hidden": ""}, hint),
        join(rows),
        summary,
    )


def _render_strip(role: str, name: str, meaning: str, cells: Sequence[Markup]) -> Markup:
    heading = element("h2", {}, text(name), element("small", {}, text(meaning)))
    return element("div", {"class": f"strip {role}"}, heading, element("ol", {}, *cells))


def _cells(tokens: Sequence[str], weights: Sequence[float]) -> list[Markup]:
    return [
        element(
            "li",
            _shade(weight),
            _show("token", show_token(token)),
            _show("weight", _write_percent(weight)),
        )
        for token, weight in zip(tokens, weights, strict=True)
    ]


def _summarise(table: ValueTable, index: int) -> str:
    step = table.steps[index]
    return (
        f"Step {index + 1} of {len(table.steps)} takes “{show_token(step.token)}”. "
        f"The actor gives it probability {format_probability(step.probability)}; "
        f"the critic expects {format_value(step.value)} from here on, and {format_sum(table.remaining[index])} came."
    )


def _render_table(table: ValueTable) -> Markup:
    key = [
        (TAKEN_SIGN, "the token taken"),
        (NEXT_SIGN, "what the reference has next, after the part of it nearest to what is written so far"),
        (show_token(""), "the end of the text"),
    ]
    if any(" " in token for token in (*table.source, *table.reference)):
        key.append((show_token(" "), "a space"))
    entries = [element("li", {}, element("b", {}, text(sign)), text(f" {meaning}")) for sign, meaning in key]
    return element(
        "section",
        {"id": "steps"},
        element("h2", {}, text("Step by step")),
        element("ul", {"class": "key"}, *entries),
        element("div", {"class": "scroll"}, render_steps(table)),
    )


def _render_matrices(table: ValueTable) -> Markup:
    sources = [step.source_attention for step in table.steps]
    references = [step.reference_attention for step in table.steps]
    figures = [
        _render_matrix("actor", "The actor over the source", table, table.source, sources),
        _render_matrix("critic", "The critic over the reference", table, table.reference, references),
    ]
    remark = "A row for each step: how the attention, in percent, was spread before its token was taken."
    return element(
        "section",
        {"id": "attention"},
        element("h2", {}, text("Attention at every step")),
        element("p", {"class": "remark"}, text(remark)),
        element("div", {"class": "matrices"}, *figures),
    )


def _render_matrix(
    role: str, caption: str, table: ValueTable, tokens: Sequence[str], rows: Sequence[Sequence[float]]
) -> Markup:
    heads = [element("th", {"scope": "col"}, _show("token", show_token(token))) for token in tokens]
    lines = []
    for index, (step, weights) in enumerate(zip(table.steps, rows, strict=True)):
        cells = [element("td", _shade(weight), _show("weight", _write_percent(weight))) for weight in weights]
        head = element("th", {"scope": "row"}, _show("token", show_token(step.token)))
        lines.append(element("tr", {"data-step": str(index)}, head, *cells))
    grid = element(
        "table",
        {"class": "many" if len(tokens) > _MANY_COLUMNS else "few"},
        element("thead", {}, element("tr", {}, element("td", {}), *heads)),
        element("tbody", {}, Markup("\n"), join(lines), Markup("\n")),
    )
    figure = element("div", {"class": "scroll"}, grid)
    return element("figure", {"class": f"matrix {role}"}, element("figcaption", {}, text(caption)), figure)


def _show(role: str, content: str) -> Markup:
    return element("span", {"class": role}, text(content))


def _shade(weight: float) -> Attributes:
    """Return the attributes of a cell that the style sheet shades by its weight."""
    shown = weight if math.isfinite(weight) else 0.0
    attributes: Attributes = {"style": f"--w:{shown:.3f}"}
    return attributes | {"class": "strong"} if shown > _STRONG else attributes


def _write_percent(weight: float) -> str:
    return f"{100 * weight:.0f}" if math.isfinite(weight) and weight >= 0.005 else ""


def _render_chart(table: ValueTable) -> Markup:
    key = [
        ("method-1", "Q̂ of the token taken: what the critic expects from this step on"),
        ("method-5 dashed", "what came from this step on"),
        ("method-2", "collected so far; the bars are the rewards"),
    ]
    entries = [
        element("li", {}, element("span", {"class": f"line {style}", "aria-hidden": "true"}), text(meaning))
        for style, meaning in key
    ]
    drawings = [
        element("div", {"class": "wide"}, _draw_chart(table, 960, 330)),
        element("div", {"class": "narrow"}, _draw_chart(table, 420, 300)),
    ]
    return element(
        "section",
        {"id": "forecast"},
        element("h2", {}, text("Forecast and truth")),
        element("ul", {"class": "key"}, *entries),
        element("figure", {}, *drawings),
    )


@dataclass(frozen=True, slots=True)
class _StepFrame(Frame):
    """The rectangle of a chart whose horizontal axis has a slot for every step."""

    num_steps: int

    @property
    def slot(self) -> float:
        return (self.right - self.left) / self.num_steps

    def x(self, step: int) -> float:
        return self.left + (step + 0.5) * self.slot


def _draw_chart(table: ValueTable, width: int, height: int) -> Markup:
    """Draw forecast, truth and rewards over the steps; the tokens taken stand beneath."""
    values = [step.value for step in table.steps]
    rewards = [step.reward for step in table.steps]
    drawn = value_range([*values, *rewards, *table.collected, *table.remaining])
    names = [shorten(show_token(step.token), 96) for step in table.steps]
    longest = max(text_width(name) for name in names)
    ticks = nice_ticks(drawn, 6)
    frame = _StepFrame(
        left=20 + max(text_width(format_compact(tick)) for tick in ticks),
        top=14,
        right=width - 8,
        bottom=height - (30 if longest < 12 else 14 + 0.8 * longest),
        values=drawn,
        num_steps=len(names),
    )
    parts = []
    for tick in ticks:
        y = frame.y(tick)
        line: Attributes = {"class": "grid" if tick else "axis", "x1": frame.left, "x2": frame.right, "y1": y, "y2": y}
        parts.append(element("line", line))
        parts.append(_write(format_compact(tick), {"x": frame.left - 8, "y": y + 4.5, "text-anchor": "end"}))
    parts += [_draw_column(table, index, frame) for index in range(len(names))]
    parts += _write_names(names, frame, is_slanted=longest >= 12)
    parts.append(_draw_line(table.remaining, frame, "method-5", "6 4"))
    parts.append(_draw_line(table.collected, frame, "method-2", ""))
    parts.append(_draw_line(values, frame, "method-1", ""))
    label = "value of the token taken, rewards still to come and rewards collected, at each step"
    attributes: Attributes = {
        "class": "curves",
        "viewBox": f"0 0 {width} {height}",
        "role": "img",
        "aria-label": label,
        "font-size": 13,
    }
    return element("svg", attributes, Markup("\n"), join(parts), Markup("\n"))


def _draw_column(table: ValueTable, index: int, frame: _StepFrame) -> Markup:
    """Draw one step's reward, and the ground by which the pointer finds the step."""
    reward = table.steps[index].reward
    x, slot = frame.x(index), frame.slot
    whole: Attributes = {"class": "ground", "x": x - slot / 2, "width": slot, "y": frame.top}
    parts = [element("rect", {**whole, "height": frame.bottom - frame.top})]
    if math.isfinite(reward):
        top, bottom = frame.y(max(reward, 0)), frame.y(min(reward, 0))
        bar: Attributes = {"class": "reward", "x": x - 0.28 * slot, "width": 0.56 * slot, "y": top}
        parts.append(element("rect", {**bar, "height": bottom - top}))
    title = element("title", {}, text(_summarise(table, index)))
    return element("g", {"class": "column", "data-step": str(index)}, title, *parts)


def _write_names(names: Sequence[str], frame: _StepFrame, is_slanted: bool) -> list[Markup]:
    """Write the tokens beneath their steps, as many as have room."""
    every = math.ceil((15 if is_slanted else 10) / frame.slot)
    labels = []
    for index in range(0, len(names), every):
        x, y = frame.x(index), frame.bottom + (12 if is_slanted else 20)
        place: Attributes = {"x": x, "y": y, "text-anchor": "end" if is_slanted else "middle"}
        if is_slanted:
            place["transform"] = f"rotate(-50 {x:.1f} {y:.1f})"
        # A slanted name reaches to the left of its step, which the first ones have little room for.
        labels.append(_write(shorten(names[index], x / 0.8) if is_slanted else names[index], place))
    return labels


def _draw_line(values: Sequence[float], frame: _StepFrame, style: str, dash: str) -> Markup:
    places = [(frame.x(index), frame.y(value)) for index, value in enumerate(values) if math.isfinite(value)]
    path: Attributes = {"class": "curve main", "d": "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)}
    path |= {"fill": "none", "stroke-width": 2.2, "stroke-linejoin": "round"}
    if dash:
        path["stroke-dasharray"] = dash
    dots = [element("circle", {"class": "point", "cx": x, "cy": y, "r": 3}) for x, y in places]
    return element("g", {"class": f"method {style}"}, element("path", path), *([] if dash else dots))


def _write(content: str, place: Attributes) -> Markup:
    return element("text", {"class": "tick", **place}, text(content))
