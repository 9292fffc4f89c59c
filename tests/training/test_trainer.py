"""The training loop: what it records, how its phases hand over, and when they end early."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from seqcritic.analysis.inspect import load_critic
from seqcritic.cli import main
from seqcritic.data.corruption import derive_seed
from seqcritic.methods.token_values import measure_token_values
from seqcritic.training import phases
from seqcritic.training.checkpoint import read_description
from seqcritic.training.model import load_model
from support import SHORT, method_overrides, records, train_here


def scores(folder: Path, phase: str) -> list[tuple[int, float]]:
    return [
        (record["update"], record["valid_score"])
        for record in records(folder)
        if record["kind"] == "valid" and record["phase"] == phase
    ]


def last_of(folder: Path, phase: str) -> dict[str, Any]:
    return [record for record in records(folder) if record["phase"] == phase][-1]


def test_records_come_when_they_are_due(finished_run: Path):
    trained = [record["update"] for record in records(finished_run) if record["kind"] == "train"]
    assert trained == [*range(2, 21, 2)] * 3
    for phase in ("actor", "train"):
        assert [update for update, _ in scores(finished_run, phase)] == [0, 5, 10, 15, 20]
    assert scores(finished_run, "critic") == []
    seen = [(record["total_updates"], record["examples"]) for record in records(finished_run)]
    assert seen == sorted(seen)
    assert all(examples == 8 * total for total, examples in seen)
    assert seen[-1][0] == 60


def test_compute_is_counted_in_likelihood_updates(finished_run: Path):
    spent = [last_of(finished_run, phase)["compute"] for phase in ("actor", "critic", "train")]
    assert spent == pytest.approx([20, 20 + 20 * 2.1, 20 + 20 * 2.1 + 20 * 3.2])


def test_the_best_score_is_the_lowest_so_far(finished_run: Path):
    for phase in ("actor", "train"):
        valid = [r for r in records(finished_run) if r["kind"] == "valid" and r["phase"] == phase]
        assert all(r["best_score"] == min(q["valid_score"] for q in valid[: i + 1]) for i, r in enumerate(valid))


@pytest.mark.parametrize("keep", ["best", "last"])
def test_the_next_phase_starts_from_the_actor_that_was_kept(keep: str, recipe: Path, tmp_path: Path):
    # Without steps downhill the last actor is not the best one.
    overrides = [*method_overrides("likelihood"), "phases.actor.learning_rate=1", f"phases.actor.keep={keep}"]
    folder = train_here(recipe, tmp_path / keep, *overrides)
    before = [score for _, score in scores(folder, "actor")]
    assert min(before) < before[-1]
    assert scores(folder, "train")[0] == (0, min(before) if keep == "best" else before[-1])


def test_a_phase_without_progress_ends_after_its_patience(
    recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    still = ["phases.actor.learning_rate=1e-12", "phases.actor.patience=2"]
    folder = train_here(recipe, tmp_path / "run", *method_overrides("likelihood"), *still)
    assert [update for update, _ in scores(folder, "actor")] == [0, 5, 10]
    assert last_of(folder, "train")["update"] == 20
    assert "phase actor ends at update 10: no better score in 2 evaluations" in capsys.readouterr().err


def test_the_critic_s_phase_ends_when_its_error_has_stopped_growing(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    seen: list[list[float]] = []

    def after_three(errors: list[float], patience: int) -> bool:
        seen.append(list(errors))
        return len(errors) >= patience

    monkeypatch.setattr(phases, "has_stopped_growing", after_three)
    folder = train_here(recipe, tmp_path / "run", "phases.critic.patience=3", "training.log_every=5")
    logged = [record["td_error"] for record in records(folder) if record["phase"] == "critic" and "td_error" in record]
    assert last_of(folder, "critic")["update"] == 15
    assert [len(errors) for errors in seen] == [0, 1, 2, 3]
    assert seen[-1] == pytest.approx(logged)


def test_a_trained_start_skips_phases_and_goes_on_in_the_text(recipe: Path, finished_run: Path, tmp_path: Path):
    start = [f"start.actor={finished_run}", f"start.critic={finished_run / 'model'}"]
    folder = train_here(recipe, tmp_path / "run", *SHORT, *start)
    assert {record["phase"] for record in records(folder)} == {"train"}
    before = read_description(finished_run / "model")["progress"]
    first, last = records(folder)[0], records(folder)[-1]
    assert first["examples"] == before["examples"] == 8 * 60
    assert last["examples"] == 8 * 64
    assert first["compute"] == before["compute"]
    assert first["valid_score"] == min(score for _, score in scores(finished_run, "train"))


@pytest.mark.parametrize("own_actor", [True, False], ids=["its own actor", "start.actor"])
def test_a_sharpened_actor_predicts_as_before_and_samples_otherwise(own_actor: bool, recipe: Path, tmp_path: Path):
    actor = train_here(recipe, tmp_path / "actor", *method_overrides("likelihood"), "phases.train.updates=0")
    start = [] if own_actor else [f"start.actor={actor}"]
    overrides = [*method_overrides("reinforce"), *start, "phases.train.updates=2", "training.log_every=1"]
    plain, sharp, likelihood = (
        train_here(recipe, tmp_path / name, *overrides, *changes)
        for name, changes in {
            "plain": [],
            "sharp": ["method.sharpening=4"],
            "likelihood": ["method.sharpening=4", "method.name=likelihood"],
        }.items()
    )
    assert scores(sharp, "train")[0] == scores(plain, "train")[0]
    first = [next(r for r in records(folder) if "policy_entropy" in r)["policy_entropy"] for folder in (plain, sharp)]
    assert first[1] < 0.9 * first[0]
    before, after = (
        load_model(folder).actor.decoder.output_layer.weight.detach().abs().max() for folder in (actor, likelihood)
    )
    assert after < 2 * before, "likelihood is not sharpened"


def test_pre_training_alone_is_not_sharpened(recipe: Path, tmp_path: Path):
    """The actor of a comparison is sharpened by the runs that begin with it, not twice."""
    overrides = [*method_overrides("reinforce"), "phases.train.updates=0"]
    plain, sharp = (
        load_model(train_here(recipe, tmp_path / name, *overrides, *changes)).actor
        for name, changes in {"plain": [], "sharp": ["method.sharpening=4"]}.items()
    )
    assert torch.equal(sharp.decoder.output_layer.weight, plain.decoder.output_layer.weight)


def test_an_actor_is_not_sharpened_twice_and_its_critic_must_know_it(
    recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    sharp = ["method.sharpening=4", "phases.critic.updates=2", "phases.train.updates=0"]
    first = train_here(recipe, tmp_path / "first", *method_overrides("actor-critic"), *sharp)
    start = [f"start.actor={first}", f"start.critic={first}", "phases.train.updates=1"]
    again = train_here(recipe, tmp_path / "again", *method_overrides("actor-critic"), *start, "method.sharpening=4")
    before, after = (load_model(folder).actor.decoder.output_layer.weight.detach() for folder in (first, again))
    assert after.abs().max() < 2 * before.abs().max()
    other = [*method_overrides("actor-critic"), *start, "method.sharpening=2"]
    assert main(["train", str(recipe), "--out", str(tmp_path / "other"), *other]) == 2
    assert "has learnt from an actor with method.sharpening=4, this one has 2" in capsys.readouterr().err


@pytest.mark.parametrize("wanted", [0.999, 1e-6])
def test_the_critic_s_knowledge_of_tokens_is_logged_and_ends_its_phase(wanted: float, recipe: Path, tmp_path: Path):
    """What is logged is what `diagnose` measures, on the same examples by the same numbers."""
    overrides = [*method_overrides("actor-critic"), "phases.train.updates=0", "phases.critic.learning_rate=0.03"]
    overrides += [f"phases.critic.token_correlation={wanted}", "phases.critic.updates=40"]
    folder = train_here(recipe, tmp_path / "run", *overrides)
    measured = [record for record in records(folder) if record["kind"] == "critic"]
    reached = [record["token_correlation"] >= wanted for record in measured]
    assert reached == [*[False] * (len(reached) - 1), wanted < 0.5]
    assert (measured[-1]["update"] < 40) == (wanted < 0.5)
    model = load_model(folder)
    valid = model.task.evaluation_set("valid").batches
    generator = torch.Generator().manual_seed(derive_seed(model.settings.seed, "token values"))
    found = measure_token_values(model.actor, load_critic(model), model.score, valid, generator)
    assert measured[-1]["token_correlation"] == pytest.approx(found.correlation, abs=1e-5)
