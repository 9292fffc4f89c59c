"""The picture of normal runs: four charts a method, drawn again from its points without the runs."""

from __future__ import annotations

import json
import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from evidence.normal_curves import DOCS, MOST_POINTS, OWN_MEASURES, main, measures_of, thin
from seqcritic.contracts.method_registry import registered_methods
from support import records

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def runs(finished_run: Path, tmp_path: Path) -> Path:
    """A folder like that of a comparison of one method with two seeds."""
    for seed in (3, 4):
        shutil.copytree(finished_run, tmp_path / f"runs/seed-{seed}/actor-critic")
    return tmp_path / "runs"


def test_the_points_are_those_of_the_metrics_and_suffice_to_draw(runs: Path, tmp_path: Path):
    points, picture = tmp_path / "some/points.json", tmp_path / "images/picture.svg"
    assert main([str(runs), "--points", str(points), "--out", str(picture)]) == 0
    content = json.loads(points.read_text(encoding="utf-8"))
    assert (content["recipe"], content["seed"], list(content["methods"])) == ("tiny", 3, ["actor-critic"])
    found = content["methods"]["actor-critic"]
    assert tuple(found) == measures_of("actor-critic")
    for name in found:
        logged = [each for each in records(runs / "seed-3/actor-critic") if each["phase"] == "train" and name in each]
        assert found[name] == [[each["update"], pytest.approx(each[name], rel=1e-3)] for each in logged]
    again = tmp_path / "again.svg"
    shutil.rmtree(runs)
    assert main(["--points", str(points), "--out", str(again)]) == 0
    assert again.read_bytes() == picture.read_bytes()


def test_every_chart_has_its_name_and_a_curve_or_says_that_there_is_none(tmp_path: Path):
    assert set(OWN_MEASURES) == set(registered_methods())
    for name, measure in OWN_MEASURES.items():
        assert f"`{measure}`" in (DOCS / f"methods/{name}.md").read_text(encoding="utf-8"), "its page says what it is"
    measured = {"likelihood_loss": [[1.0, 3.0], [2.0, 2.0]], "valid_score": [[0.0, 40.0]]}
    content = {"recipe": "r", "seed": 1, "methods": {"likelihood": measured, "raml+likelihood": {}}}
    points, picture = tmp_path / "points.json", tmp_path / "picture.svg"
    points.write_text(json.dumps(content), encoding="utf-8")
    assert main(["--points", str(points), "--out", str(picture)]) == 0
    root = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
    written = [node.text for node in root.iter(f"{SVG}text")]
    assert {*measures_of("likelihood"), *measures_of("raml+likelihood"), "likelihood", "raml+likelihood"} <= set(
        written
    )
    assert len(list(root.iter(f"{SVG}path"))) == 2
    assert written.count("not measured") == 6


@pytest.mark.parametrize("count", [0, 1, 2, 5, 60, 61, 1000])
def test_thinned_points_keep_their_ends_and_their_mean(count: int):
    kept = thin([[float(update), 2.0 * update] for update in range(count)])
    assert len(kept) == count if count <= MOST_POINTS else 20 < len(kept) <= MOST_POINTS
    if count:
        assert [kept[0][0], kept[-1][0]] == [0, count - 1]
        assert all(value == pytest.approx(2 * update, rel=1e-3, abs=0.2) for update, value in kept)


def test_a_folder_without_runs_is_refused(tmp_path: Path, runs: Path, capsys: pytest.CaptureFixture[str]):
    points = str(tmp_path / "points.json")
    for arguments in ([str(tmp_path)], [str(runs), "--seed", "7"], [str(tmp_path / "nothing")]):
        assert main([*arguments, "--points", points, "--out", str(tmp_path / "x.svg")]) == 2
        assert "name a comparison" in capsys.readouterr().err
    assert main(["--points", str(tmp_path / "no.json"), "--out", str(tmp_path / "x.svg")]) == 2
