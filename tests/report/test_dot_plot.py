"""Dot plots: every finite value has its dot, and the axis holds it."""

import math
import xml.etree.ElementTree as ElementTree

import pytest

from seqcritic.report.charts import Dot, DotLine, draw_dot_plot

SVG = "{http://www.w3.org/2000/svg}"


def circles(drawing: str) -> list[tuple[float, float]]:
    root = ElementTree.fromstring(drawing)
    return [(float(node.get("cx", "")), float(node.get("cy", ""))) for node in root.iter(f"{SVG}circle")]


@pytest.mark.parametrize("logarithmic", [True, False])
def test_higher_values_are_drawn_higher_and_cases_go_to_the_right(logarithmic: bool) -> None:
    places = circles(draw_dot_plot(["a", "b", "c"], [DotLine("x", (Dot(1), Dot(10), Dot(100)))], "t", "", logarithmic))
    assert [x for x, _ in places] == sorted(x for x, _ in places)
    (_, first), (_, second), (_, third) = places
    assert first > second > third
    if logarithmic:
        assert first - second == pytest.approx(second - third, abs=0.1)


def test_what_cannot_be_drawn_is_left_out() -> None:
    line = DotLine("x", (Dot(math.nan), Dot(0.0), Dot(3.0), Dot(-1.0)))
    names = ["a", "b", "c", "d"]
    assert len(circles(draw_dot_plot(names, [line], "t", logarithmic=True))) == 1
    assert len(circles(draw_dot_plot(names, [line], "t"))) == 3
    assert circles(draw_dot_plot(["a"], [DotLine("x", (Dot(math.nan),))], "t")) == []


def test_bounds_are_drawn_and_far_ones_do_not_squeeze_the_values() -> None:
    line = DotLine("x", (Dot(1.0, 0.9, 1.1), Dot(2.0, -500.0, 500.0)))
    root = ElementTree.fromstring(draw_dot_plot(["a", "b"], [line], "t"))
    bounds = [node for node in root.iter(f"{SVG}line") if "bound" in node.get("class", "")]
    assert len(bounds) == 2
    heights = [float(node.get("cy", "")) for node in root.iter(f"{SVG}circle")]
    assert abs(heights[0] - heights[1]) > 60


def test_long_names_are_slanted_and_labels_stand_in_the_legend() -> None:
    names = [f"a rather long name of a run, number {index}" for index in range(8)]
    drawing = draw_dot_plot(names, [DotLine("first", (Dot(1.0),) * 8), DotLine("second", (Dot(2.0),) * 8)], "t")
    assert drawing.count("rotate(-40") == 8
    texts = [node.text for node in ElementTree.fromstring(drawing).iter(f"{SVG}text")]
    assert {"first", "second", "t"} <= set(texts)
