"""Formulas as MathML, which browsers draw themselves: no script and no network."""

from __future__ import annotations

from docutils import nodes
from latex2mathml.converter import convert

MEANINGS = {r"\arg\max": r"\operatorname{arg\,max}", r"\arg\min": r"\operatorname{arg\,min}"}


def write_inline(writer: object, node: nodes.math) -> None:
    """Write a formula of the text."""
    writer.body.append(_as_mathml(node, "inline"))
    raise nodes.SkipNode


def write_block(writer: object, node: nodes.math_block) -> None:
    """Write a formula that stands for itself; a wide one scrolls."""
    drawn = _as_mathml(node, "block")
    writer.body.append(f'<div class="formula" tabindex="0" role="group" aria-label="Formula">{drawn}</div>')
    raise nodes.SkipNode


def _as_mathml(node: nodes.Node, display: str) -> str:
    source = node.astext().strip()
    for ours, known in MEANINGS.items():
        source = source.replace(ours, known)
    return convert(source, display=display)
