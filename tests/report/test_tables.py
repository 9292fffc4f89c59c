"""Tables hold every number, in the terminal and in Markdown, and never the word nan."""

from collections.abc import Callable
from dataclasses import replace

from rich.console import Console

from seqcritic.report import Comparison, comparison_table, markdown_table


def print_table(comparison: Comparison, width: int) -> str:
    console = Console(width=width, record=True, force_terminal=True, file=None, quiet=True)
    with console.capture() as capture:
        quiet = Console(width=width, force_terminal=True, color_system="standard")
        with quiet.capture() as inner:
            quiet.print(comparison_table(comparison))
    assert not capture.get()
    return inner.get()


def test_markdown_golden(make_comparison: Callable[[int], Comparison]) -> None:
    comparison = make_comparison(1)
    assert markdown_table(replace(comparison, rows=comparison.rows[:3])) == "\n".join(
        [
            "| method | CER ↓ | 95% interval | against baseline | p | updates | cost per update | minutes |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
            "| likelihood | 43.18 | 42.37–44.02 | baseline | – | 24,000 | 1.00× | 10.2 |",
            "| actor-critic | 40.31 | 39.50–41.15 | 6.6% better | 0.004 | 24,000 | 2.61× | 26.7 |",
            "| actor-critic+likelihood | **38.52** | 37.71–39.36 | 10.8% better | <0.001 | 24,000 | 2.93× | 29.9 |",
            "",
            f"CER signature: `{comparison.signature}`",
            "",
        ]
    )
