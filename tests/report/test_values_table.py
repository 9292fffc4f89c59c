"""The table of the paper's appendix in the terminal."""

import math
from dataclasses import replace

import pytest
from rich.cells import cell_len
from rich.console import Console
from test_values import paper_table

from seqcritic.report.formats import format_reward
from seqcritic.report.tables import values_table
from seqcritic.report.values import Candidate, ValueTable


def print_table(table: ValueTable, width: int, **options: object) -> str:
    console = Console(width=width, **options)  # type: ignore[arg-type]
    with console.capture() as capture:
        console.print(values_table(table))
    return capture.get()


def test_table_golden() -> None:
    table = paper_table()
    few = replace(table, steps=(*table.steps[4:7], table.steps[-1]), note="A note.")
    printed = [line.rstrip() for line in print_table(few, 100).splitlines()]
    assert printed == GOLDEN.strip("\n").splitlines()


GOLDEN = """
iwslt14, actor-critic, seed 1
source      über eine davon will ich hier erzählen .
reference   and there &apos;s one i want to talk about
prediction  one of them i want to tell you about here .
token      Q̂    p largest Q̂                           likeliest              reward
───────────────────────────────────────────────────────────────────────────────────
want   5.008 0.75 want(5.008) i(4.160) &apos;t(3.361) want(0.75) other(0.12)   +0.5
to     4.729 0.75 to(4.729) want(3.497) going(3.396)  to(0.75) other(0.12)     +0.5
tell   1.133 0.75 talk(3.717) you(2.407) to(2.133)    tell(0.75) other(0.12)  -0.25
∅     -0.093 0.75 .(0.168) ∅(-0.093) ?(-0.173)        ∅(0.75) other(0.12)         0

score                                                                          0.75
score: BLEU times reference length
bold: the chosen token; underlined: the reference's next token
A note.
"""


def test_chosen_and_next_tokens_stand_out() -> None:
    printed = print_table(paper_table(), 120, force_terminal=True, color_system="standard")
    assert "\x1b[1;4mwant\x1b[0m(5.008)" in printed
    assert "\x1b[1mi\x1b[0m(4.629)" in printed
    assert "\x1b[4mand\x1b[0m(6.623)" in printed


def test_spaces_of_a_character_model_are_visible() -> None:
    table = paper_table()
    space = replace(table.steps[0], token=" ", best=(Candidate(" ", 2.0, 0.5),))
    printed = print_table(replace(table, steps=(space,)), 100)
    assert "␣(2.000)" in printed


def test_markup_in_tokens_is_text_and_nan_is_never_printed() -> None:
    table = paper_table()
    odd = replace(
        table.steps[0],
        token="[red]x[/red]",
        value=math.nan,
        probability=math.nan,
        reward=math.nan,
        best=(Candidate("[bold]", math.inf, math.nan),),
    )
    printed = print_table(replace(table, steps=(odd,), title="[b]t[/b]", note="[i]n[/i]"), 100)
    for expected in ("[red]x[/red]", "[bold](–)", "[b]t[/b]", "[i]n[/i]"):
        assert expected in printed
    assert "nan" not in printed
    assert "inf" not in printed


def test_long_tokens_lose_nothing_in_eighty_columns() -> None:
    table = paper_table()
    token = "donaudampfschifffahrtsgesellschaft"
    long = replace(table.steps[0], token=token, best=tuple(Candidate(f"{token}{i}", i, 0.1) for i in range(3)))
    printed = print_table(replace(table, steps=(long,)), 80)
    assert "…" not in printed
    assert max(cell_len(line) for line in printed.splitlines()) <= 80


@pytest.mark.parametrize(
    ("reward", "expected"),
    [(1.0, "+1"), (-1.0, "-1"), (0.0, "0"), (-0.0, "0"), (0.25, "+0.25"), (1e-9, "0"), (10.0, "+10"), (math.nan, "–")],
)
def test_rewards_show_their_sign(reward: float, expected: str) -> None:
    assert format_reward(reward) == expected
