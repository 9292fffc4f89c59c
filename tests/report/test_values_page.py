"""The page of values holds everything, escapes everything, loads nothing, and works in a browser."""

import html
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from test_browser import add_script, dump_page, opening_tag
from test_page import ATTACK, read
from test_values import paper_table, spread_attention

from seqcritic.report.pages import render_values
from seqcritic.report.values import END, Candidate, Step, ValueTable


def spelled_table(length: int) -> ValueTable:
    """Return a character model's right prediction of some length."""
    tokens = tuple(("the quick brown fox jumps over the lazy dog " * 3)[:length])
    steps = []
    for index, token in enumerate((*tokens, END)):
        best = (Candidate(token, float(length - index), 0.9), Candidate("#", -1.0, 0.01))
        attention = spread_attention(index, length + 1)
        steps.append(Step(token, 0.9, best[0].value, float(token != END), best, best, attention, attention))
    source = (*tokens, END)
    return ValueTable(source, source, tuple(steps), "".join(tokens), "length − distance", "demo", "")


def words_of(page: str) -> str:
    return " ".join("".join(read(page).content).split())


def test_page_holds_everything() -> None:
    table = paper_table()
    page = render_values(table)
    words = words_of(page)
    for expected in (
        table.title,
        table.note,
        table.score_name,
        "The prediction scores 1.",
        "forecast 4.967",
        "At 4 of 12 steps the chosen token is also the critic's first choice",
        "Step 1 of 12 takes “one”.",
        "6.623",
        "erzählen",
    ):
        assert expected in words
    assert page.count('<tr data-step="') == 3 * len(table.steps)
    assert len(re.findall('<td style="--w:', page)) == len(table.steps) * (len(table.source) + len(table.reference))


def test_chosen_and_next_tokens_are_marked_not_by_colour_alone() -> None:
    page = render_values(paper_table())
    rows = re.findall(r'<tr data-step="4">.*?</tr>', page, re.DOTALL)
    assert re.search(r">want</span>[^/]*>●<.*?\(chosen\).*?>◇<.*?\(next in the reference\)", rows[0])
    first = re.findall(r'<tr data-step="0">.*?</tr>', page, re.DOTALL)[0]
    assert re.search(
        r'<li class="candidate apart"><span class="head"><span class="word">one</span>.*?\(chosen\)', first
    )


def test_negative_values_hang_left_of_zero() -> None:
    last = re.findall(r'<tr data-step="11">.*?</tr>', render_values(paper_table()), re.DOTALL)[0]
    bars = [tuple(map(float, bar)) for bar in re.findall(r"left:([\d.]+)%;width:([\d.]+)%", last)]
    zero = bars[0][0]
    assert bars[1][0] < zero
    assert sum(bars[1]) == pytest.approx(zero, abs=0.11)


def test_everything_is_escaped() -> None:
    table = paper_table()
    hostile = Candidate(ATTACK, 1.0, 0.5)
    steps = tuple(replace(step, token=ATTACK, best=(hostile,), likeliest=(hostile,)) for step in table.steps)
    page = render_values(
        replace(
            table,
            source=(*[ATTACK] * (len(table.source) - 1), END),
            reference=(*[ATTACK] * (len(table.reference) - 1), END),
            steps=steps,
            prediction=ATTACK,
            score_name=ATTACK,
            title=ATTACK,
            note=ATTACK,
        )
    )
    reader = read(page)
    assert reader.names.count("script") == 1
    assert reader.names.count("style") == 1
    assert not {"img", "pre"} & set(reader.names)
    assert not [name for name, _ in reader.attributes if name.startswith("on")]
    assert ATTACK in "".join(reader.content)


def test_page_loads_nothing() -> None:
    page = render_values(paper_table())
    reader = read(page)
    assert not {"link", "iframe", "object", "base", "img"} & set(reader.names)
    assert not {"src", "href", "srcset", "action"} & {name for name, _ in reader.attributes}
    assert not re.search(r"@import|url\(", page)
    assert set(re.findall(r"https?:[^\"]*", page)) == {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in page


@pytest.mark.parametrize("length", [0, 4, 60])
def test_short_and_long_predictions_make_a_page(length: int) -> None:
    page = render_values(spelled_table(length))
    read(page)
    assert page.count('<button type="button"') == length + 1
    assert "nan" not in re.sub(r"<script>.*</script>", "", page, flags=re.DOTALL)
    assert len(page) < 1_000_000


def test_numbers_that_are_not_finite_leave_gaps() -> None:
    table = spelled_table(4)
    gap = replace(
        table.steps[1], value=math.nan, probability=math.nan, reward=math.inf, best=(Candidate("x", math.inf, 0),)
    )
    attention = tuple(math.nan for _ in table.source)
    page = render_values(replace(table, steps=(table.steps[0], replace(gap, source_attention=attention))))
    shown = re.sub(r"<(script|style)>.*?</\1>", "", page, flags=re.DOTALL)
    assert not re.search(r"\b(nan|inf)\b", shown)
    assert '<span class="amount">–</span>' in shown


def test_page_in_browser(tmp_path: Path) -> None:
    document = dump_page(render_values(paper_table()), tmp_path)
    assert 'data-ready="true"' in opening_tag(document)
    assert "data-error" not in opening_tag(document)
    assert document.count('class="column current" data-step="0"') == 2, "in the wide drawing and in the narrow one"


def test_arrow_keys_choose_a_step_and_the_strips_follow(tmp_path: Path) -> None:
    table = paper_table()
    script = """
        document.querySelector(".prediction button").focus();
        for (const key of ["ArrowRight", "ArrowRight", "End", "ArrowRight", "ArrowLeft"]) {
          document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
        }
    """
    document = dump_page(add_script(render_values(table), script), tmp_path)
    assert "data-error" not in opening_tag(document)
    chosen = re.findall(r"<button[^>]*aria-current[^>]*>", document)
    assert len(chosen) == 1
    assert 'data-step="10"' in chosen[0]
    assert 'tabindex="0"' in chosen[0]
    strip = re.search(r'<div class="strip source actor">.*?</ol>', document)
    assert strip is not None
    weights = [float(weight) for weight in re.findall(r"--w:([\d.]+)", strip.group())]
    assert weights == pytest.approx(table.steps[10].source_attention, abs=6e-4)
    summary = re.search(r'<p class="summary"[^>]*>(.*?)</p>', document)
    assert summary is not None
    assert html.unescape(summary.group(1)).startswith("Step 11 of 12 takes “.”.")


def test_pointer_chooses_a_step_and_tells_the_weight(tmp_path: Path) -> None:
    table = paper_table()
    script = """
        const cell = document.querySelector('.matrix.critic tr[data-step="3"]').cells[5];
        const box = cell.getBoundingClientRect();
        const place = { clientX: box.left + 2, clientY: box.top + 2, bubbles: true };
        cell.dispatchEvent(new PointerEvent("pointerover", place));
        cell.dispatchEvent(new PointerEvent("pointermove", place));
    """
    document = dump_page(add_script(render_values(table), script), tmp_path)
    assert "data-error" not in opening_tag(document)
    tooltip = re.search(r'<div class="tooltip"[^>]*style[^>]*>(.*?)</div>', document)
    assert tooltip is not None
    percent = 100 * table.steps[3].reference_attention[4]
    assert tooltip.group(1).startswith(
        f"{percent:.1f} % of the critic’s attention is on “i” (place 5) when “i” (step 4)"
    )
    assert len(re.findall(r'<tr data-step="3" class="current">', document)) == 3
