"""The study of what a value function gains by reading the answer, as a small file.

    python benchmarks/evidence/privileged.py --runs runs/privileged --out docs/results/privileged-critic/privileged.json

Products written out step by step (arithmetic.py), made from a seed. A small Llama learns worked solutions of a few
problems by likelihood; from that one start every arm is trained on other problems, of which the answers alone are
known, by a reward of 1 for the right answer. All arms draw as many samples, those of a critic's pre-training included,
for groups of the same size. They differ in what a sample's return is compared with: its group, a value function of the
prefix, the same that reads the answer too (a recurrent one beside the actor, or a head on a frozen copy of it), or, in
the paper's actor-critic with half a correction, values of tokens.

Where joint training begins, every critic is diagnosed beside the start actor, and the group's mean as if it were one:
explained variance and the gradient's error, from the same draws. There are `--jobs` runs at a time, one thread each;
stopped, the same command goes on. Seconds are by the clock: with other work on the machine they tell nothing.

Further arguments are settings of all runs. The script is tried out by `--start 60 --train 64 --valid 16 --test 16
--seeds 1 --examples 4 --draws 32 phases.actor.updates=4 phases.critic.updates=2 phases.train.updates=4
training.evaluate_every=2 training.batch=4`.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from arithmetic import HINTED, TEMPLATE, write_model, write_problems
from seqcritic import StateValues, diagnose, evaluate, export, load_model, load_recipe
from seqcritic.analysis.diagnose import read_diagnosis
from seqcritic.comparing.jobs import Jobs
from seqcritic.comparing.plan import PlannedRun
from seqcritic.comparing.rows import Row
from seqcritic.contracts.batch import Batch
from seqcritic.contracts.score import Score
from seqcritic.files import seal, write_whole
from seqcritic.methods.rollout import roll_out
from seqcritic.report.diagnosis import Diagnosis, DiagnosisRow
from seqcritic.settings.io import settings_from, with_method
from seqcritic.settings.tree import Settings
from seqcritic.training.environment import environment
from seqcritic.training.run_folder import read_settings
from seqcritic.training.tracking import read_metrics
from seqcritic.training.train import is_finished
from tables import privilege

RECIPE = Path(__file__).with_name("privileged.yaml")
HERE = str(Path(__file__).parent)
DIGITS, HINTED_SHARE, DATA_SEED = 4, 0.25, 20
WIDTH, LAYERS, HEADS = 96, 3, 4


@dataclass(frozen=True)
class Arm:
    """One way to credit samples."""

    title: str
    method: str
    overrides: Mapping[str, Any] = field(default_factory=dict)

    @property
    def folder(self) -> str:
        """What its runs are called."""
        return self.title.replace(", ", "-").replace(" ", "-")


def _states(kind: str, reads_reference: bool) -> dict[str, Any]:
    asked = {"critic.template": HINTED} if kind == "prompted" else {}
    return {"critic.kind": kind, "critic.reads_reference": reads_reference, **asked}


GRPO, RLOO = Arm("GRPO", "grpo"), Arm("RLOO", "reinforce-multisample")
ARMS = (
    GRPO,
    RLOO,
    Arm("value of prefix, recurrent", "reinforce-critic", _states("gru-state", False)),
    Arm("value of prefix and answer, recurrent", "reinforce-critic", _states("gru-state", True)),
    Arm("value of prefix, prompted", "reinforce-critic", _states("prompted", False)),
    Arm("value of prefix and answer, prompted", "reinforce-critic", _states("prompted", True)),
    # Its critic learns as the paper's does, from its own forecasts.
    Arm("actor-critic", "actor-critic", {"method.correction": 0.5, "method.temporal_difference": True}),
)


class Study:
    """The runs, what each waits for, and its settings."""

    def __init__(self, settings: Settings, runs: Path, num_seeds: int) -> None:
        self.settings, self.runs = settings, runs
        self.start, self.model = runs / "start", runs / "model"
        self.arms = {
            runs / f"seed-{seed}" / arm.folder: (seed, arm) for seed in range(1, num_seeds + 1) for arm in ARMS
        }

    def plan_start(self) -> list[PlannedRun]:
        """Return the run of the start actor."""
        return [PlannedRun("actor", self.settings.seed, self.start, ())]

    def plan_arms(self) -> list[PlannedRun]:
        """Return all runs of reward training; one may diverge, which is its result."""
        return [
            PlannedRun(arm.method, seed, folder, (), Row(arm.title, arm.method, arm.overrides))
            for folder, (seed, arm) in self.arms.items()
        ]

    def settings_of(self, run: PlannedRun) -> Settings:
        """Return the settings of a run."""
        problems, own = self.runs / "problems", self.settings
        tree: dict[str, Any] = (
            with_method(own, "likelihood") if run.row is None else run.row.settings(own)
        ).model_dump(mode="json")
        tree["seed"], tree["threads"] = run.seed, 1
        for split in ("train", "valid", "test"):
            name = "start" if run.row is None and split == "train" else split
            tree["data"][split]["pairs"] = [str(problems / f"{name}.tsv")]
        pretrained = self.runs / "init" if run.row is None else self.model
        tree["actor"] = {"kind": "huggingface", "pretrained": str(pretrained), "template": TEMPLATE}
        phases = tree["phases"]
        if run.row is None:
            # As many sequences an update as are drawn for one later.
            tree["training"]["batch"] *= own.method.samples
            phases["train"]["updates"] = 0
            return settings_from(tree)
        phases["actor"]["updates"] = 0
        if not settings_from(tree).method.needs_critic:
            # What others draw for their critic's pre-training is drawn for the actor.
            phases["train"]["updates"] += phases["critic"]["updates"]
        tree["training"]["snapshot_every"] = phases["train"]["updates"]
        return settings_from(tree)

    def rows(self, examples: int, draws: int) -> list[dict[str, object]]:
        """Return what is told of each run of reward training; those that are unfinished are passed over."""
        return [
            self._describe(folder, seed, arm, examples, draws)
            for folder, (seed, arm) in self.arms.items()
            if is_finished(folder)
        ]

    def _describe(self, folder: Path, seed: int, arm: Arm, examples: int, draws: int) -> dict[str, object]:
        settings, records = read_settings(folder), read_metrics(folder)
        group = settings.training.batch * settings.method.samples
        at = [(record["total_updates"] * group, round(record["seconds"], 1), record) for record in records]
        return {
            "arm": arm.title,
            "seed": seed,
            "samples_an_update": group,
            # [samples drawn so far, seconds so far, figure], a critic's pre-training included.
            "valid": [(*when, round(record["valid_score"], 4)) for *when, record in at if "valid_score" in record],
            "returns": [
                (*when, round(record["sampled_return"], 4)) for *when, record in at if "sampled_return" in record
            ],
            "explained": [
                (*when, round(record["held_out_explained_variance"], 4))
                for *when, record in at
                if record["phase"] == "train" and "held_out_explained_variance" in record
            ],
            "test": round(evaluate(folder, split="test").score, 4),
            "at_start": None if arm is GRPO else _summary(self._diagnosis(folder, seed, arm, examples, draws)),
        }

    def _diagnosis(self, folder: Path, seed: int, arm: Arm, examples: int, draws: int) -> DiagnosisRow:
        """Return the diagnosis of a critic beside the start actor, or of the group's mean in its place; made once."""
        path = folder.with_name(f"{folder.name}-{examples}-{draws}.json")
        if not path.is_file():
            place = folder / "snapshots" / "00000000"
            found = self._diagnose_group(place, seed, examples, draws) if arm is RLOO else None
            found = found or diagnose(place, num_examples=examples, most_draws=draws)
            write_whole(path, json.dumps(seal(found.to_dict())))
        (row,) = read_diagnosis(path).rows
        return row

    def _diagnose_group(self, place: Path, seed: int, examples: int, draws: int) -> Diagnosis:
        model = load_model(place)
        others = self.settings.method.samples - 1
        return diagnose(
            model.actor,
            GroupMeans(model.actor, model.score, others, seed),
            model.score,
            model.task.evaluation_set("valid"),
            codec=model.codec,
            shaping=False,
            gae_lambda=1.0,
            label="group",
            seed=seed,
            num_examples=examples,
            most_draws=draws,
        )


class GroupMeans(StateValues):
    """The mean return of a few other samples of each example, drawn once: what RLOO subtracts, as a value function.

    It is the same at every draw, so that it can be asked again; over the examples of a diagnosis its noise is that of
    fresh samples.
    """

    def __init__(self, actor: Any, score: Score, num_others: int, seed: int) -> None:
        self._actor, self._score, self._num_others = actor, score, num_others
        self._generator = torch.Generator().manual_seed(seed)
        self._known: dict[str, float] = {}

    @torch.no_grad()
    def values(self, tokens: Tensor, mask: Tensor, batch: Batch) -> Tensor:
        """The same value [B, T] all along an example's tokens."""
        assert batch.texts is not None, "examples are pairs of texts"
        sources = batch.texts.sources()
        if not all(source in self._known for source in sources):
            many = batch.repeat(self._num_others)
            memory = self._actor.encode(many.sources, many.source_mask)
            drawn = roll_out(self._actor, memory, many, self._score, False, self._generator)
            means = drawn.rewards.sum(dim=1).view(len(batch), -1).mean(dim=1).tolist()
            self._known = dict(zip(sources, means, strict=True)) | self._known
        return torch.tensor([self._known[source] for source in sources])[:, None].expand(tokens.shape)


def _summary(row: DiagnosisRow) -> dict[str, object]:
    """Return the figures of a diagnosis that the table shows, and how well the truth was known.

    `errors`: squared errors of the gradient made of one sample of one example, in units of the true gradient's; `bias`
    is squared too and part of them. Variances are of all examples at once, one sample each.
    """
    estimators = {}
    for each in row.estimators:
        bias = 0.0 if each.unbiased else max(each.bias_square.value, 0.0)
        variance = row.examples * each.variance.value
        estimators[each.name] = {"error": round(bias + variance, 3), "bias": round(bias, 4)}
    return {
        "explains": round(row.explained_variance, 4),
        "explains_error": round(row.explained_variance_error, 4),
        "mean_return": round(row.mean_return, 4),
        "examples": row.examples,
        "draws": row.draws,
        "truth_known_to": round(row.gradient_error, 3),
        "estimators": estimators,
    }


def main() -> None:
    """Run what is left of the study, or of what can be told of it, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("overrides", nargs="*", metavar="section.key=value")
    parser.add_argument("--runs", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1, choices=(1, 2))
    parser.add_argument("--examples", type=int, default=64, help="of a diagnosis")
    parser.add_argument("--draws", type=int, default=96, help="at most, of a diagnosis")
    for split, size in (("start", 1000), ("train", 12_000), ("valid", 300), ("test", 1000)):
        parser.add_argument(f"--{split}", type=int, default=size, help=f"problems of {split}")
    options = parser.parse_args()
    # The trainings are processes of their own, which have to find the checker.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (HERE, os.environ.get("PYTHONPATH"))))
    runs = options.runs.resolve()
    sizes = {split: getattr(options, split) for split in ("start", "train", "valid", "test")}
    study = Study(load_recipe(str(RECIPE), options.overrides), runs, options.seeds)
    if not study.start.exists():
        write_problems(runs / "problems", sizes, DIGITS, HINTED_SHARE, DATA_SEED)
        write_model(runs / "init", WIDTH, LAYERS, HEADS, DATA_SEED)
    Jobs(study.plan_start(), study.settings_of, 1).run()
    if not study.model.is_dir():
        export(study.start, study.model)
    Jobs(study.plan_arms(), study.settings_of, options.jobs, may_diverge=True).run()
    head = {
        "recipe": RECIPE.name,
        "overrides": options.overrides,
        "sizes": sizes,
        "environment": environment(),
        "start": {split: round(evaluate(study.start, split=split).score, 4) for split in ("valid", "test")},
    }
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in study.rows(options.examples, options.draws))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(f'{json.dumps(head)[:-1]}, "rows": [\n{lines}\n]}}\n', encoding="utf-8")
    print(privilege(options.out))


if __name__ == "__main__":
    main()
