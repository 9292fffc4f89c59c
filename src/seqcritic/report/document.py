"""The frame of every page: one HTML document that needs nothing but itself, no network and no other file."""

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files

from seqcritic.report.markup import Markup, element, join, text


def compose_document(
    title: str, styles: Sequence[str], script: str, sections: Sequence[Markup], style_class: str = ""
) -> str:
    """Put sections into a page with the style sheets and the script of these names; without a name, without a script.

    Its policy lets run only the page's own script and load nothing at all, so that text from data or
    models could do no harm even if it were not escaped.
    """
    style = "\n".join(_read_piece(name) for name in styles)
    code = _read_piece(script) if script else ""
    digest = base64.b64encode(hashlib.sha256(code.encode("utf-8")).digest()).decode("ascii")
    allowed = f"'sha256-{digest}'" if script else "'none'"
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}"
    attributes = {"class": style_class} if style_class else {}
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            element("title", {}, text(title)),
            f"<style>\n{style}</style>",
            "</head>",
            "<body>",
            element("main", attributes, Markup("\n"), join(sections), Markup("\n")),
            *([f"<script>{code}</script>"] if script else []),
            "</body>",
            "</html>",
            "",
        ]
    )


def _read_piece(name: str) -> str:
    return files("seqcritic.report").joinpath(name).read_text(encoding="utf-8")
