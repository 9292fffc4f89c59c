"""A prediction step by step as a table, after the paper's of best words by Q̂, for the terminal."""

from collections.abc import Callable, Sequence

from rich.table import Table
from rich.text import Text

from seqcritic.report.formats import format_probability, format_reward, format_sum, format_value
from seqcritic.report.tables import open_grid
from seqcritic.report.values import Candidate, Step, ValueTable, show_token

TAKEN_SIGN, NEXT_SIGN = "●", "◇"


def values_table(table: ValueTable) -> Table:
    """Lay a prediction out for a terminal: a line for each token taken, and the score as the sum of the rewards."""
    caption = [
        f"score: {table.score_name}",
        "bold: the token taken; underlined: the reference's next token",
        table.note,
    ]
    grid = open_grid(_write_title(table), "\n".join(line for line in caption if line), has_footer=True)
    grid.add_column("token", footer="score", overflow="fold")
    grid.add_column("Q̂", justify="right", no_wrap=True)
    grid.add_column("p", justify="right", no_wrap=True)
    grid.add_column("largest Q̂", overflow="fold")
    grid.add_column("likeliest", overflow="fold")
    grid.add_column("reward", justify="right", no_wrap=True, footer=format_sum(table.score))
    for step, following in zip(table.steps, table.expected, strict=True):
        grid.add_row(
            Text(show_token(step.token), style="bold"),
            format_value(step.value),
            format_probability(step.probability),
            _list_candidates(step.best, step, following, lambda one: format_value(one.value)),
            _list_candidates(step.likeliest, step, following, lambda one: format_probability(one.probability)),
            format_reward(step.reward),
        )
    return grid


def _write_title(table: ValueTable) -> Text:
    lines = (
        ("source", table.write(table.source)),
        ("reference", table.write(table.reference)),
        ("prediction", table.prediction),
    )
    return Text(table.title).append("".join(f"\n{name:10}  {content}" for name, content in lines), style="not bold")


def _list_candidates(
    candidates: Sequence[Candidate], step: Step, following: str, write: Callable[[Candidate], str]
) -> Text:
    entries = []
    for candidate in candidates:
        styles = ["bold"] * (candidate.token == step.token) + ["underline"] * (candidate.token == following)
        entry = Text(show_token(candidate.token), style=" ".join(styles))
        entries.append(entry.append(f"({write(candidate)})", style="not underline not bold"))
    return Text(" ").join(entries)
