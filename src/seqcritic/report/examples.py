"""The section of the page that shows examples, every text marked where it differs from the reference."""

from collections.abc import Callable, Sequence

from seqcritic.report.comparison import Comparison, Example
from seqcritic.report.differences import (
    Difference,
    Kind,
    Piece,
    compare_characters,
    compare_words,
)
from seqcritic.report.markup import Markup, element, join, text


def render_examples(comparison: Comparison) -> Markup:
    """Render the examples, every text marked where it differs from the reference."""
    examples = comparison.examples
    if not examples:
        return Markup("")
    # A character error rate judges corrections: the source is a flawed copy of the reference, to be marked too.
    is_correction = comparison.score_name == "CER"
    compare = compare_characters if is_correction else compare_words
    order = comparison.labels
    cards = [
        _render_example(number, example, order, compare, is_correction)
        for number, example in enumerate(examples, start=1)
    ]
    key = [
        (Piece(Kind.WRONG, "wrong", ""), "the reference has something else"),
        (Piece(Kind.EXTRA, "extra", ""), "the reference has nothing"),
        (Piece(Kind.MISSING, "", "missing"), "only the reference has it"),
    ]
    entries = [element("li", {}, _render_piece(piece, False), text(f" {meaning}")) for piece, meaning in key]
    if is_correction:
        entries.append(element("li", {}, text("␣ a space that differs")))
    tick = element("span", {"class": "exact"}, text("✓"))
    entries.append(element("li", {}, text("at the right: edits from the reference, "), tick, text(" if none")))
    return element(
        "section",
        {"id": "examples"},
        element("h2", {}, text("Examples")),
        element("ul", {"class": "key"}, *entries),
        element("div", {"class": "cards"}, Markup("\n"), join(cards), Markup("\n")),
    )


def _render_example(
    number: int,
    example: Example,
    order: Sequence[str],
    compare: Callable[[str, str], Difference],
    is_correction: bool,
) -> Markup:
    source = compare(example.source, example.reference) if is_correction else None
    lines = [_render_line("source", "source", example.source, source)]
    labels = [label for label in order if label in example.predictions]
    labels += [label for label in example.predictions if label not in order]
    for label in labels:
        prediction = example.predictions[label]
        lines.append(_render_line("prediction", label, prediction, compare(prediction, example.reference)))
    lines.append(_render_line("reference", "reference", example.reference, None))
    table = element("table", {}, element("tbody", {}, Markup("\n"), join(lines), Markup("\n")))
    title = element("h3", {}, element("span", {"class": "unseen"}, text("Example ")), text(str(number)))
    return element("article", {"class": "example"}, title, table)


def _render_line(role: str, label: str, content: str, difference: Difference | None) -> Markup:
    heading = element("th", {"scope": "row"}, text(label))
    if difference is None:
        cells = [
            element("td", {"class": "text", "dir": "auto"}, text(content)),
            element("td", {"class": "edits"}),
        ]
    else:
        separator = difference.separator
        pieces = join([_render_piece(piece, not separator) for piece in difference.pieces], separator)
        cells = [element("td", {"class": "text", "dir": "auto"}, pieces), _render_edits(difference.num_edits)]
    return element("tr", {"class": role}, heading, *cells)


def _render_edits(num_edits: int) -> Markup:
    if num_edits == 0:
        mark = element("span", {"class": "exact", "title": "equals the reference"}, text("✓"))
        return element("td", {"class": "edits"}, mark)
    unit = "edit" if num_edits == 1 else "edits"
    count = element("span", {"title": f"{num_edits} {unit} from the reference"}, text(str(num_edits)))
    return element("td", {"class": "edits"}, count, element("span", {"class": "unseen"}, text(f" {unit}")))


def _render_piece(piece: Piece, shows_spaces: bool) -> Markup:
    """Mark one piece; titles and hidden words tell what the shape of the mark shows."""
    if piece.kind is Kind.EQUAL:
        return text(piece.written)
    space = "␣" if shows_spaces else " "
    written, expected = (side.replace(" ", space) for side in (piece.written, piece.expected))
    shown = expected if piece.kind is Kind.MISSING else written
    if piece.kind is Kind.WRONG and expected:
        title = f"“{written}” instead of “{expected}”"
    else:
        title = f"“{shown}” is {piece.kind.value}"
    hidden = element("span", {"class": "unseen"}, text(f"[{piece.kind.value}: "))
    closing = element("span", {"class": "unseen"}, text("]"))
    tag = {Kind.WRONG: "mark", Kind.EXTRA: "del", Kind.MISSING: "ins"}[piece.kind]
    return element(tag, {"class": piece.kind.value, "title": title}, hidden, text(shown), closing)
