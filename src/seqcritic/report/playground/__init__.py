"""The page that runs a model in the browser: what it is given, and how it is written.

The scripts beside this file compute what the package computes, the same equations once more in JavaScript: network.js
the two networks, values.js rewards and what is known of every token, text.js tokens, page.js what a reader does.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from seqcritic.report.pages import compose

SCRIPTS = ("network.js", "values.js", "text.js", "page.js")


@dataclass(frozen=True, slots=True)
class Playground:
    """A model for the browser.

    `description` is what openModel of values.js reads: where the tensors of each network are in `weights`, numbers of
    `precision` in a row, and codec, score and limits; JSON can hold it.
    """

    title: str
    unit: str
    has_critic: bool
    is_spelled: bool
    facts: Mapping[str, str]
    notes: tuple[str, ...]
    description: Mapping[str, Any]
    weights: bytes


def render_playground(playground: Playground) -> str:
    """Render the page, its weights in it."""
    # In a script element nothing is escaped: a "<" of the data must not be able to end it.
    description = json.dumps(playground.description, ensure_ascii=False).replace("<", "\\u003c")
    content = {
        "title": playground.title,
        "style_class": "playground spelled" if playground.is_spelled else "playground",
        "playground": playground,
        "description": Markup(description),
        "weights": base64.b64encode(playground.weights).decode("ascii"),
    }
    scripts = ["shared.js", *(f"playground/{name}" for name in SCRIPTS)]
    return compose("playground.html", ("page.css", "playground/page.css"), scripts, content)
