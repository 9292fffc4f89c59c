"""The page holds everything, escapes everything, and loads nothing."""

import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from seqcritic.report.comparison import Comparison, Example
from seqcritic.report.headline import write_headline
from seqcritic.report.pages import render_page
from seqcritic.report.svg import element, text

ATTACK = "</pre></style><script>alert('x')</script><img src=x onerror=alert(1)>\" onclick='a'&amp;"
VOID = {"meta"}


class Reader(HTMLParser):
    """Collects the elements of a page and complains where they are not properly nested."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.content: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.content.append(data)

    def close(self) -> None:
        super().close()
        assert self._open == []


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    return reader


def examples_of(comparison: Comparison) -> str:
    """Return the section of the page that shows examples."""
    page = render_page(comparison)
    start = page.index('<section id="examples">')
    return page[start : page.index("</section>", start)]


def test_page_holds_everything(comparison: Comparison) -> None:
    page = render_page(comparison)
    content = "".join(read(page).content)
    for expected in (
        comparison.title,
        write_headline(comparison),
        "10.8% better",
        "by seed 42.88, 43.18, 43.48",
        "hidden: 100",
        "one core of a laptop",
        comparison.notes[0],
        "Compute is counted in likelihood updates",
    ):
        assert expected in content
    curves = content[content.index("Learning curves") :]
    assert content.count(comparison.signature) == 1
    assert comparison.signature not in curves, "validation is not evaluated on the test sentences"
    assert f"validation CER signature: {comparison.valid_signature}" in curves
    assert page.count('<article class="example">') == 20


def test_everything_is_escaped(comparison: Comparison) -> None:
    rows = (comparison.rows[0], replace(comparison.rows[1], label=ATTACK))
    hostile = Comparison(
        title=ATTACK,
        score_name=ATTACK,
        lower_is_better=True,
        signature=ATTACK,
        baseline=ATTACK,
        rows=rows,
        curves=tuple(replace(curve, label=ATTACK) for curve in comparison.curves[:2]),
        examples=(Example(ATTACK, ATTACK, {ATTACK: ATTACK}), Example("a", ATTACK, {ATTACK: "<b>"})),
        configuration=ATTACK,
        environment={ATTACK: ATTACK},
        notes=(ATTACK,),
    )
    reader = read(render_page(hostile))
    assert reader.names.count("script") == 1
    assert reader.names.count("style") == 1
    assert not {"img", "b"} & set(reader.names)
    assert not [name for name, _ in reader.attributes if name.startswith("on")]
    assert ATTACK in "".join(reader.content)


def test_page_loads_nothing(comparison: Comparison) -> None:
    page = render_page(comparison)
    reader = read(page)
    assert not {"link", "iframe", "object", "base"} & set(reader.names)
    assert not {"src", "href", "srcset", "action"} & {name for name, _ in reader.attributes}
    assert "@import" not in page
    assert "url(" not in page
    assert set(re.findall(r"https?://[^\"]*", page)) == {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in page


@pytest.mark.parametrize("num_seeds", [1, 3])
def test_single_run_makes_a_page(make_comparison: Callable[[int], Comparison], num_seeds: int) -> None:
    comparison = make_comparison(num_seeds)
    single = replace(comparison, rows=comparison.rows[:1], curves=(), examples=(), environment={}, configuration="")
    page = render_page(single)
    read(page)
    assert "likelihood reaches a test score of CER 43.18" in page
    assert "against baseline" not in page
    assert "No learning curve was recorded." in page
    assert '<section id="examples">' not in page
    assert '<section id="details">' not in page


def test_differences_are_marked_not_by_colour_alone(comparison: Comparison) -> None:
    example = Example("abd", "abc d", {"likelihood": "aabcxd"})
    section = examples_of(replace(comparison, examples=(example,)))
    assert '<del class="extra" title="“a” is extra">' in section
    assert '<mark class="wrong" title="“x” instead of “␣”">' in section
    assert '<ins class="missing" title="“c␣” is missing">' in section
    assert '<span class="unseen">[missing: </span>c␣<span class="unseen">]</span>' in section
    assert '<span title="2 edits from the reference">2</span>' in section


def test_exact_prediction_is_ticked(comparison: Comparison) -> None:
    section = examples_of(replace(comparison, examples=(Example("abd", "abc", {"likelihood": "abc"}),)))
    assert '<span class="exact" title="equals the reference">✓</span>' in section


def test_of_several_references_all_are_shown_and_the_nearest_is_compared_with(comparison: Comparison) -> None:
    example = Example("die katze", "the feline", {"likelihood": "a cat"}, ("the cat", "a lion"))
    section = examples_of(replace(comparison, score_name="BLEU", examples=(example,)))
    assert "“a” instead of “the”" in section
    assert '<span title="1 edit from the reference">1</span>' in section
    assert section.count('<tr class="reference">') == 3
    assert '<td class="text" dir="auto">a lion</td>' in section


def test_translation_is_compared_by_words(comparison: Comparison) -> None:
    example = Example("die katze sass dort", "the cat sat there", {"likelihood": "the dog ran there"})
    section = examples_of(replace(comparison, score_name="BLEU", examples=(example,)))
    assert "“dog ran” instead of “cat sat”" in section
    assert "␣" not in section
    assert '<td class="text" dir="auto">die katze sass dort</td>' in section


def test_markup_pieces() -> None:
    assert text("<&\"'\x00\ud800>") == "&lt;&amp;&quot;&#x27;\ufffd\ufffd&gt;"
    assert element("a", {"b": 'c"', "d": 1.5, "e": 2.0, "f": 100}, text("g")) == (
        '<a b="c&quot;" d="1.5" e="2" f="100">g</a>'
    )


def test_both_searches_are_in_the_table(make_beam_comparison: Callable[[int], Comparison]) -> None:
    page = render_page(make_beam_comparison(3))
    assert page.count('data-heading="CER ↓ greedy"') == page.count('data-heading="CER ↓ beam 10"') == 4
    assert page.count('class="interval-drawing') == 8
    assert '<td class="rho" data-heading="ρ">0 0.2 0.4</td>' in page
    assert "rho:tuned-on-valid" in page
    assert '<span class="seeds">beam 10 ' in page


def test_the_explained_variance_is_drawn(critic_comparison: Comparison, comparison: Comparison) -> None:
    page = render_page(critic_comparison)
    figure = page[page.index('<figure id="critic">') :]
    figure = figure[: figure.index("</figure>")]
    for label in ("actor-critic", "actor-critic+likelihood", "reinforce-critic"):
        assert f'data-label="{label}"' in figure
    assert 'data-label="likelihood"' not in figure
    assert "share of variance explained" in figure
    assert "validation share" not in figure
    assert page.count("critic explains 62%") == 3
    assert "critic explains" not in render_page(comparison)


def test_training_scores_are_drawn_over_the_same_compute(fitted_comparison: Comparison, comparison: Comparison) -> None:
    page = render_page(fitted_comparison)
    training = page[page.index('<figure id="training">') :]
    training = training[: training.index("</figure>")]
    assert re.findall('<g [^>]*data-label="([^"]*)"', training) == ["likelihood", "actor-critic"] * 2
    assert "training CER" in training
    assert "validation CER" not in training
    validation = page[page.index('<section id="curves">') : page.index('<figure id="training">')]
    assert ticks_of_compute(training) == ticks_of_compute(validation)
    assert "acts as a regulariser" in " ".join(page.split())
    assert 'id="training"' not in render_page(comparison)


def ticks_of_compute(drawing: str) -> list[str]:
    """Return the numbers written along the axes of compute."""
    return re.findall('class="tick"[^>]*text-anchor="middle"[^>]*>([^<]*)<', drawing)
