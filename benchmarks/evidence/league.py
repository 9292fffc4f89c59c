"""The league: every method and mixture that is not hopeless, from one flat actor, with equal measured compute.

    python benchmarks/evidence/league.py --text TEXT --actor RUN --runs runs/league --out docs/results/league

TEXT is what spelling_text.py has written, RUN an actor that likelihood has trained until it was flat. A critic is made
for each seed (one more, of soft values, for the entropy-regularised method). Then every row of ROWS is trained with
seed 1 at two rates; that with the better validation score is kept, and the other seeds are trained at that rate alone.
At most two runs at once, one thread each; stopped, the same command goes on.

Beam-search optimisation is judged with its beam: its rate is chosen by the beam's score on validation, its result is
what it ends with, not the best by greedy search, and bso.json has it beside likelihood by the beam it trains for.

Written to OUT: comparison.json (greedily and with a beam of 10), news.json (on news text), mbr.json (some rows by
minimum Bayes risk), bso.json, and rates.json (both rates on validation).

Further arguments are settings of all runs: `phases.critic.updates=9 compare.budget=90
data.valid_size=100 --seeds 2` tries the script out.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from seqcritic.comparing.gather import compare_experiments
from seqcritic.comparing.jobs import Jobs
from seqcritic.comparing.plan import PlannedRun
from seqcritic.comparing.rows import Row
from seqcritic.data.task import build_task
from seqcritic.decoding.minimum_bayes_risk import MinimumBayesRisk
from seqcritic.evaluation.tuning import tune_length_reward
from seqcritic.report.comparison import Comparison
from seqcritic.settings.io import load_recipe, set_leaf, settings_from, with_method
from seqcritic.settings.tree import Settings
from seqcritic.training.calibration import CRITIC, UNIT
from seqcritic.training.tracking import read_metrics
from seqcritic.training.train import is_finished

RECIPE = Path(__file__).with_name("league.yaml")
RATES = {"1e-3": (1e-3, 1e-4), "3e-4": (3e-4, 3e-5)}
NUM_EVALUATIONS = 16
BEAM, OWN_BEAM = 10, 5  # the second is what beam-search optimisation trains for, one less than its last K
BY_BEAM = "beam-search-optimization"
BY_RISK = (UNIT, "scheduled-sampling", "actor-critic+likelihood, η 0.5")
ETA = "method.correction"
MWER = {
    "method.minimum_risk.candidates": "beam",
    "method.minimum_risk.samples": 4,
    "method.minimum_risk.sharpness": 1.0,
}
LAST = {"training.average": 2, "training.average_of": "last"}


class LeagueRow(NamedTuple):
    """A method as the recipe has it, or with settings of its own and then, where they change it, another cost."""

    label: str
    overrides: Mapping[str, Any] = MappingProxyType({})
    cost: float | None = None


PLAIN = (
    "likelihood",
    "reinforce",
    "reinforce+likelihood",
    "reinforce-critic",
    "reinforce-critic+likelihood",
    "actor-critic",
    "actor-critic+likelihood",
    "self-critical",
    "self-critical+likelihood",
    "reinforce-multisample",
    "reinforce-multisample+likelihood",
    "grpo",
    "grpo+likelihood",
    "ppo",
    "ppo+likelihood",
    "mixer",
    "scheduled-sampling",
    "raml",
    "optimal-completion",
    "optimal-completion+likelihood",
    "minimum-risk",
    "entropy-actor-critic+likelihood",
    "direct-loss",
)
ROWS = {label: LeagueRow(label) for label in PLAIN} | {
    "likelihood, smoothed": LeagueRow("likelihood", {"method.label_smoothing": 0.1}),
    "actor-critic, η 0.5": LeagueRow("actor-critic", {ETA: 0.5}, 3.10),
    "actor-critic+likelihood, η 0.5": LeagueRow("actor-critic+likelihood", {ETA: 0.5}, 3.84),
    "actor-critic+likelihood, η auto": LeagueRow("actor-critic+likelihood", {ETA: "auto"}, 4.62),
    "minimum-risk+likelihood, n-best": LeagueRow("minimum-risk+likelihood", MWER, 4.80),
    BY_BEAM: LeagueRow(BY_BEAM, LAST),
}


class Cell(NamedTuple):
    """One run of a method."""

    row: str
    seed: int
    rate: str


class League:
    """The runs of the league, what each waits for, and its settings."""

    def __init__(self, settings: Settings, actor: Path, runs: Path) -> None:
        self.settings = settings
        self.actor = actor
        self.runs = runs
        # Made here once: two runs that start at the same time would both make the text.
        self.task = build_task(settings.data)
        self.task.fingerprint()
        self.task.evaluation_set("valid")
        self.critics_cost = settings.compare.cost(CRITIC)

    def folder(self, cell: Cell) -> Path:
        """Return where a run is kept."""
        return self.runs / f"seed-{cell.seed}" / f"{cell.row.replace(', ', '-').replace(' ', '-')}-{cell.rate}"

    def critic(self, cell: Cell) -> Path | None:
        """Return the critic that a run begins with."""
        method = self.row_settings(cell.row).method
        name = "soft-critic" if method.temperature else "critic"
        return self.runs / f"seed-{cell.seed}" / name if method.needs_critic else None

    def row_settings(self, row: str) -> Settings:
        """Return the recipe with a row's method and what is its own."""
        tree = with_method(self.settings, ROWS[row].label).model_dump(mode="json")
        for key, value in ROWS[row].overrides.items():
            set_leaf(tree, key, value)
        if (cost := ROWS[row].cost) is not None:
            tree["compare"]["costs"][ROWS[row].label] = cost
        return settings_from(tree)

    def cost(self, row: str) -> float:
        """Return what an update of a row costs, in updates of likelihood."""
        return self.row_settings(row).compare.cost(ROWS[row].label)

    def train(self, cells: list[Cell]) -> None:
        """Train so many runs, and what they begin with."""
        planned: list[PlannedRun] = []
        own: dict[Path, Settings] = {}
        for seed in dict.fromkeys(cell.seed for cell in cells):
            for name, label in (("critic", "actor-critic"), ("soft-critic", "entropy-actor-critic")):
                folder = self.runs / f"seed-{seed}" / name
                planned.append(PlannedRun(name, seed, folder, ()))
                own[folder] = self._critic_settings(label, seed)
        for cell in cells:
            critic, folder = self.critic(cell), self.folder(cell)
            title = f"{cell.row}, {cell.rate}"
            needs = (critic,) if critic else ()
            label = ROWS[cell.row].label
            planned.append(PlannedRun(label, cell.seed, folder, needs, Row(title, label)))
            own[folder] = self.cell_settings(cell)
        Jobs(planned, lambda run: own[run.folder], 2, may_diverge=True).run()

    def cell_settings(self, cell: Cell) -> Settings:
        """Return the settings of a run: so many updates as its budget pays for, the critic's pre-training included."""
        tree = self.row_settings(cell.row).model_dump(mode="json")
        start, spent = {"actor": str(self.actor)}, 0.0
        if (critic := self.critic(cell)) is not None:
            start["critic"], spent = str(critic), self.settings.phases.critic.updates * self.critics_cost
        assert self.settings.compare.budget is not None
        updates = max(1, round((self.settings.compare.budget - spent) / self.cost(cell.row)))
        rate, final = RATES[cell.rate]
        tree |= {"seed": cell.seed, "start": start}
        tree["phases"]["train"] |= {"updates": updates, "learning_rate": rate, "final_learning_rate": final}
        tree["training"]["evaluate_every"] = max(1, updates // NUM_EVALUATIONS)
        return settings_from(tree)

    def _critic_settings(self, label: str, seed: int) -> Settings:
        tree = with_method(self.settings, label).model_dump(mode="json")
        tree |= {"seed": seed, "start": {"actor": str(self.actor)}}
        tree["phases"]["train"]["updates"] = 0
        return settings_from(tree)

    def on_valid(self, cell: Cell) -> float:
        """Return the validation score that a rate is chosen by: infinite where the run diverged."""
        folder = self.folder(cell)
        if not is_finished(folder):
            return float("inf")
        if cell.row == BY_BEAM:
            rho, scores = tune_length_reward(folder, OWN_BEAM)
            return scores[rho]
        return min(record["valid_score"] for record in _validations(folder))

    def choose_rates(self) -> list[dict[str, Any]]:
        """Return, for each row, what seed 1 reached on validation at each rate, and the better one."""
        found = []
        for row in ROWS:
            cells = {rate: Cell(row, 1, rate) for rate in RATES}
            scores = {rate: self.on_valid(cell) for rate, cell in cells.items()}
            first = {rate: _validations(self.folder(cell))[0]["valid_score"] for rate, cell in cells.items()}
            found.append(
                {
                    "row": row,
                    "method": ROWS[row].label,
                    "overrides": dict(ROWS[row].overrides),
                    "cost": self.cost(row),
                    "updates": self.cell_settings(cells["1e-3"]).phases.train.updates,
                    "start": round(next(iter(first.values())), 4),
                    "valid": {rate: round(score, 4) for rate, score in scores.items()},
                    "chosen": min(scores, key=lambda rate: scores[rate]),
                }
            )
        return found


def _validations(folder: Path) -> list[dict[str, Any]]:
    records = read_metrics(folder)
    return [dict(record) for record in records if record["phase"] == "train" and "valid_score" in record]


def compared(league: League, rates: dict[str, str], num_seeds: int, news: Path) -> Iterator[tuple[str, Comparison]]:
    """Yield every comparison with the name of its file."""
    runs = {
        row: [league.folder(Cell(row, seed, rate)) for seed in range(1, num_seeds + 1)] for row, rate in rates.items()
    }
    finished = {row: folders for row, folders in runs.items() if all(map(is_finished, folders))}
    budget = league.settings.compare.budget
    costs = ", ".join(f"{row} {league.cost(row):.2f}" for row in finished)
    notes = (
        f"Equal compute: {budget:,.0f} likelihood updates after the shared actor, the critic's pre-training included "
        f"({league.settings.phases.critic.updates} updates of {league.critics_cost:.2f}). Cost of one update in "
        f"likelihood updates: {costs}.",
    )
    yield "comparison.json", compare_experiments(finished, BEAM, "league", notes=notes)
    yield "news.json", compare_experiments(finished, None, "league", notes=notes, overrides=[f"data.test={news}"])
    some = {row: finished[row] for row in BY_RISK if row in finished}
    yield "mbr.json", compare_experiments(some, None, "league", notes=notes, search=MinimumBayesRisk(samples=32))
    some = {row: finished[row] for row in (UNIT, BY_BEAM) if row in finished}
    yield "bso.json", compare_experiments(some, OWN_BEAM, "league", notes=notes)


def main() -> None:
    """Run what is left of the league and write its files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("overrides", nargs="*", metavar="section.key=value")
    parser.add_argument("--text", required=True, type=Path)
    parser.add_argument("--actor", required=True, type=Path, help="a run of league.yaml by likelihood")
    parser.add_argument("--runs", required=True, type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    text = [f"data.{split}={(options.text / split).resolve()}.txt" for split in ("train", "valid", "test")]
    league = League(load_recipe(str(RECIPE), [*text, "threads=1", *options.overrides]), options.actor, options.runs)
    league.train([Cell(row, 1, rate) for row in ROWS for rate in RATES])
    chosen = league.choose_rates()
    rates = {each["row"]: each["chosen"] for each in chosen}
    write(options.out / "rates.json", json.dumps(chosen, indent=1, ensure_ascii=False))
    league.train([Cell(row, seed, rate) for seed in range(2, options.seeds + 1) for row, rate in rates.items()])
    for name, comparison in compared(league, rates, options.seeds, (options.text / "news.txt").resolve()):
        write(options.out / name, json.dumps(comparison.to_dict(), indent=1, ensure_ascii=False))


def write(path: Path, content: str) -> None:
    """Write a result file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content + "\n", encoding="utf-8")
    print(f"written: {path}")


if __name__ == "__main__":
    main()
