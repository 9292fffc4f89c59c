"""Studies: what a study file says is what is trained, with equal compute, and the better rate is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

import study
import tables
from seqcritic import load_recipe
from seqcritic.training.train import train

EVIDENCE = Path(study.__file__).parent
STUDIES = sorted(EVIDENCE.glob("*-rows.yaml"))
TINY = {
    "data.length": 5,
    "data.minimum_length": 5,
    "data.valid_size": 20,
    "data.test_size": 20,
    "phases.actor.updates": 3,
    "phases.critic.updates": 2,
    "compare.budget": 20,
} | {f"{network}.{size}": 4 for network in ("actor", "critic") for size in ("embedding", "hidden", "attention")}
ROWS = {
    "recipe": "demo",
    "rates": {"1e-3": [0.001, 0.0001], "1e-9": [1e-9, 1e-9]},
    "seeds": 2,
    "evaluations": 2,
    "beam": 2,
    "mbr": ["likelihood"],
    "rows": {
        "likelihood": None,
        "reinforce, tilted": {"method": "reinforce", "settings": {"method.kl_weight": 0.5}, "cost": 4.0, "seeds": 1},
        "actor-critic": {"beam": 3},
    },
}


def read(path: Path) -> study.Study:
    return study.Study.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))


@pytest.fixture
def runs(tmp_path: Path) -> study.Runs:
    return study.Runs(
        study.Study.model_validate(ROWS), load_recipe("demo", TINY), tmp_path / "actor", tmp_path / "runs"
    )


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_row_of_a_study_can_be_trained(path: Path, tmp_path: Path):
    found = read(path)
    beside = path.parent / found.recipe
    recipe = load_recipe(str(beside) if beside.is_file() else found.recipe)
    runs = study.Runs.__new__(study.Runs)
    runs.study, runs.settings, runs.actor, runs.folder = found, recipe, tmp_path / "actor", tmp_path
    spent = recipe.phases.critic.updates * recipe.compare.cost("critic")
    for row in found.rows:
        cell = study.Cell(row, 1, next(iter(found.rates)))
        made = runs.cell_settings(cell)
        assert made.method.label == found.label(row)
        compute = made.phases.train.updates * runs.cost(row) + (spent if made.start.critic else 0)
        assert compute == pytest.approx(recipe.compare.budget, abs=runs.cost(row) / 2)
    assert set(found.mbr) <= set(found.rows)


def test_a_row_has_its_own_settings_and_cost(runs: study.Runs):
    settings = runs.cell_settings(study.Cell("reinforce, tilted", 2, "1e-3"))
    assert (settings.method.kl_weight, settings.phases.train.updates, settings.seed) == (0.5, 5, 2)
    assert (settings.phases.train.learning_rate, settings.phases.train.final_learning_rate) == (1e-3, 1e-4)


def test_the_best_rows_on_validation_get_all_seeds(runs: study.Runs):
    reached = {"likelihood": 50.0, "reinforce, tilted": 40.0, "actor-critic": 45.0}

    def num_seeds(best: int | None, start: float = 60.0) -> dict[str, int]:
        chosen = [
            {"row": row, "chosen": "1e-3", "start": start, "valid": {"1e-3": score}} for row, score in reached.items()
        ]
        runs.study = study.Study.model_validate(ROWS | {"best": best})
        return {row: len(cells) for row, cells in runs.final_cells(chosen).items()}

    assert num_seeds(None) == {"likelihood": 2, "reinforce, tilted": 1, "actor-critic": 2}  # one by its own setting
    assert num_seeds(2) == num_seeds(None)
    assert num_seeds(1) == {"likelihood": 2, "reinforce, tilted": 1, "actor-critic": 1}  # errors: 40 is better than 45
    assert num_seeds(None, start=45.0) == num_seeds(1)  # a row that gained nothing is not tried again


def test_an_unknown_word_in_a_study_is_refused():
    with pytest.raises(ValueError, match="seads"):
        study.Study.model_validate(ROWS | {"seads": 3})


@pytest.mark.slow
def test_a_study_is_run_chosen_resumed_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file, actor, out = tmp_path / "tiny-rows.yaml", tmp_path / "actor", tmp_path / "out"
    (tmp_path / "demo.yaml").write_text(yaml.safe_dump(load_recipe("demo", TINY).model_dump(mode="json")))
    file.write_text(yaml.safe_dump(ROWS | {"recipe": "demo.yaml"}))
    alone = {"method.name": "likelihood", "method.likelihood_weight": 0, "phases.train.updates": 0}
    train(load_recipe("demo", TINY | alone), actor)
    command = ["study.py", str(file), "--actor", str(actor), "--runs", str(tmp_path / "runs"), "--out", str(out)]
    monkeypatch.setattr("sys.argv", command)
    study.main()
    rates = json.loads((out / "rates.json").read_text())
    for row in rates:
        assert row["valid"][row["chosen"]] == min(row["valid"].values())
    found = tables.read_comparison(out / "comparison.json")
    assert {row.label: len(row.seed_scores) for row in found.rows} == {
        "likelihood": 2,
        "reinforce, tilted": 1,
        "actor-critic": 2,
    }
    assert found.with_beam is not None
    assert "mbr:32" in tables.read_comparison(out / "mbr.json").signature
    assert [row.label for row in tables.read_comparison(out / "own-beam.json").rows] == ["likelihood", "actor-critic"]
    assert tables.rates(out / "rates.json").count("**") == 2 * len(rates)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("model/*.safetensors")}
    first = (out / "comparison.json").read_text()
    study.main()
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert (out / "comparison.json").read_text() == first
