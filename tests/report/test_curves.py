"""The drawing is well-formed, holds every method, and its labels never overlap."""

import math
import re
import xml.etree.ElementTree as ElementTree
from importlib.resources import files

import pytest

from seqcritic.report.charts import draw_curves
from seqcritic.report.comparison import Comparison, Curve, Point
from seqcritic.report.svg import LINE_HEIGHT, PALETTE, flow, shorten, spread, style_of, text_width
from seqcritic.report.terminal import SYMBOLS, terminal_plot
from seqcritic.settings.methods import method_labels

SVG = "{http://www.w3.org/2000/svg}"


def make_curve(label: str, scores: list[float], seed: int = 0) -> Curve:
    return Curve(label, seed, tuple(Point(100.0 * i, i, score) for i, score in enumerate(scores)))


def parse(drawing: str) -> ElementTree.Element:
    return ElementTree.fromstring(drawing)


def find_class(root: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    return [node for node in root.iter() if name in node.get("class", "").split()]


def test_every_method_has_one_main_line_and_thin_seeds(comparison: Comparison) -> None:
    root = parse(draw_curves(comparison.curves, "CER"))
    groups = find_class(root, "method")
    assert [group.get("data-label") for group in groups] == [row.label for row in comparison.rows]
    colours = set()
    for group in groups:
        (main,) = find_class(group, "main")
        seeds = [node for node in find_class(group, "curve") if node is not main]
        assert len(seeds) == 3
        assert float(main.get("stroke-width", "")) > float(seeds[0].get("stroke-width", ""))
        assert {node.get("stroke") for node in seeds} == {main.get("stroke")}
        colours.add(main.get("stroke"))
    assert len(colours) == 4


def test_one_seed_is_its_own_main_line() -> None:
    root = parse(draw_curves([make_curve("a", [3.0, 2.0])], "CER"))
    assert len(find_class(root, "curve")) == 1
    assert len(find_class(root, "main")) == 1


def test_axes_are_named_and_points_have_titles() -> None:
    root = parse(draw_curves([make_curve("a", [3.0, 2.0])], "CER"))
    texts = [node.text for node in root.iter(f"{SVG}text")]
    assert "compute (likelihood updates)" in texts
    assert "validation CER" in texts
    titles = [node.text for node in root.iter(f"{SVG}title")]
    assert titles == [
        "a, seed 0: CER 3.00 at 0 updates, compute 0",
        "a, seed 0: CER 2.00 at 1 updates, compute 100",
    ]


def test_golden_places() -> None:
    root = parse(draw_curves([make_curve("a", [0.0, 10.0])], "CER", width=400, height=200))
    (main,) = find_class(root, "main")
    # The score range is 0 to 10.5 between heights 148 and 34, compute 0 to 100 between 42 and 334.
    assert main.get("d") == "M42.0 148.0L334.0 39.4"


def test_drawing_stands_alone(comparison: Comparison) -> None:
    drawing = draw_curves(comparison.curves, "CER")
    (ground,) = find_class(parse(drawing), "ground")
    assert ground.get("fill") == "#ffffff"
    for forbidden in ("var(", "href", "url(", "<style", "<script"):
        assert forbidden not in drawing


def test_spike_is_marked_at_the_edge_and_noted() -> None:
    settled = [45 - 0.1 * index for index in range(40)]
    root = parse(draw_curves([make_curve("a", [300.0, *settled])], "CER"))
    (mark,) = find_class(root, "outside")
    assert "CER 300.00" in "".join(mark.itertext())
    (note,) = find_class(root, "note")
    assert note.text == "1 point, at 300.00, lies beyond the drawn range."
    assert find_class(parse(draw_curves([make_curve("a", settled)], "CER")), "note") == []


@pytest.mark.parametrize(
    "scores",
    [[], [42.0], [42.0, 42.0], [math.nan, 3.0, math.inf, 4.0], [1e-4, 2e-4], [1e9, 3e9], [-5.0, 5.0]],
)
def test_any_values_can_be_drawn(scores: list[float]) -> None:
    drawing = draw_curves([make_curve("a", scores)], "CER")
    parse(drawing)
    assert "nan" not in drawing
    assert "inf" not in drawing.replace("information", "")
    assert ("No learning curve was recorded." in drawing) == (not scores)


@pytest.mark.parametrize("width", [420, 960])
@pytest.mark.parametrize("num_methods", [1, 6, 14, 40])
def test_labels_never_overlap_nor_leave_the_drawing(num_methods: int, width: int) -> None:
    curves = [make_curve(f"method number {i}", [50.0, 40.0]) for i in range(num_methods)]
    root = parse(draw_curves(curves, "CER", width=width))
    boxes = [
        (float(node.get("x", "")), float(node.get("y", "")), text_width(node.text or ""))
        for node in find_class(root, "label")
    ]
    assert len(boxes) == num_methods
    for index, (x, y, length) in enumerate(boxes):
        assert x >= 0
        assert x + length <= width
        assert 0 < y < float(root.get("height", ""))
        for other_x, other_y, other_length in boxes[index + 1 :]:
            apart = abs(y - other_y) >= LINE_HEIGHT - 0.01 or x + length < other_x or other_x + other_length < x
            assert apart


def test_spread_keeps_labels_near_and_apart() -> None:
    assert spread([100, 50, 200], bottom=300) == [100, 50, 200]
    assert spread([100, 101, 99], bottom=300) == [99 + LINE_HEIGHT, 99 + 2 * LINE_HEIGHT, 99]
    assert spread([300, 300], bottom=300) == [300 - LINE_HEIGHT, 300]


def test_flow_and_shorten() -> None:
    assert flow(["aa", "bb", "cc"], 150, 10) == [(40, 10), (106, 10), (40, 30)]
    assert shorten("abcdef", 100) == "abcdef"
    assert shorten("abcdef", 32) == "abc…"
    assert text_width("語") > text_width("a")


def test_labels_are_escaped() -> None:
    drawing = draw_curves([make_curve('<script>alert("1")</script>\x00', [1.0, 2.0])], "<b>")
    parse(drawing)
    assert "<script" not in drawing
    assert "<b>" not in drawing


def contrast(colour: str, ground: str) -> float:
    """Return the contrast of two colours by WCAG 2, from 1 to 21."""
    lights = []
    for code in (colour, ground):
        shares = [int(code[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
        lights.append(sum(weight * share for weight, share in zip((0.2126, 0.7152, 0.0722), linear, strict=True)))
    return (max(lights) + 0.05) / (min(lights) + 0.05)


def test_every_method_of_the_largest_comparison_has_a_style_of_its_own() -> None:
    curves = [make_curve(label, [50.0, 40.0]) for label in method_labels()]
    root = parse(draw_curves(curves, "CER"))
    groups = find_class(root, "method")
    drawn = [(node.get("stroke"), node.get("stroke-dasharray", "")) for node in find_class(root, "main")]
    keys = [(node.get("stroke"), node.get("stroke-dasharray", "")) for node in find_class(root, "key-line")]
    assert len(set(drawn)) == len(method_labels()) > 20
    assert keys == drawn
    assert len({group.get("class") for group in groups}) == len(method_labels())
    legend = terminal_plot(curves, "CER").partition("compute (likelihood updates)")[2]
    assert sorted(re.findall(r"\S (\S{3,})", legend)) == sorted(method_labels())
    assert len(set(re.findall(r"(\S) \S{3,}", legend))) == len(method_labels()) <= len(SYMBOLS)


def test_the_style_sheet_knows_every_style_and_is_readable_on_light_and_dark() -> None:
    sheet = files("seqcritic.report").joinpath("page.css").read_text(encoding="utf-8")
    names = {name for index in range(len(method_labels())) for name in style_of(index).classes.split()}
    for name in names:
        assert re.search(rf"\.{name} {{", sheet), name
    light, dark = sheet.split("prefers-color-scheme: dark")
    for part in (light, dark):
        (ground,) = re.findall(r"--ground: (#\w{6})", part)
        colours = re.findall(r"--method-\d: (#\w{6})", part)
        assert len(set(colours)) == len(PALETTE)
        assert all(contrast(colour, ground) >= 3 for colour in colours)
    assert tuple(re.findall(r"--method-\d: (#\w{6})", light)) == PALETTE
