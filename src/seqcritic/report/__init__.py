"""Everything a person sees at the end of a comparison: plain data in, text out."""

from seqcritic.report.charts import draw_curves
from seqcritic.report.comparison import BeamScore, Comparison, Curve, Example, MethodRow, Point
from seqcritic.report.comparison_tables import comparison_table, markdown_table
from seqcritic.report.headline import list_caveats, write_headline
from seqcritic.report.pages import render_page
from seqcritic.report.terminal import terminal_plot

__all__ = [
    "BeamScore",
    "Comparison",
    "Curve",
    "Example",
    "MethodRow",
    "Point",
    "comparison_table",
    "draw_curves",
    "list_caveats",
    "markdown_table",
    "render_page",
    "terminal_plot",
    "write_headline",
]
