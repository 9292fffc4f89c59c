"""SVG built from pieces whose type says that their text is already escaped."""

import html
import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from markupsafe import Markup as Markup

Attributes: TypeAlias = dict[str, str | float]

# XML forbids these characters, and lone surrogates cannot be written as UTF-8.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def replace_forbidden(content: str) -> str:
    """Replace what neither XML nor UTF-8 can hold; markup, which holds none, stays markup."""
    return content if isinstance(content, Markup) else _FORBIDDEN.sub("\ufffd", content)


def text(content: str) -> Markup:
    """Escape plain text, so that it can never be read as markup."""
    return Markup(html.escape(replace_forbidden(content)))


def element(name: str, attributes: Mapping[str, str | float], *children: Markup) -> Markup:
    """Build one element; attribute values are escaped and numbers rounded to what a screen can show."""
    written = "".join(f' {key}="{_attribute(value)}"' for key, value in attributes.items())
    return Markup(f"<{name}{written}>{''.join(children)}</{name}>")


def join(children: Iterable[Markup], separator: str = "\n") -> Markup:
    """Put pieces of markup one after another."""
    return Markup(separator.join(children))


def _attribute(value: str | float) -> str:
    if isinstance(value, str):
        return text(value)
    return f"{value:.2f}".rstrip("0").rstrip(".")
