"""The comparison as one HTML page that needs nothing but itself: no network, no other file."""

import base64
import hashlib
from importlib.resources import files

from seqcritic.report.comparison import Comparison
from seqcritic.report.examples import render_examples
from seqcritic.report.headline import list_caveats, write_headline
from seqcritic.report.markup import Markup, element, join, text
from seqcritic.report.sections import render_curves, render_details, render_table


def render_page(comparison: Comparison) -> str:
    """Render the whole page.

    Its policy lets run only the page's own script and load nothing at all, so that text from data or
    models could do no harm even if it were not escaped.
    """
    style = "\n".join(_read_piece(name) for name in ("page.css", "curves.css", "examples.css"))
    script = _read_piece("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    sections = [
        _render_header(comparison),
        render_table(comparison),
        render_curves(comparison),
        render_examples(comparison),
        render_details(comparison),
    ]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            element("title", {}, text(comparison.title)),
            f"<style>\n{style}</style>",
            "</head>",
            "<body>",
            element("main", {}, Markup("\n"), join(sections), Markup("\n")),
            f"<script>{script}</script>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _read_piece(name: str) -> str:
    return files("seqcritic.report").joinpath(name).read_text(encoding="utf-8")


def _render_header(comparison: Comparison) -> Markup:
    remarks = [element("li", {}, text(remark)) for remark in (*list_caveats(comparison), *comparison.notes)]
    parts = [
        element("h1", {}, text(comparison.title)),
        element("p", {"class": "headline"}, text(write_headline(comparison))),
    ]
    if remarks:
        parts.append(element("ul", {"class": "remarks"}, *remarks))
    return element("header", {}, *parts)
