"""Which phases a run goes through, their learning rates, and when the critic's phase ends."""

from __future__ import annotations

import pytest

from seqcritic.errors import UserError
from seqcritic.settings.io import settings_from
from seqcritic.settings.tree import PhaseSettings, Settings
from seqcritic.training.phases import (
    has_stopped_growing,
    in_updates,
    is_flat,
    learning_rate,
    planned_phases,
    reason_to_end,
)
from seqcritic.training.progress import Progress


def settings(**tree: object) -> Settings:
    return settings_from(tree)


@pytest.mark.parametrize(
    ("tree", "phases"),
    [
        ({"method": {"name": "likelihood"}}, ["actor", "train"]),
        ({"method": {"name": "reinforce"}}, ["actor", "train"]),
        ({"method": {"name": "reinforce-critic"}}, ["actor", "critic", "train"]),
        ({"method": {"name": "actor-critic"}}, ["actor", "critic", "train"]),
        ({"start": {"actor": "a"}}, ["critic", "train"]),
        ({"start": {"actor": "a", "critic": "b"}}, ["train"]),
        ({"start": {"critic": "b"}}, ["actor", "train"]),
        ({"phases": {"actor": {"updates": 0}}}, ["critic", "train"]),
        ({"phases": {"critic": {"updates": 0}, "train": {"updates": 0}}}, ["actor"]),
    ],
)
def test_the_phases_of_a_run(tree: dict[str, object], phases: list[str]):
    assert planned_phases(settings(**tree)) == phases


def test_the_learning_rate_is_constant_unless_a_final_one_is_given():
    constant = PhaseSettings(updates=5, learning_rate=0.5)
    assert [learning_rate(constant, update) for update in range(5)] == [0.5] * 5


def test_the_learning_rate_reaches_its_final_value_at_the_last_update():
    falling = PhaseSettings(updates=5, learning_rate=0.5, final_learning_rate=0.1)
    assert [learning_rate(falling, update) for update in range(5)] == pytest.approx([0.5, 0.4, 0.3, 0.2, 0.1])
    assert learning_rate(PhaseSettings(updates=1, learning_rate=0.5, final_learning_rate=0.1), 0) == 0.5


def test_a_warm_up_rises_to_the_rate_that_there_would_be_without_it():
    plain = PhaseSettings(updates=9, learning_rate=0.8, final_learning_rate=0.4)
    warmed = plain.model_copy(update={"warm_up": 4})
    assert [learning_rate(warmed, update) / learning_rate(plain, update) for update in range(6)] == pytest.approx(
        [0.25, 0.5, 0.75, 1, 1, 1]
    )


@pytest.mark.parametrize(
    ("errors", "patience", "stopped"),
    [
        ([], 1, False),
        ([1.0], 1, False),
        ([1.0, 2.0], 1, False),  # it still grows
        ([1.0, 2.0, 1.5], 1, True),
        ([1.0, 2.0, 1.5], 2, False),
        ([1.0, 2.0, 1.5, 1.9], 2, True),
        ([1.0, 2.0, 1.5, 2.1], 2, False),  # it exceeded its peak again
        ([3.0, 2.0, 1.0, 0.5], 2, False),  # it never grew: still settling
        ([3.0, 1.0, 2.0, 1.5], 1, True),  # a first fall does not hide the peak
        ([3.0, 1.0, 2.0, 2.5], 1, False),
    ],
)
def test_when_an_error_has_stopped_growing(errors: list[float], patience: int, stopped: bool):
    assert has_stopped_growing(errors, patience) is stopped


@pytest.mark.parametrize(
    ("curve", "higher_is_better", "flat"),
    [
        ([(0, 1.0), (10, 2.0), (20, 3.0)], True, False),
        ([(0, 1.0), (10, 3.0), (20, 3.05)], True, True),
        ([(0, 1.0), (10, 3.0), (20, 3.1)], True, False),
        ([(0, 3.0), (10, 1.0), (20, 2.0)], True, True),
        ([(0, 3.0), (10, 2.0), (20, 1.0)], False, False),
        ([(0, 3.0), (10, 1.0), (20, 0.95)], False, True),
        ([(0, 3.0)], False, False),
        ([(15, 3.0), (20, 3.0)], False, False),
        ([], True, False),
    ],
)
def test_a_curve_is_flat_when_its_last_updates_bring_less_than_the_gain(curve, higher_is_better, flat):
    assert is_flat(curve, window=10, gain=0.1, higher_is_better=higher_is_better) == flat


def test_what_is_told_in_epochs_becomes_updates():
    given = settings(
        phases={"actor": {"updates": 7, "epochs": 2.5}, "train": {"updates": 9}},
        training={"batch": 10, "evaluate_epochs": 0.5},
    )
    plan = in_updates(given, epoch_size=100)
    assert (plan.phases.actor.updates, plan.phases.train.updates, plan.training.evaluate_every) == (25, 9, 5)
    assert in_updates(given, epoch_size=100, num_processes=2).phases.actor.updates == 12
    assert in_updates(settings(), None) == settings()
    with pytest.raises(UserError, match=r"phases.actor.epochs: this task does not know"):
        in_updates(given, None)


def test_a_flat_score_ends_a_phase_and_a_correlation_the_critic_s():
    flat = settings(phases={"train": {"updates": 9, "flat": {"epochs": 2, "gain": 0.5}}}).phases.train
    progress = Progress(curve=[[0, 50.0], [10, 40.0], [20, 39.8]])
    assert "less than 0.5" in reason_to_end(flat, progress, higher_is_better=False, epoch_updates=5)
    assert reason_to_end(flat, progress, higher_is_better=False, epoch_updates=10) == ""
    critic = settings(phases={"critic": {"updates": 9, "token_correlation": 0.8}}).phases.critic
    assert "by 0.81" in reason_to_end(critic, Progress(curve=[[10, 0.81]]), False, 5)
    assert reason_to_end(critic, Progress(curve=[[10, 0.79]]), False, 5) == ""
