"""The comparison as one HTML page that needs nothing but itself: no network, no other file."""

from seqcritic.report.comparison import Comparison
from seqcritic.report.document import compose_document
from seqcritic.report.examples import render_examples
from seqcritic.report.headline import list_caveats, write_headline
from seqcritic.report.markup import Markup, element, text
from seqcritic.report.sections import render_curves, render_details, render_table


def render_page(comparison: Comparison) -> str:
    """Render the whole page."""
    sections = [
        _render_header(comparison),
        render_table(comparison),
        render_curves(comparison),
        render_examples(comparison),
        render_details(comparison),
    ]
    return compose_document(comparison.title, ("page.css", "curves.css", "examples.css"), "page.js", sections)


def _render_header(comparison: Comparison) -> Markup:
    remarks = [element("li", {}, text(remark)) for remark in (*list_caveats(comparison), *comparison.notes)]
    parts = [
        element("h1", {}, text(comparison.title)),
        element("p", {"class": "headline"}, text(write_headline(comparison))),
    ]
    if remarks:
        parts.append(element("ul", {"class": "remarks"}, *remarks))
    return element("header", {}, *parts)
