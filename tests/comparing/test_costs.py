"""Costs of updates: measured once where a comparison runs, kept in its folder, and never instead of given ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from seqcritic.cli import main
from seqcritic.comparing import costs
from seqcritic.comparing.costs import needed_costs, rows_with_costs, with_costs
from seqcritic.comparing.plan import budget
from seqcritic.comparing.rows import own_rows, parse_rows
from seqcritic.data.task import build_task
from seqcritic.files import seal
from seqcritic.settings.io import load_recipe
from seqcritic.settings.methods import typical_costs
from seqcritic.settings.tree import Settings
from seqcritic.training.calibration import measure_seconds
from seqcritic.training.learner import Learner
from seqcritic.training.run_folder import read_settings
from support import Refusal, records, snapshot, start_in_forks, write_recipe

EVIDENCE = Path(__file__).parents[2] / "benchmarks" / "evidence"
LABELS = ("likelihood", "reinforce", "actor-critic")
# Far from the typical ones, in seconds.
SECONDS = {"likelihood": 0.5, "reinforce": 1.0, "actor-critic": 2.0, "actor-critic+likelihood": 2.5, "critic": 1.5}
SECONDS |= {"self-critical": 3.0}
PATIENT, WIDE = "patient: method.gamma_phi=0.5", "wide: critic.hidden=12 training.batch=4"
SECONDS |= {PATIENT: 4.0, f"{PATIENT} (critic)": 3.0, WIDE: 1.0, f"{WIDE} (critic)": 1.5}


@pytest.fixture
def bare_recipe(tmp_path: Path) -> Path:
    """A recipe that gives no costs."""
    phases = {phase: {"updates": 6, "learning_rate": 0.01} for phase in ("actor", "critic", "train")}
    return write_recipe(tmp_path, phases=phases, compare={})


class Measuring:
    """Stands for the measuring: notes what it is asked for and answers at once."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    def __call__(self, settings: Settings, labels: Sequence[str], *rest: Any) -> dict[str, float]:
        self.asked.append(tuple(labels))
        return {label: SECONDS[label] for label in ("likelihood", *labels)}


@pytest.fixture
def measuring(monkeypatch: pytest.MonkeyPatch) -> Measuring:
    """Costs that no clock decides, and a record of what was measured."""
    stand_in = Measuring()
    monkeypatch.setattr(costs, "measure_seconds", stand_in)
    return stand_in


def note_updates(patch: pytest.MonkeyPatch, told: Callable[[Settings], object]) -> list[tuple[str, object]]:
    """Return a list that will hold the phase of every update that is made, and what is told of its settings."""
    made: list[tuple[str, object]] = []
    update = Learner.update

    def note(learner: Learner, *rest: Any) -> dict[str, float]:
        made.append((learner.phase, told(learner.settings)))
        return update(learner, *rest)

    patch.setattr(Learner, "update", note)
    return made


def test_every_method_of_a_comparison_is_measured_in_turns(bare_recipe: Path, monkeypatch: pytest.MonkeyPatch):
    made = note_updates(monkeypatch, lambda settings: settings.method.label)
    settings = load_recipe(bare_recipe)
    seconds = measure_seconds(settings, ("reinforce", "critic", "raml"), build_task(settings.data), 3, 4)
    assert list(seconds) == ["likelihood", "reinforce", "critic", "raml"]
    assert all(median > 0 for median in seconds.values())
    assert made[:3] == [("actor", "likelihood")] * 3
    a_round = [("train", "likelihood"), ("train", "reinforce"), ("critic", "actor-critic"), ("train", "raml")]
    assert made[3:] == 4 * a_round


def test_an_actor_that_is_given_is_measured_with(
    bare_recipe: Path, finished_run: Path, monkeypatch: pytest.MonkeyPatch
):
    phases: list[str] = []
    update = Learner.update
    monkeypatch.setattr(Learner, "update", lambda own, *rest: phases.append(own.phase) or update(own, *rest))
    settings = load_recipe(bare_recipe, [f"start.actor={finished_run}"])
    measure_seconds(settings, ("reinforce",), build_task(settings.data), 3, 2)
    assert phases == ["train"] * 4, "no warm-up"


@pytest.mark.parametrize(
    ("labels", "overrides", "names"),
    [
        (("likelihood", "reinforce"), ("compare.budget=9",), ["reinforce"]),
        (("likelihood",), (), ["critic", "actor-critic+likelihood"]),
        (("dagger",), ("compare.budget=9",), ["dagger", "critic"]),
        (("dagger",), ("compare.budget=9", "start.critic=c"), ["dagger"]),
    ],
)
def test_what_counts_is_needed(
    bare_recipe: Path, labels: tuple[str, ...], overrides: tuple[str, ...], names: list[str]
) -> None:
    assert needed_costs(load_recipe(bare_recipe, overrides), labels) == names


def test_given_costs_are_not_measured(bare_recipe: Path, measuring: Measuring, tmp_path: Path):
    given = [f"compare.costs.{name}=7" for name in ("critic", "reinforce", "actor-critic+likelihood")]
    settings = load_recipe(bare_recipe, given)
    task = build_task(settings.data)
    assert with_costs(settings, LABELS[:2], tmp_path / "out", task) == settings
    assert measuring.asked == []
    assert not (tmp_path / "out").exists()
    found = with_costs(settings, LABELS, tmp_path / "out", task)
    assert measuring.asked == [("actor-critic",)]
    assert found.compare.costs == settings.compare.costs | {"actor-critic": 4.0}
    assert found.compare.cost("reinforce") == 7


def test_a_comparison_measures_once_and_keeps_what_it_measured(
    bare_recipe: Path, measuring: Measuring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    out = tmp_path / "out"
    started = start_in_forks(monkeypatch)
    command = ["compare", str(bare_recipe), "--out", str(out), "--methods", ",".join(LABELS)]
    assert main(command) == 0
    assert measuring.asked == [("reinforce", "actor-critic", "critic", "actor-critic+likelihood")]
    stored = json.loads((out / "costs.json").read_text(encoding="utf-8"))
    assert stored["costs"] == {
        "reinforce": 2.0,
        "actor-critic": 4.0,
        "critic": 3.0,
        "actor-critic+likelihood": 5.0,
    }
    # 6 updates of the critic and 6 of actor-critic+likelihood are the budget, by what was measured.
    assert [records(out / "seed-1" / label)[-1]["update"] for label in LABELS] == [48, 24, round((48 - 18) / 4)]
    assert {records(out / "seed-1" / label)[-1]["compute"] for label in LABELS[:2]} == {48}
    data = json.loads((out / "comparison.json").read_text(encoding="utf-8"))
    assert [row["cost_per_update"] for row in data["rows"]] == [1.0, 2.0, 4.0]
    assert "by the recipe: likelihood 1.00; measured here before it began: reinforce 2.00" in data["notes"][0]
    repeated = yaml.safe_load(data["configuration"])
    assert repeated["compare"]["costs"] == stored["costs"]
    assert started == ["actor", "critic", *LABELS]

    # The same command again, and with one method more: only that one is measured and trained.
    before = {name: snapshot(out / "seed-1" / name) for name in started}
    assert main(command) == 0
    assert len(measuring.asked) == 1
    more = [*command[:-1], f"{command[-1]},self-critical"]
    assert main(more) == 0
    assert measuring.asked[1:] == [("self-critical",)]
    assert started[5:] == ["self-critical"]
    for name, content in before.items():
        now = snapshot(out / "seed-1" / name)
        assert {path: now[path] for path in content if "evaluations" not in path} == {
            path: each for path, each in content.items() if "evaluations" not in path
        }
    assert json.loads((out / "costs.json").read_text(encoding="utf-8"))["costs"] == stored["costs"] | {
        "self-critical": 6.0
    }
    assert read_settings(out / "seed-1/self-critical").compare.costs == {"self-critical": 6.0}


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("{", "costs.json is damaged (Expecting property name"),
        ('{"costs": 3}', "costs.json is damaged ("),
        ('{"costs": {"reinforce": 2.0}}', "costs.json is damaged (it has no digest)"),
        (
            json.dumps(seal({"costs": {"reinforce": -1}})),
            "costs.json is damaged: compare.costs.reinforce: input should be greater",
        ),
    ],
)
def test_damaged_costs_are_refused(
    bare_recipe: Path, measuring: Measuring, tmp_path: Path, refusal: Refusal, content: str, fault: str
):
    out = tmp_path / "out"
    out.mkdir()
    (out / "costs.json").write_text(content, encoding="utf-8")
    assert fault in refusal("compare", bare_recipe, "--out", out, "--methods", "reinforce", "compare.budget=48")
    assert measuring.asked == []


def test_rows_are_measured_beside_their_method_and_use_up_the_budget(
    bare_recipe: Path, measuring: Measuring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    out = tmp_path / "out"
    started = start_in_forks(monkeypatch)
    command = ["compare", str(bare_recipe), "--out", str(out), "method.name=actor-critic"]
    # The recipe's own cost of actor-critic is twice what the clock would tell; so then are those of its rows.
    command += ["compare.costs.actor-critic=8", "compare.budget=96", "--row", "plain:", "--row", PATIENT, "--row", WIDE]
    assert main(command) == 0
    rows = [PATIENT, f"{PATIENT} (critic)", WIDE, f"{WIDE} (critic)"]
    assert measuring.asked == [("critic",), ("actor-critic", "critic", *rows)]
    stored = json.loads((out / "costs.json").read_text(encoding="utf-8"))["costs"]
    assert stored == dict(zip(("critic", *rows), (3.0, 16.0, 6.0, 4.0, 3.0), strict=True))
    positions = {"plain": "plain", "patient": "patient/actor-critic", "wide": "wide/actor-critic"}
    last = {label: records(out / "seed-1" / place)[-1] for label, place in positions.items()}
    assert {label: record["update"] for label, record in last.items()} == {
        "plain": round((96 - 6 * 3) / 8),
        "patient": round((96 - 6 * 6) / 16),
        "wide": round((96 - 6 * 3) / 4),
    }
    costs_of = {"plain": 8.0, "patient": 16.0, "wide": 4.0}
    assert all(abs(record["compute"] - 96) <= costs_of[label] for label, record in last.items())
    data = json.loads((out / "comparison.json").read_text(encoding="utf-8"))
    assert {row["label"]: row["cost_per_update"] for row in data["rows"]} == costs_of
    assert data["baseline"] == "plain"
    assert "of rows with settings of their own: patient 16.00, wide 4.00" in data["notes"][0]
    assert data["notes"][1] == f"Rows that differ from the recipe: {PATIENT}; {WIDE}."
    assert "patient" in (out / "report.html").read_text(encoding="utf-8")

    # The same command again; the report on other text finds the runs of every row.
    num_started = len(started)
    assert main(command) == 0
    assert (len(measuring.asked), len(started)) == (2, num_started)
    assert main(["report", str(out), "data.noise=0.5", "--out", str(tmp_path / "other.json")]) == 0
    other = json.loads((tmp_path / "other.json").read_text(encoding="utf-8"))
    assert [row["label"] for row in other["rows"]] == ["plain", "patient", "wide"]


def test_rows_are_really_measured_in_turns(bare_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    made = note_updates(monkeypatch, lambda settings: settings.method.gamma_phi)
    settings = load_recipe(bare_recipe, ["method.name=actor-critic", "compare.costs.actor-critic=8"])
    given = "told: method.gamma_phi=1 compare.costs.actor-critic=2 compare.costs.critic=1"
    rows = own_rows(settings, parse_rows([PATIENT, given]))
    diagnosed, told = rows_with_costs(settings, rows, tmp_path / "out", build_task(settings.data))
    own = settings.method.gamma_phi
    assert made[-5:] == [("train", own), ("train", own), ("critic", own), ("train", 0.5), ("critic", 0.5)]
    assert 2 < diagnosed.overrides["compare.costs.actor-critic"] < 32
    assert told.settings(settings).compare.cost("actor-critic") == 2


def test_an_ablation_measures_too(
    bare_recipe: Path, measuring: Measuring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    start_in_forks(monkeypatch)
    command = ["ablate", str(bare_recipe), "--rows", "baseline", "--out", str(tmp_path / "out")]
    assert main(command) == 0
    assert main(command) == 0
    assert measuring.asked == [("actor-critic", "critic", "actor-critic+likelihood")]
    note = json.loads((tmp_path / "out/ablation.json").read_text(encoding="utf-8"))["notes"][0]
    assert "the compute of 48 likelihood updates" in note
    assert "measured here before it began: actor-critic 4.00, critic 3.00, actor-critic+likelihood 5.00" in note


def test_costs_are_really_measured(bare_recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    settings = load_recipe(bare_recipe)
    found = with_costs(settings, ("reinforce", "minimum-risk"), tmp_path / "out", build_task(settings.data))
    assert set(found.compare.costs) == {"reinforce", "minimum-risk", "critic", "actor-critic+likelihood"}
    assert found.compare.cost("minimum-risk") > found.compare.cost("reinforce") > 0
    assert found.compare.costs != {name: typical_costs()[name] for name in found.compare.costs}
    assert "measuring what an update costs here: likelihood, reinforce" in capsys.readouterr().err
    assert budget(found) == pytest.approx(
        6 * found.compare.cost("critic") + 6 * found.compare.cost("actor-critic+likelihood")
    )


def test_looking_at_a_recipe_measures_nothing(bare_recipe: Path, measuring: Measuring):
    assert main(["validate", str(bare_recipe)]) == 0
    assert measuring.asked == []


UNDER_WAY = (
    "corrector",
    "privileged",
    "tatoeba-window",
    "transformer",
    "whisper",
)  # no figure of them is published: costs are measured first
RECIPES = [path for path in sorted(EVIDENCE.glob("*.yaml")) if not path.stem.endswith("-rows")]
PUBLISHED = [path for path in RECIPES if path.stem not in UNDER_WAY]


@pytest.mark.parametrize("recipe", ["demo", "tatoeba-de-en", *PUBLISHED], ids=lambda recipe: Path(recipe).stem)
def test_studies_whose_figures_are_published_give_all_their_costs(recipe: str | Path):
    settings = load_recipe(recipe)
    missing = set(needed_costs(settings, settings.compare.methods)) - set(settings.compare.costs)
    assert not missing, "measured anew, the figures would not repeat"
