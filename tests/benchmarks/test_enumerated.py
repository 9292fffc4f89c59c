"""The committed comparison of measured and exact gradients: figures agree, and the exact ones are those of the code."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import pytest

import results
from enumerated import DRAWS, EXAMPLES, NOISES, find_exact
from enumeration_tables import Compared, draw_enumeration, enumeration, read_enumeration
from seqcritic.analysis.estimators import ESTIMATORS, UNBIASED
from seqcritic.report.diagnosis import Figure

PATH = results.RESULTS / "gradients" / "enumeration.json"
ROWS = read_enumeration(PATH)
FIGURES = ("variance", "bias_square", "cosine")
ROUNDING = 2e-9


def of(name: str) -> list[Compared]:
    return [row for row in ROWS if row.name == name]


def test_every_critic_and_estimator_is_there():
    assert [(row.noise, row.name) for row in ROWS] == [(noise, name) for noise in NOISES for name in ESTIMATORS]
    content = json.loads(PATH.read_text(encoding="utf-8"))["rows"]
    assert all((row["examples"], row["draws"]) == (EXAMPLES, DRAWS) for row in content)
    assert len({row["seed"] for row in content}) == len(NOISES)
    for entry in (entry for row in content for entry in row["estimators"]):
        for kind, square in (
            ("exact", entry["exact"]["bias_square"]),
            ("measured", entry["measured"]["bias_square"][0]),
        ):
            assert entry[kind]["bias"] ** 2 == pytest.approx(max(square, 0.0), abs=1e-8)


@pytest.mark.parametrize("figure", FIGURES)
def test_measured_figures_are_within_four_errors_of_the_exact_ones(figure: str):
    for row in ROWS:
        measured = row.measured[figure]
        assert measured.error > 0 or (row.is_truth and figure != "variance")
        assert abs(measured.value - row.exact[figure]) <= 4 * measured.error + ROUNDING, (row.noise, row.name)


def test_only_actor_critic_with_a_wrong_critic_is_biased():
    for row in ROWS:
        is_biased = row.name not in UNBIASED and row.noise > 0
        assert (row.exact["bias"] > 1e-6) == is_biased
        assert row.exact["bias"] == pytest.approx(math.sqrt(row.exact["bias_square"]), abs=1e-6)
    exact, *wrong = of("actor-critic")
    assert exact.measured["bias_square"].value <= 2 * exact.measured["bias_square"].error
    assert wrong[-1].measured["bias_square"].value > 4 * wrong[-1].measured["bias_square"].error


def test_the_bias_grows_in_proportion_to_the_error_of_the_critic():
    exact, *wrong = of("actor-critic")
    assert exact.exact["bias"] == 0
    assert [row.exact["bias"] / row.noise for row in wrong] == pytest.approx([wrong[0].exact["bias"] / 0.05] * 4)


@pytest.mark.parametrize("noise", [NOISES[0], NOISES[-1]])
def test_the_exact_figures_are_those_of_the_code(noise: float):
    found = find_exact(noise)
    for row in ROWS:
        if row.noise == noise:
            assert row.exact == pytest.approx(found[row.name], abs=1e-6)


def test_the_table_writes_a_bound_where_noise_hides_the_bias():
    table = enumeration(PATH).splitlines()
    assert len(table) == 2 + len(ROWS)
    first = next(line for line in table if line.startswith("| 0 | actor-critic"))
    assert re.search(r"\| 0 / <0\.\d+ \|", first)
    row = replace(of("actor-critic")[-1], measured={"bias_square": Figure(0.25, 0.01)})
    assert row.bias == Figure(0.5, 0.01)


def test_the_picture_has_a_dot_for_every_figure_above_zero():
    critic, with_critic = of("actor-critic"), of("reinforce-critic")
    shown = [(row, "bias_square") for row in critic] + [(row, "variance") for row in critic + with_critic]
    values = [value for row, figure in shown for value in (row.exact[figure], row.measured[figure].value)]
    assert draw_enumeration(PATH).count("<circle") == sum(value > 0 for value in values)
    assert sum(value > 0 for value in values) < 6 * len(NOISES)
