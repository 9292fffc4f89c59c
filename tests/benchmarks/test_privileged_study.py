"""The study of what a value function gains by the answer: problems and checker, the runs, and the table."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

pytest.importorskip("transformers")

import arithmetic
import tables
from privileged import ARMS, RECIPE, Study
from seqcritic import load_recipe

RUNS = Path("runs")
SIZES = {"start": 8, "train": 30, "valid": 5, "test": 7}


def read(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_worked_solution_is_the_product_by_its_own_steps():
    assert arithmetic.worked_solution((8347, 6)) == "42,28,20,50:50082"
    assert arithmetic.worked_solution((1203, 2)) == "06,00,04,02:2406"
    for digits, factor in product((1000, 1999, 3050, 9999), range(2, 10)):
        steps, _, result = arithmetic.worked_solution((digits, factor)).partition(":")
        columns = [int(step) for step in steps.split(",")]
        # The units of all columns but the last, and the whole of the last, are the answer.
        figures = [str(columns[-1]), *(str(column % 10) for column in columns[-2::-1])]
        assert int("".join(figures)) == int(result) == digits * factor


def test_the_answer_alone_is_checked():
    right, wrong, nothing, unfinished = "42,28,20,50:50082", "42,28,20,50:50081", "", "42,28"
    assert arithmetic.answers([right, wrong, nothing, unfinished], ["50082"] * 4) == [1, 0, 0, 0]
    assert arithmetic.answers(["11,11,11,11:50082", "50082", "50082:"], ["50082"] * 3) == [1, 1, 0]


def test_no_problem_is_in_two_splits_and_the_same_seed_writes_the_same(tmp_path: Path):
    for folder in ("one", "two"):
        arithmetic.write_problems(tmp_path / folder, SIZES, 4, 0.25, seed=3)
    found = {split: read(tmp_path / "one" / f"{split}.tsv") for split in SIZES}
    assert found == {split: read(tmp_path / "two" / f"{split}.tsv") for split in SIZES}
    plain, hinted = found["start"][:8], found["start"][8:]
    assert len(hinted) == 2
    assert [question.split("|")[1] for question, _ in hinted] == [question for question, _ in plain[:2]]
    questions = [question for split in SIZES for question, _ in found[split] if "|" not in question]
    assert len(set(questions)) == len(questions) == sum(SIZES.values())
    for question, target in [*plain, *found["train"]]:
        number, factor = question.split("*")
        assert target.rpartition(":")[2] == str(int(number) * int(factor))
    assert all(":" not in target for target in [one for _, one in found["train"]])


def test_the_tokenizer_is_of_characters_and_gives_them_back():
    tokenizer = arithmetic.make_tokenizer()
    text = arithmetic.hinted_question((8347, 6)) + "=" + arithmetic.worked_solution((8347, 6))
    ids = tokenizer(text)["input_ids"]
    assert len(ids) == len(text)
    assert tokenizer.unk_token_id not in ids
    assert tokenizer.decode(ids) == text
    assert tokenizer("4 2")["input_ids"] == tokenizer("42")["input_ids"]
    assert 0 < len(text) <= arithmetic.POSITIONS - 20


def test_the_arms_draw_as_many_samples_from_one_start():
    study = Study(load_recipe(str(RECIPE)), RUNS, 3)
    (start,) = study.plan_start()
    first = study.settings_of(start)
    assert first.data.train.pairs == ("runs/problems/start.tsv",)
    assert (first.method.name, first.training.batch, first.phases.train.updates) == ("likelihood", 64, 0)
    plan = study.plan_arms()
    assert len(plan) == 3 * len(ARMS) == len({run.folder for run in plan})
    drawn = set()
    for run in plan:
        own = study.settings_of(run)
        assert own.actor.pretrained == "runs/model"
        assert (own.seed, own.data.train.pairs) == (run.seed, ("runs/problems/train.tsv",))
        assert own.method.likelihood_weight == own.phases.actor.updates == 0
        assert not own.score.shaping
        group = getattr(own.method.own, "samples", own.method.samples)
        updates = own.phases.train.updates + (own.phases.critic.updates if own.method.needs_critic else 0)
        drawn.add(group * own.training.batch * updates)
        assert own.training.snapshot_every == own.phases.train.updates
    assert len(drawn) == 1
    critics = [study.settings_of(run).critic for run in plan[:7]]
    assert [critic.kind for critic in critics[2:]] == ["gru-state"] * 2 + ["prompted"] * 2 + ["gru"]
    assert [critic.reads_reference for critic in critics[2:6]] == [False, True, False, True]
    assert critics[4].template == "{reference}|{source}"
    assert study.settings_of(plan[6]).method.correction == 0.5


def run_of(arm: str, seed: int, valid: list[tuple[int, float, float]], error: float | None, explained: list) -> dict:
    errors = {"reinforce": {"error": 90.0}, "reinforce-critic": {"error": error}}
    at_start = None if error is None else {"estimators": errors}
    return {"arm": arm, "seed": seed, "valid": valid, "explained": explained, "at_start": at_start, "test": 0.5}


def test_the_table_compares_at_equal_samples_and_at_equal_seconds(tmp_path: Path):
    path = tmp_path / "privileged.json"
    assert tables.privilege(path) == "*Not run yet.*"
    rows = [
        run_of("GRPO", 1, [(0, 1.0, 0.4), (400, 8.0, 0.5)], None, []),
        run_of("RLOO", 1, [(0, 1.0, 0.4), (100, 3.0, 0.5), (200, 5.0, 0.6), (400, 10.0, 0.7)], 8.0, []),
        run_of("RLOO", 2, [(0, 1.0, 0.4), (400, 10.0, 0.9)], 10.0, []),
        run_of("value", 2, [(200, 4.0, 0.4), (400, 20.0, 0.8)], 5.0, [(200, 4.0, 0.25), (400, 20.0, 0.75)]),
    ]
    path.write_text(json.dumps({"start": {"valid": 0.4, "test": 0.45}, "rows": rows}), encoding="utf-8")
    lead, _, heading, _, *lines = tables.privilege(path).splitlines()
    assert lead == "Right answers in percent; at the start 40.0 on valid, 45.0 on test."
    assert "400 samples" in heading
    assert "8 s" in heading
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells == [
        ["GRPO", "1", "–", "–", "40.0", "40.0", "50.0", "40.0", "40.0", "50.0", "50.0"],
        ["RLOO", "2", "–", "1.00", "45.0", "50.0", "80.0", "40.0", "45.0", "50.0", "50.0 50.0"],
        ["value", "1", "25.0 → 75.0", "0.50", "40.0", "40.0", "80.0", "40.0", "40.0", "40.0", "50.0"],
    ]
