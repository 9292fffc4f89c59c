"""Every page as one HTML document that needs nothing but itself, no network and no other file.

What a page looks like stands in its template, which escapes all text; here is what the templates are given.
"""

import base64
import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from seqcritic.report.charts import Dot, DotLine, draw_curves, draw_dot_plot, draw_forecast, draw_interval
from seqcritic.report.comparison import Comparison, Curve, MethodRow
from seqcritic.report.comparison_tables import (
    list_columns,
    list_signatures,
    list_valid_signatures,
    name_beam,
    write_spread,
)
from seqcritic.report.diagnosis import SAMPLES, Diagnosis, DiagnosisRow
from seqcritic.report.diagnosis_tables import (
    ESTIMATOR_PICTURES,
    LEGEND,
    MEANINGS,
    describe_row,
    list_estimator_columns,
    write_verdict,
)
from seqcritic.report.differences import Difference, Kind, Piece, compare_characters, compare_words
from seqcritic.report.formats import (
    format_percent,
    format_probability,
    format_reward,
    format_score,
    format_sum,
    format_value,
)
from seqcritic.report.headline import list_caveats, write_headline
from seqcritic.report.scales import Range, value_range
from seqcritic.report.svg import PALETTE, replace_forbidden, style_of, text_width
from seqcritic.report.tables import CHOSEN_SIGN, NEXT_SIGN, Column
from seqcritic.report.values import ValueTable, show_token

BENEATH = ("seeds", "spread", "beam-seeds", "beam-spread", "critic")  # columns that stand beneath the label
_MANY_COLUMNS = 26  # of a matrix of attention, beyond which its cells are narrower
_STRIP_WIDTH = 880.0  # of a line of tokens, in pixels


def render_page(comparison: Comparison) -> str:
    """Render a comparison."""
    name, order, curves = comparison.score_name, comparison.labels, comparison.curves
    # A character error rate judges corrections: the source is a flawed copy of the reference, to be marked too.
    is_correction = name == "CER"
    with_beam = comparison.with_beam
    beams = with_beam.rows if with_beam else (None,) * len(comparison.rows)
    content = {
        "title": comparison.title,
        "comparison": comparison,
        "headline": write_headline(comparison),
        "remarks": (*list_caveats(comparison), *comparison.notes),
        "columns": _list_page_columns(comparison),
        "notes": [_list_notes(row, beam) for row, beam in zip(comparison.rows, beams, strict=True)],
        "signatures": list_signatures(comparison),
        "drawn": {curve.label for curve in curves},
        "curves": _draw_both(curves, name, order),
        "valid_signatures": list_valid_signatures(comparison),
        "train_curves": comparison.train_curves
        and _draw_both(comparison.train_curves, name, order, f"training {name}", curves),
        "critic_curves": comparison.critic_curves
        and _draw_both(comparison.critic_curves, "share", order, "share of variance explained"),
        "is_correction": is_correction,
        "examples": _list_examples(comparison, is_correction),
        "key": [
            (Piece(Kind.WRONG, "wrong", ""), "the reference has something else"),
            (Piece(Kind.EXTRA, "extra", ""), "the reference has nothing"),
            (Piece(Kind.MISSING, "", "missing"), "only the reference has it"),
        ],
    }
    return compose("comparison.html", ("page.css", "curves.css", "examples.css"), ("shared.js", "page.js"), content)


def render_diagnosis(diagnosis: Diagnosis) -> str:
    """Render a diagnosis: what each estimator's error is made of, at one or several checkpoints."""
    rows = diagnosis.rows
    content = {
        "title": "Bias and variance of the gradient",
        "verdict": write_verdict(rows[-1]) if rows else "",
        "legend": LEGEND,
        "pictures": _draw_estimators(rows) if len(rows) > 1 else [],
        "checkpoints": [
            {
                "title": row.title,
                "verdict": write_verdict(row),
                "columns": list_estimator_columns(row),
                "description": describe_row(row),
                "errors": _draw_errors(row),
            }
            for row in rows
        ],
        "environment": diagnosis.environment,
    }
    return compose("diagnosis.html", ("page.css", "curves.css"), (), content)


def render_values(table: ValueTable) -> str:
    """Render one prediction with the critic's values of it."""
    steps, expected = table.steps, table.expected
    num_agreed = sum(step.token == step.best[0].token for step in steps if step.best)
    num_known = sum(
        following in [candidate.token for candidate in step.best]
        for step, following in zip(steps, expected, strict=True)
    )
    remarks = [
        f"Score: {table.score_name}. The rewards of all tokens add up to it.",
        "Q̂ of a token is the critic's forecast of the rewards from that token on, if the actor then went on by drawing "
        "tokens from its probabilities. Where it takes the likeliest instead, more may come than was forecast.",
        f"At {num_agreed} of {len(steps)} steps the chosen token is also the critic's first choice; at {num_known} "
        f"the reference's next token is among the critic's {max(len(step.best) for step in steps)} best.",
        table.note,
    ]
    # What would take more than two lines is one long line, so that the strips leave room for the rest of the page.
    texts = (table.source, table.reference, [step.token for step in steps])
    room = max(sum(max(text_width(token) * 1.1 + 12, 27.0) for token in tokens) for tokens in texts)
    summaries = table.summaries
    content = {
        "title": table.title,
        "style_class": "values spelled" if table.is_spelled else "values",
        "table": table,
        "headline": f"The prediction scores {format_sum(table.score)}. Before its first token the critic, who knows "
        f"the reference, forecast {format_value(steps[0].value)}.",
        "remarks": [remark for remark in remarks if remark],
        "is_long": room > 2 * _STRIP_WIDTH,
        "has_spaces": any(" " in token for token in (*table.source, *table.reference)),
        "summaries": summaries,
        "forecast": (draw_forecast(table, summaries), draw_forecast(table, summaries, width=420, height=300)),
        "expected": expected,
        "collected": table.collected,
        "scale": value_range([one.value for step in steps for one in (*step.best, step.chosen)]),
        "unit_scale": Range(0, 1),
        "many_columns": _MANY_COLUMNS,
        "chosen_sign": CHOSEN_SIGN,
        "next_sign": NEXT_SIGN,
    }
    return compose(
        "values.html", ("page.css", "curves.css", "examples.css", "values.css"), ("shared.js", "values.js"), content
    )


def compose(template: str, styles: Sequence[str], scripts: Sequence[str], content: Mapping[str, object]) -> str:
    """Fill a template, and put the style sheets and the scripts of these names into it."""
    code = "\n".join(_read_piece(name) for name in scripts)
    # The page allows this script by its hash and no other: what a text might smuggle in would not run.
    digest = base64.b64encode(hashlib.sha256(code.encode("utf-8")).digest()).decode("ascii")
    page = {
        "style_class": "",
        "style": Markup("\n".join(_read_piece(name) for name in styles)),
        "script": Markup(code),
        "allowed": f"sha256-{digest}" if scripts else "none",
    }
    return _open_templates().get_template(template).render({**page, **content})


@cache
def _open_templates() -> Environment:
    templates = Environment(
        loader=PackageLoader("seqcritic.report"),
        autoescape=True,
        # Of predictions anything may come, also what neither HTML nor UTF-8 can hold.
        finalize=lambda value: replace_forbidden(value) if isinstance(value, str) else value,
        # A name that a template has and we have not is a fault, not an empty place.
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    templates.globals |= {"style_of": style_of}
    templates.filters |= {
        "finite": lambda weight: weight if math.isfinite(weight) else 0.0,
        "percent": lambda weight: f"{100 * weight:.0f}" if math.isfinite(weight) and weight >= 0.005 else "",
        "place_bar": _place_bar,
        "probability": format_probability,
        "reward": format_reward,
        "sum_of": format_sum,
        "token": show_token,
        "value": format_value,
    }
    return templates


def _read_piece(name: str) -> str:
    return files("seqcritic.report").joinpath(name).read_text(encoding="utf-8")


def _list_page_columns(comparison: Comparison) -> list[Column]:
    """List the columns with a small drawing of each interval, on one scale for all rows."""
    # Scores by seed would make a wide column; they stand beneath the label instead, and so does the critic's share.
    columns = [column for column in list_columns(comparison) if column.name not in BENEATH]
    searches = {"interval": comparison.rows}
    if comparison.with_beam is not None:
        searches["beam-interval"] = comparison.with_beam.rows
    ends = [end for rows in searches.values() for row in rows for end in (row.low, row.score, row.high)]
    finite = [end for end in ends if math.isfinite(end)]
    # One row has nothing to be compared with, and equal ends leave no scale to draw on.
    if len(comparison.rows) == 1 or not finite or min(finite) == max(finite):
        return columns
    scale = Range(min(finite), max(finite))
    drawings = {
        name: tuple(draw_interval(row, scale, style_of(index)) for index, row in enumerate(rows))
        for name, rows in searches.items()
    }
    return [replace(column, drawings=drawings.get(column.name, ())) for column in columns]


def _list_notes(row: MethodRow, with_beam: MethodRow | None) -> list[str]:
    """List what stands beneath the label of a method."""
    notes = [] if row.critic_explains is None else [f"critic explains {format_percent(row.critic_explains)}"]
    if len(row.seed_scores) > 1:
        notes.append(f"by seed {_write_seeds(row)}")
        if with_beam is not None:
            notes.append(f"{name_beam(row)} {_write_seeds(with_beam)}")
    return notes


def _write_seeds(row: MethodRow) -> str:
    return f"{', '.join(format_score(score) for score in row.seed_scores)}; sd {write_spread(row)}"


def _list_examples(comparison: Comparison, is_correction: bool) -> list[list[dict[str, object]]]:
    """List the lines of every example: the source, the predictions, and the references.

    A text is marked where it differs from the nearest of them, as most scores count it.
    """
    align = compare_characters if is_correction else compare_words

    def compare(text: str, references: Sequence[str]) -> Difference:
        return min((align(text, reference) for reference in references), key=lambda each: each.num_edits)

    def line(
        role: str, label: str, content: str, difference: Difference | None = None, score: str = ""
    ) -> dict[str, object]:
        return {"role": role, "label": label, "content": content, "difference": difference, "score": score}

    examples = []
    for example in comparison.examples:
        source, predictions = example.source, example.predictions
        references = (example.reference, *example.further_references)
        # In the order of the table; predictions of others, which have no row, stand behind them.
        labels = [*(label for label in comparison.labels if label in predictions), *predictions]
        lines = [line("source", "source", source, compare(source, references) if is_correction else None)]
        for label in dict.fromkeys(labels):
            difference = compare(predictions[label], references)
            lines.append(line("prediction", label, predictions[label], difference, example.scores.get(label, "")))
        examples.append([*lines, *(line("reference", "reference", reference) for reference in references)])
    return examples


def _draw_both(
    curves: Sequence[Curve], score_name: str, order: Sequence[str], title: str = "", neighbours: Sequence[Curve] = ()
) -> tuple[Markup, Markup]:
    wide = draw_curves(curves, score_name, order, title=title, neighbours=neighbours)
    return wide, draw_curves(curves, score_name, order, width=420, height=340, title=title, neighbours=neighbours)


def _draw_errors(row: DiagnosisRow) -> tuple[Markup, Markup]:
    """Draw the error of each estimator over the number of samples."""
    lines = [
        DotLine(MEANINGS[one.name], tuple(Dot(error) for error in one.errors), index)
        for index, one in enumerate(row.estimators)
    ]
    cases = [f"M = {samples}" for samples in SAMPLES]
    return _draw_dots(cases, lines, "mean squared error / ‖∇V‖²", "samples for each example", True)


def _draw_estimators(rows: Sequence[DiagnosisRow]) -> list[tuple[Markup, Markup]]:
    """Draw how the figures differ from row to row."""
    cases = [row.label for row in rows]
    drawings = [
        _draw_dots(cases, lines, one.title, "", one.logarithmic)
        for one in ESTIMATOR_PICTURES.values()
        if (lines := one.lines(rows))  # none where critics of tokens stand beside value functions
    ]
    for title, values in (
        ("share of the return's variance explained by the critic", [row.explained_variance for row in rows]),
        ("length of the true gradient", [row.gradient_norm for row in rows]),
    ):
        line = DotLine(title, tuple(Dot(value) for value in values), len(PALETTE) - 1)
        drawings.append(_draw_dots(cases, [line], title, "", False))
    return drawings


def _draw_dots(
    cases: Sequence[str], lines: Sequence[DotLine], title: str, case_title: str, logarithmic: bool
) -> tuple[Markup, Markup]:
    wide = draw_dot_plot(cases, lines, title, case_title, logarithmic)
    return wide, draw_dot_plot(cases, lines, title, case_title, logarithmic, width=420, height=300)


def _place_bar(amount: float, scale: Range) -> str:
    """Say where the bar from zero to a number lies on a scale; the number itself stands beside it."""
    if not math.isfinite(amount):
        return ""
    zero, end = 100 * scale.fraction(0), 100 * scale.fraction(scale.clamp(amount))
    return f"left:{min(zero, end):.1f}%;width:{abs(end - zero):.1f}%"
