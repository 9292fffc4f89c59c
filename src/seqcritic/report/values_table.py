"""A prediction step by step as a table, after the paper's of best words by Q̂: for the terminal and for the page."""

import math
from collections.abc import Callable, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from seqcritic.report.formats import ABSENT
from seqcritic.report.markup import Markup, element, join, text
from seqcritic.report.scales import Range
from seqcritic.report.values import Candidate, Step, ValueTable, show_token

TAKEN_SIGN, NEXT_SIGN = "●", "◇"


def format_value(value: float) -> str:
    """Write a value of the critic with the paper's three decimals."""
    return f"{value:.3f}" if math.isfinite(value) else ABSENT


def format_probability(probability: float) -> str:
    """Write a probability with two decimals."""
    return f"{probability:.2f}" if math.isfinite(probability) else ABSENT


def format_reward(reward: float) -> str:
    """Write a reward with its sign, a whole one without decimals."""
    if not math.isfinite(reward):
        return ABSENT
    rounded = round(reward, 3) + 0.0  # adding zero turns a negative zero into a plain one
    return f"{rounded:+.3f}".rstrip("0").rstrip(".") if rounded else "0"


def format_sum(total: float) -> str:
    """Write a sum of rewards, a whole one without decimals."""
    return format_reward(total).removeprefix("+")


def values_table(table: ValueTable) -> Table:
    """Lay a prediction out for a terminal: a line for each token taken, and the score as the sum of the rewards."""
    caption = [
        f"score: {table.score_name}",
        "bold: the token taken; underlined: the reference's next token",
        table.note,
    ]
    grid = Table(
        title=_write_title(table),
        caption=Text("\n".join(line for line in caption if line)),
        box=box.SIMPLE_HEAD,
        show_edge=False,
        show_footer=True,
        title_justify="left",
        title_style="bold",
        caption_justify="left",
        padding=0,
    )
    grid.add_column("token", footer="score", overflow="fold")
    grid.add_column("Q̂", justify="right", no_wrap=True)
    grid.add_column("p", justify="right", no_wrap=True)
    grid.add_column("largest Q̂", overflow="fold")
    grid.add_column("likeliest", overflow="fold")
    grid.add_column("reward", justify="right", no_wrap=True, footer=format_sum(table.score))
    for step, following in zip(table.steps, table.expected, strict=True):
        grid.add_row(
            Text(show_token(step.token), style="bold"),
            format_value(step.value),
            format_probability(step.probability),
            _list_candidates(step.best, step, following, lambda one: format_value(one.value)),
            _list_candidates(step.likeliest, step, following, lambda one: format_probability(one.probability)),
            format_reward(step.reward),
        )
    return grid


def _write_title(table: ValueTable) -> Text:
    lines = (
        ("source", table.write(table.source)),
        ("reference", table.write(table.reference)),
        ("prediction", table.prediction),
    )
    return Text(table.title).append("".join(f"\n{name:10}  {content}" for name, content in lines), style="not bold")


def _list_candidates(
    candidates: Sequence[Candidate], step: Step, following: str, write: Callable[[Candidate], str]
) -> Text:
    entries = []
    for candidate in candidates:
        styles = ["bold"] * (candidate.token == step.token) + ["underline"] * (candidate.token == following)
        entry = Text(show_token(candidate.token), style=" ".join(styles))
        entries.append(entry.append(f"({write(candidate)})", style="not underline not bold"))
    return Text(" ").join(entries)


def render_steps(table: ValueTable) -> Markup:
    """Render the same table for the page, with a bar for every value and probability on one scale for all steps."""
    headings = (
        ("number", "step"),
        ("taken", "token taken"),
        ("best", "largest Q̂: what the critic would take"),
        ("likeliest", "largest probability: what the actor would take"),
        ("reward", "reward"),
        ("collected", "collected"),
    )
    values = [candidate.value for step in table.steps for candidate in (*step.best, step.taken)]
    scale = value_range(values)
    lines = []
    for index, (step, following) in enumerate(zip(table.steps, table.expected, strict=True)):
        cells = [
            element("td", {"class": "number"}, text(str(index + 1))),
            element("th", {"scope": "row", "class": "taken"}, _render_token(step.token)),
            _render_candidates("best critic", step.best, step, following, scale),
            _render_candidates("likeliest actor", step.likeliest, step, following, None),
            element("td", {"class": "reward"}, text(format_reward(step.reward))),
            element("td", {"class": "collected"}, text(format_sum(table.collected[index]))),
        ]
        lines.append(element("tr", {"data-step": str(index)}, *cells))
    heads = [element("th", {"scope": "col", "class": name}, text(heading)) for name, heading in headings]
    return element(
        "table",
        {"class": "steps"},
        element("thead", {}, element("tr", {}, *heads)),
        element("tbody", {}, Markup("\n"), join(lines), Markup("\n")),
    )


def value_range(values: Sequence[float]) -> Range:
    """Choose the drawn range of values: all of them, and zero."""
    finite = [value for value in values if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    return Range(min(low, 0.0), max(high, 0.0) if max(high, 0.0) > min(low, 0.0) else 1.0)


def _render_token(token: str) -> Markup:
    """Write a token; one too long to be shown whole is whole in its title."""
    shown = show_token(token)
    return element("span", {"class": "word", "title": shown} if len(shown) > 9 else {"class": "word"}, text(shown))


def _render_candidates(
    role: str, candidates: Sequence[Candidate], step: Step, following: str, scale: Range | None
) -> Markup:
    """Render the best candidates and, where it is not one of them, the token taken; no scale means probabilities."""
    listed = list(candidates)
    is_apart = step.token not in [candidate.token for candidate in listed]
    entries: list[Markup] = []
    for candidate in [*listed, step.taken] if is_apart else listed:
        amount = candidate.probability if scale is None else candidate.value
        written = format_probability(amount) if scale is None else format_value(amount)
        signs = []
        if candidate.token == step.token:
            signs.append(_render_sign("taken", TAKEN_SIGN))
        if candidate.token == following:
            signs.append(_render_sign("next in the reference", NEXT_SIGN))
        number = element("span", {"class": "amount"}, text(written))
        head = element("span", {"class": "head"}, _render_token(candidate.token), *signs, number)
        is_last = is_apart and len(entries) == len(listed)
        style = "candidate apart" if is_last else "candidate"
        entries.append(element("li", {"class": style}, head, _draw_bar(amount, scale or Range(0, 1))))
    return element("td", {"class": role}, element("ol", {"class": "candidates"}, *entries))


def _render_sign(meaning: str, sign: str) -> Markup:
    hidden = element("span", {"class": "unseen"}, text(f" ({meaning})"))
    return join([element("span", {"class": "sign", "aria-hidden": "true", "title": meaning}, text(sign)), hidden], "")


def _draw_bar(amount: float, scale: Range) -> Markup:
    """Draw a number from zero to where it lies on the scale; the number itself stands beside it."""
    if not math.isfinite(amount):
        return Markup("")
    zero, end = 100 * scale.fraction(0), 100 * scale.fraction(scale.clamp(amount))
    left, width = min(zero, end), abs(end - zero)
    bar = element("span", {"class": "fill", "style": f"left:{left:.1f}%;width:{width:.1f}%"})
    return element("span", {"class": "bar", "aria-hidden": "true"}, bar)
