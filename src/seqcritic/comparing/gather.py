"""From run folders to the data of a report: test scores, intervals, paired tests, curves, examples."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from seqcritic.errors import UserError
from seqcritic.evaluation import corpus_metric, interval, paired_p_value
from seqcritic.report.comparison import Comparison, Curve, Example, MethodRow, Point
from seqcritic.settings_io import to_yaml
from seqcritic.training.checkpoint import read_description
from seqcritic.training.environment import environment
from seqcritic.training.model import find_weights
from seqcritic.training.run_evaluation import RunEvaluation, evaluate
from seqcritic.training.run_folder import read_settings
from seqcritic.training.tracking import read_metrics

Group = list[tuple[Path, RunEvaluation]]

BASELINE = "likelihood"
NUM_EXAMPLES = 20


def comparison_of_runs(
    folders: Sequence[Path], title: str = "", configuration: str = "", notes: tuple[str, ...] = ()
) -> Comparison:
    """Evaluate runs on their test sets and put them side by side; runs that differ by their seed alone are one row."""
    if len(folders) == 1 and (folders[0] / "comparison.json").is_file():
        return _read(folders[0] / "comparison.json")
    groups: dict[str, Group] = {}
    for label, members in _experiments(folders).items():
        groups[label] = [(folder, evaluate(folder)) for folder in members]
    evaluations = [evaluation for group in groups.values() for _, evaluation in group]
    signatures = {evaluation.signature for evaluation in evaluations}
    if len(signatures) > 1:
        raise UserError(f"the runs were not judged on the same test set: {' and '.join(sorted(signatures))}")
    baseline = BASELINE if BASELINE in groups else next(iter(groups))
    first = read_settings(folders[0])
    return Comparison(
        title=title or first.name,
        score_name=groups[baseline][0][1].score_name,
        lower_is_better=corpus_metric(first).lower_is_better,
        signature=signatures.pop(),
        baseline=baseline,
        rows=tuple(_row(label, group, groups[baseline], label == baseline) for label, group in groups.items()),
        curves=tuple(_curve(label, folder) for label, group in groups.items() for folder, _ in group),
        examples=_examples({label: group[0][1] for label, group in groups.items()}),
        configuration=configuration or to_yaml(first),
        environment=environment(),
        notes=notes,
    )


def _experiments(folders: Sequence[Path]) -> dict[str, list[Path]]:
    """Return the runs of each experiment by its label: the method's, and the folder's where two share a method."""
    experiments: dict[tuple[str, str], list[Path]] = {}
    for folder in folders:
        settings = read_settings(folder)
        shared = settings.model_dump_json(exclude={"seed", "start"})
        experiments.setdefault((settings.method.label, shared), []).append(folder)
    methods = [label for label, _ in experiments]
    return {
        label if methods.count(label) == 1 else f"{label} ({members[0].name})": members
        for (label, _), members in experiments.items()
    }


def _row(label: str, group: Group, baseline: Group, is_baseline: bool) -> MethodRow:
    """Average a method's seeds; one bootstrap over the sentences covers all of them."""
    settings = read_settings(group[0][0])
    metric = corpus_metric(settings)
    runs = [evaluation.statistics for _, evaluation in group]
    low, high = interval(runs, metric)
    progress = [read_description(find_weights(folder))["progress"] for folder, _ in group]
    return MethodRow(
        label=label,
        score=float(np.mean([evaluation.score for _, evaluation in group])),
        low=low,
        high=high,
        p_value=None if is_baseline else paired_p_value(runs, [other.statistics for _, other in baseline], metric),
        seed_scores=tuple(evaluation.score for _, evaluation in group),
        updates=round(float(np.mean([_num_updates(folder) for folder, _ in group]))),
        cost_per_update=settings.compare.cost(settings.method.label),
        seconds=float(np.mean([entry["seconds"] for entry in progress])),
    )


def _num_updates(folder: Path) -> int:
    """Return the updates of the method itself, without those of the pre-trainings."""
    updates = [record["update"] for record in read_metrics(folder) if record["phase"] == "train"]
    return int(updates[-1]) if updates else 0


def _curve(label: str, folder: Path) -> Curve:
    """Return the validation scores of the method itself, or of the pre-training where there is nothing else."""
    records = [record for record in read_metrics(folder) if record["kind"] == "valid"]
    chosen = [record for record in records if record["phase"] == "train"] or records
    points = tuple(Point(record["compute"], record["update"], record["valid_score"]) for record in chosen)
    return Curve(label, read_settings(folder).seed, points)


def _examples(evaluations: dict[str, RunEvaluation]) -> tuple[Example, ...]:
    """Return sentences spread evenly over the test set, chosen by their place alone."""
    first = next(iter(evaluations.values()))
    rows = np.unique(np.linspace(0, len(first.sources) - 1, NUM_EXAMPLES).astype(int))
    return tuple(
        Example(
            first.sources[row],
            first.references[row],
            {label: evaluation.predictions[row] for label, evaluation in evaluations.items()},
        )
        for row in rows
    )


def _read(path: Path) -> Comparison:
    try:
        return Comparison.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged ({error}); run compare again to write it anew") from None
