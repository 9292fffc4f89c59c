"""Ablations of tiny runs: one setting changed at a time, a critic of its own each, the rows beside the paper's."""

from __future__ import annotations

import json
import math
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from seqcritic.cli import main
from seqcritic.comparing import jobs
from seqcritic.comparing.ablate import BASELINE, ROWS, ablation_rows, choose_rows
from seqcritic.comparing.jobs import Jobs
from seqcritic.comparing.plan import PlannedRun, plan_runs, run_settings
from seqcritic.comparing.rows import Row
from seqcritic.errors import NonFiniteError
from seqcritic.report.ablation import Ablation, AblationRow, list_ablation_columns
from seqcritic.report.charts import draw_ablation
from seqcritic.report.tables import markdown_columns
from seqcritic.settings.io import differences, load_recipe, settings_from
from seqcritic.settings.tree import Settings
from seqcritic.training.run_folder import read_settings
from support import Fork, Refusal, records, write_text

QUICK = [
    "data.valid_size=20",
    "actor.embedding=8",
    "actor.hidden=8",
    "actor.attention=8",
    "critic.embedding=8",
    "critic.hidden=8",
    "critic.attention=8",
    "phases.actor.updates=4",
    "phases.critic.updates=3",
    "phases.train.updates=4",
    "training.batch=8",
    "training.evaluate_every=2",
]
CHOSEN = "gamma_phi=0.01,gamma_phi=1,gamma_theta=1,no-td"


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The demo with small networks, little text and few updates, some rows of its ablation."""
    text = write_text(tmp_path_factory.mktemp("text") / "text.txt")
    given = [f"data.{split}={text}" for split in ("train", "valid", "test")]
    return ["ablate", "demo", *QUICK, *given, "--rows", CHOSEN, "--jobs", "1"]


@pytest.fixture(scope="module")
def ablation(command: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished ablation, its runs in forks of this process."""
    out = tmp_path_factory.mktemp("ablation") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs, "Popen", lambda command, **options: Fork(*command[command.index("train") :]))
        patch.setattr(jobs, "POLL_SECONDS", 0.01)
        assert main([*command, "--out", str(out)]) == 0
    return out


def row_settings(ablation: Path, name: str, kind: str) -> Settings:
    return read_settings(ablation / "seed-1" / name / kind)


@pytest.mark.parametrize("kind", ["critic", "actor-critic"])
@pytest.mark.parametrize(
    ("name", "key", "values"),
    [
        ("gamma_phi-1", "method.gamma_phi", "0.01 -> 1.0"),
        ("gamma_theta-1", "method.gamma_theta", "0.01 -> 1.0"),
        ("no-td", "method.temporal_difference", "True -> False"),
    ],
)
def test_a_row_differs_from_the_baseline_by_one_setting(
    ablation: Path, name: str, key: str, values: str, kind: str
) -> None:
    found = differences(row_settings(ablation, name, kind), row_settings(ablation, BASELINE, kind))
    start = [difference for difference in found if difference.startswith("start.critic")]
    assert [difference for difference in found if difference not in start] == [f"{key}: {values}"]
    assert bool(start) == (kind == "actor-critic"), "each row has a critic of its own"
    assert row_settings(ablation, name, kind).start.actor == str(ablation / "seed-1/actor")
    assert row_settings(ablation, name, kind).method.label == "actor-critic"


def test_all_rows_make_the_same_updates(ablation: Path) -> None:
    folders = [ablation / "seed-1" / name / "actor-critic" for name in (BASELINE, "gamma_phi-1", "no-td")]
    last = [records(folder)[-1] for folder in folders]
    assert len({record["update"] for record in last}) == 1
    assert len({record["compute"] for record in last}) == 1


def test_a_row_with_the_recipes_own_value_is_the_baseline(ablation: Path) -> None:
    assert not (ablation / "seed-1/gamma_phi-0.01").exists()
    rows = {row["name"]: row for row in json.loads((ablation / "ablation.json").read_text())["rows"]}
    assert list(rows) == [BASELINE, "gamma_phi=0.01", "gamma_phi=1", "gamma_theta=1", "no-td"]
    assert rows["gamma_phi=0.01"]["is_baseline"]
    assert rows["gamma_phi=0.01"]["seed_scores"] == rows[BASELINE]["seed_scores"]
    assert not rows["gamma_phi=1"]["is_baseline"]
    assert rows["gamma_phi=1"]["paper_score"] == 8.14
    for name in ("gamma_phi=1", BASELINE):
        folder = ablation / "seed-1" / name.replace("=", "-") / "actor-critic"
        valid = [record for record in records(folder) if record["kind"] == "valid"]
        assert rows[name]["seed_scores"] == [min(record["valid_score"] for record in valid if record["update"] > 0)]
        assert rows[name]["last_scores"] == [valid[-1]["valid_score"]]


def test_table_and_picture_are_written(ablation: Path) -> None:
    table = (ablation / "table.md").read_text(encoding="utf-8")
    assert "| row | best valid CER ↓ |" in table
    assert "target network crucial" in table
    picture = ElementTree.fromstring((ablation / "ablation.svg").read_text(encoding="utf-8"))
    names = [node.text for node in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert {"no-td", "gamma_phi=1", BASELINE} <= set(names)


def test_a_second_call_starts_nothing(
    ablation: Path, command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def start_nothing(*rest: object, **options: object) -> None:
        raise AssertionError("a finished run was started")

    monkeypatch.setattr(jobs, "Popen", start_nothing)
    before = {path.name: path.read_bytes() for path in ablation.iterdir() if path.is_file()}
    assert main([*command, "--out", str(ablation)]) == 0
    assert {path.name: path.read_bytes() for path in ablation.iterdir() if path.is_file()} == before
    assert "gamma_theta=1" in capsys.readouterr().out


def test_the_rows_are_those_of_the_papers_table() -> None:
    paper = {"gamma_phi": [0.001, 0.01, 0.1, 1], "gamma_theta": [0.001, 1], "no-shaping": [False], "no-td": [False]}
    paper["lambda_c"] = [3e-3, 1e-3, 1e-4, 1e-6, 1e-8, 0]
    for kind, values in paper.items():
        assert [row.value for row in choose_rows((kind,))] == values
    assert choose_rows(()) == ROWS
    assert [row.name for row in choose_rows((" no-td", "gamma_phi=1"))] == ["gamma_phi=1", "no-td"]
    settings = load_recipe("demo")
    for row in ROWS:
        section, _, leaf = row.key.partition(".")
        assert hasattr(getattr(settings, section), leaf)


def test_unknown_rows_and_a_given_critic_are_refused(refusal: Refusal, tmp_path: Path) -> None:
    line = refusal("ablate", "demo", "--rows", "gamma=1", "--out", tmp_path)
    assert line.startswith("seqcritic: rows: no row 'gamma=1'; known: gamma_phi=0.001, ")
    line = refusal("ablate", "demo", "start.critic=somewhere", "--out", tmp_path)
    assert "start.critic: every row of an ablation trains a critic of its own" in line


def test_every_seed_has_its_own_runs_and_a_given_actor_is_used(tmp_path: Path) -> None:
    settings = load_recipe("demo", ["start.actor=trained", "seed=4"])
    runs = plan_runs(settings, ablation_rows(settings, choose_rows(("no-td",))), 2, tmp_path)
    assert [(run.kind, run.seed, run.row and run.row.label) for run in runs] == [
        (kind, seed, row) for seed in (4, 5) for row in (BASELINE, "no-td") for kind in ("critic", "actor-critic")
    ]
    critic = next(run for run in runs if run.row and run.row.label == "no-td")
    found = run_settings(settings, critic)
    assert (found.start.actor, found.seed, found.method.temporal_difference) == ("trained", 4, False)


def test_the_override_of_a_row_comes_after_those_of_the_recipe(tmp_path: Path) -> None:
    compare = {"overrides": {"actor-critic": {"method.gamma_phi": 0.5, "phases.critic.learning_rate": 0.25}}}
    settings = settings_from({"compare": compare})
    runs = plan_runs(settings, ablation_rows(settings, choose_rows(("gamma_phi=1",))), 1, tmp_path)
    found = {run.row.label: run_settings(settings, run) for run in runs if run.row and run.kind == "critic"}
    assert (found[BASELINE].method.gamma_phi, found["gamma_phi=1"].method.gamma_phi) == (0.5, 1.0)
    assert {one.phases.critic.learning_rate for one in found.values()} == {0.25}


@pytest.mark.parametrize(("row", "may_diverge"), [(None, True), ("lambda_c=0", False), ("lambda_c=0", True)])
def test_a_row_that_diverges_is_a_result_and_no_fault(
    row: str | None,
    may_diverge: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def begin(run: PlannedRun, settings: Settings) -> subprocess.Popen[bytes]:
        (tmp_path / f"{run.folder.name}.log").write_text("a value is not finite")
        started.append(run.kind)
        return subprocess.Popen(["sh", "-c", "exit 3"])

    started: list[str] = []
    monkeypatch.setattr(jobs, "_start", begin)
    monkeypatch.setattr(jobs, "POLL_SECONDS", 0.01)
    of_row = Row(row, "actor-critic") if row else None
    critic = PlannedRun("critic", 1, tmp_path / "critic", (), of_row)
    joint = PlannedRun("actor-critic", 1, tmp_path / "joint", (critic.folder,), of_row)
    todo = Jobs([critic, joint], lambda run: Settings(), num_parallel=1, may_diverge=may_diverge)
    if row is None or not may_diverge:
        with pytest.raises(NonFiniteError):
            todo.run()
        return
    todo.run()
    assert started == ["critic"], "what needs a diverged run is left out"
    assert "lambda_c=0, pre-training the critic: diverged" in capsys.readouterr().err


def make_row(name: str, scores: tuple[float, ...], paper: float, diverged: int = 0) -> AblationRow:
    return AblationRow(name, name == BASELINE, scores, scores, 0.5, diverged, 10, paper, "")


def test_changes_are_in_percent_of_the_baseline_and_a_row_without_scores_is_shown() -> None:
    rows = (
        make_row(BASELINE, (20.0, 30.0), 20.0),
        make_row("worse", (30.0, 30.0), 18.0),
        make_row("gone", (math.nan, math.nan), 5.0, 2),
    )
    found = Ablation("t", "CER", True, (40.0, 40.0), rows, "", {}, ())
    assert found.gain(rows[1].score) == pytest.approx(-20.0)
    assert found.paper_gain(rows[1]) == pytest.approx(-10.0)
    columns = {column.name: column.cells for column in list_ablation_columns(found)}
    assert columns["gain"] == ("baseline", "-20.0%", "diverged")
    assert columns["seeds"][0] == "20.00 30.00"
    assert "-20.0%" in markdown_columns(list_ablation_columns(found))
    texts = [node.text for node in ElementTree.fromstring(draw_ablation(found)).iter() if node.text]
    assert "diverged" in texts
    assert found.to_dict()["rows"][2]["seed_scores"] == [None, None]  # type: ignore[index]


def test_a_folder_that_cannot_be_made_is_refused(command: list[str], refusal: Refusal, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "seqcritic: out: cannot" in refusal(*command, "--out", tmp_path / "file" / "below")
