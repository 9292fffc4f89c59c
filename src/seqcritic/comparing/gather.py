"""From run folders to the data of a report: test scores, intervals, paired tests, curves, examples."""

from __future__ import annotations

import glob
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from seqcritic.comparing.evaluated_runs import EvaluatedRun, beam_score, evaluate_run, score_on_test, signature_of_tuned
from seqcritic.comparing.rows import CRITICS, Row
from seqcritic.decoding.search import GREEDY, AnySearch
from seqcritic.errors import UserError
from seqcritic.evaluation.evaluate import without_surrogate
from seqcritic.evaluation.run import RunEvaluation
from seqcritic.files import unseal
from seqcritic.progress import set_up_logging
from seqcritic.report.comparison import Comparison, Curve, Example, MethodRow, Point
from seqcritic.settings.io import CONFIG_FILE, WITHOUT_EFFECT_ON_TRAINING, flatten, relative_to_folder, to_yaml
from seqcritic.training.checkpoint import read_description
from seqcritic.training.environment import environment
from seqcritic.training.model import Model, find_weights
from seqcritic.training.run_folder import read_settings
from seqcritic.training.tracking import Record, read_metrics

BASELINE = "likelihood"
NUM_EXAMPLES = 20
EXPLAINED = "held_out_explained_variance"


def compare_runs(
    runs: Sequence[str | Path | Model],
    beam: int | None = None,
    overrides: Sequence[str] = (),
) -> Comparison:
    """Evaluate finished runs on their test set and put them side by side; those of different seeds are one row.

    A run is a folder, or a model loaded from one, as `Trainer.train` and `load_model` return it: with the parts that
    were passed from Python, which its folder may not describe. One folder of a comparison is that comparison.

    With overrides, `data.key=value`, the runs or those of the comparison are evaluated on other text than their own.
    """
    models = {run.place: run for run in runs if isinstance(run, Model)}
    folders = [run.place if isinstance(run, Model) else Path(run) for run in runs]
    if len(folders) != 1 or not (folders[0] / "comparison.json").is_file():
        experiments = {
            label: [models.get(folder, folder) for folder in members]
            for label, members in _experiments(folders).items()
        }
        return compare_experiments(experiments, beam, overrides=overrides)
    stored = _read(folders[0] / "comparison.json")
    if not overrides:
        return stored
    found = {row.label: _runs_of_row(folders[0], row.label) for row in stored.rows}
    if not all(found.values()):
        raise UserError(f"{folders[0]} holds no runs; other text than theirs can only be evaluated where they are")
    return compare_experiments(found, beam, stored.title, stored.configuration, stored.notes, overrides=overrides)


def _runs_of_row(folder: Path, label: str) -> list[Path]:
    """Return the runs of one row of a comparison; a row with its own critic has both in a folder of its own."""
    # A label may have brackets, which would be a pattern.
    above = glob.escape(Row(label, label).folder)
    found = [path.parent for below in ("", "*/") for path in folder.glob(f"seed-*/{above}/{below}{CONFIG_FILE}")]
    return sorted(path for path in found if path.name not in CRITICS)


def compare_experiments(
    experiments: Mapping[str, Sequence[Path | Model]],
    beam: int | None = None,
    title: str = "",
    configuration: str = "",
    notes: tuple[str, ...] = (),
    overrides: Sequence[str] = (),
    search: AnySearch = GREEDY,
) -> Comparison:
    """Evaluate the runs of each experiment, one for each seed, on their test set and put the experiments side by side.

    With `beam`, they are evaluated by beam search of that width too; with overrides, on other text; with `search`, by
    that instead of greedily.
    """
    set_up_logging()
    groups = {
        label: [evaluate_run(run, label, beam, overrides, search) for run in runs]
        for label, runs in experiments.items()
    }
    evaluated = [run for group in groups.values() for run in group]
    signatures = {run.evaluation.signature for run in evaluated}
    # Runs that were trained for different surrogates are compared by the score that is reported.
    if len({without_surrogate(each) for each in signatures}) > 1:
        raise UserError(
            "the runs were not evaluated by the same score on the same text, so they cannot stand in one table; "
            f"name those that were: {' and '.join(sorted(signatures))}"
        )
    # By seed: a paired test takes the runs at the same place for a pair.
    groups = {label: sorted(group, key=lambda run: read_settings(run.folder).seed) for label, group in groups.items()}
    # Without it the first: every table has something to compare with.
    baseline = BASELINE if BASELINE in groups else next(iter(groups))
    first = read_settings(evaluated[0].folder)
    return Comparison(
        title=title or first.name,
        score_name=evaluated[0].evaluation.score_name,
        lower_is_better=not evaluated[0].score.higher_is_better,
        signature=_join_signatures(signatures),
        baseline=baseline,
        rows=tuple(_row(label, group, groups[baseline], label == baseline) for label, group in groups.items()),
        curves=tuple(_curve(label, run.folder, "valid_score") for label, group in groups.items() for run in group),
        examples=_examples({label: group[0].evaluation for label, group in groups.items()}),
        configuration=configuration or to_yaml(relative_to_folder(evaluated[0].folder, first)),
        environment=environment(),
        notes=tuple(dict.fromkeys((*notes, *(note for run in evaluated if (note := _surrogate_note(run)))))),
        beam_signature=signature_of_tuned(evaluated),
        critic_curves=tuple(
            curve for label, group in groups.items() for run in group if (curve := critic_curve(label, run.folder))
        ),
        train_curves=tuple(
            curve
            for label, group in groups.items()
            for run in group
            if (curve := _curve(label, run.folder, "train_score")).points
        ),
        valid_signature=_join_signatures(
            # A run of an earlier version does not say.
            {read_description(find_weights(run.folder)).get("valid_signature", "") for run in evaluated} - {""}
        ),
        resampled="sentences" if max(map(len, groups.values())) == 1 else "seeds and sentences",
    )


def _join_signatures(signatures: set[str]) -> str:
    """Return one signature of runs that may have been trained for different surrogates of one score."""
    return " and ".join(sorted(signatures))


def _surrogate_note(run: EvaluatedRun) -> str:
    """Return a note that names the surrogate a run was rewarded by; empty if it was the score of the table."""
    name, _, unit = run.score.surrogate.partition(":")
    reported = run.evaluation.score_name
    return f"Rewards are paid by a surrogate, {name} in {unit}; what is reported is {reported}." if name else ""


def _experiments(folders: Sequence[Path]) -> dict[str, list[Path]]:
    """Return the runs of each experiment by its label: the method's, and the folder's where two share a method."""
    experiments: dict[tuple[str, str], list[Path]] = {}
    for folder in folders:
        settings = read_settings(folder)
        # Seeds of one experiment begin from actors of their own, so `start` differs as the seed does.
        tree = settings.model_dump(mode="json", exclude={"seed", "start"})
        shared = {key: value for key, value in flatten(tree).items() if key not in WITHOUT_EFFECT_ON_TRAINING}
        # As text: settings hold lists, which are no keys of a dictionary.
        experiments.setdefault((settings.method.label, json.dumps(shared)), []).append(folder)
    methods = [label for label, _ in experiments]
    names = [members[0].name for members in experiments.values()]
    named: dict[str, list[Path]] = {}
    for (label, _), members in experiments.items():
        # Two experiments of one method are told apart by their folders, and these by their paths if need be.
        name = members[0].name if names.count(members[0].name) == 1 else str(members[0])
        named[label if methods.count(label) == 1 else f"{label} ({name})"] = members
    return named


def _row(label: str, group: list[EvaluatedRun], baseline: list[EvaluatedRun], is_baseline: bool) -> MethodRow:
    """Average a method's seeds; the interval is over sentences, the test against the baseline over seeds as well."""
    settings = read_settings(group[0].folder)
    metric = group[0].score
    others = [] if is_baseline else baseline  # no test of the baseline against itself
    progress = [read_description(find_weights(run.folder))["progress"] for run in group]
    return MethodRow(
        label=label,
        **score_on_test(group, others, metric),
        updates=round(float(np.mean([_num_updates(run.folder) for run in group]))),
        cost_per_update=settings.compare.cost(settings.method.label),
        seconds=float(np.mean([entry["seconds"] for entry in progress])),
        beam=beam_score(group, others, metric),
        critic_explains=explained_at_start([run.folder for run in group]),
    )


def _num_updates(folder: Path) -> int:
    """Return the updates of the method itself, without those of the pre-trainings."""
    updates = [record["update"] for record in read_metrics(folder) if record["phase"] == "train"]
    return int(updates[-1]) if updates else 0


def _curve(label: str, folder: Path, field: str) -> Curve:
    """Return the curve of a field of the metrics: of joint training, or of pre-training if there was no other."""
    records = [record for record in read_metrics(folder) if field in record]
    chosen = [record for record in records if record["phase"] == "train"] or records
    points = tuple(Point(record["compute"], record["update"], record[field]) for record in chosen)
    return Curve(label, read_settings(folder).seed, points)


def critic_curve(label: str, folder: Path) -> Curve | None:
    """Return the fraction explained over a run and, where its critic is another run's, over that one's critic phase."""
    settings = read_settings(folder)
    records = _with_critic(folder)
    if not records:
        return None
    if settings.start.critic is not None:
        # A run that starts from a critic counts its compute: the critic's own phase is the left part of one curve.
        records = [
            record for record in _with_critic(Path(settings.start.critic)) if record["phase"] == "critic"
        ] + records
    points = tuple(Point(record["compute"], record["update"], record[EXPLAINED]) for record in records)
    return Curve(label, settings.seed, points)


def explained_at_start(folders: Sequence[Path]) -> float | None:
    """Return the fraction explained when joint training began, the mean over runs, or None where no critic trains."""
    explained = [
        record[EXPLAINED]
        for folder in folders
        for record in _with_critic(folder)
        if record["phase"] == "train"
        if record["update"] == 0
    ]
    return sum(explained) / len(explained) if explained else None


def _with_critic(folder: Path) -> list[Record]:
    return [record for record in read_metrics(folder) if EXPLAINED in record]


def _examples(evaluations: dict[str, RunEvaluation]) -> tuple[Example, ...]:
    """Return sentences spread evenly over the test set, chosen by their position alone."""
    first = next(iter(evaluations.values()))
    # A test set smaller than NUM_EXAMPLES would give some of its sentences twice.
    rows = np.unique(np.linspace(0, len(first.sources) - 1, NUM_EXAMPLES).astype(int))
    return tuple(
        Example(
            first.sources[row],
            first.references[row],
            {label: evaluation.predictions[row] for label, evaluation in evaluations.items()},
            () if first.further_references is None else first.further_references[row],
            {label: evaluation.own_scores[row] for label, evaluation in evaluations.items() if evaluation.own_scores},
        )
        for row in rows
    )


def _read(path: Path) -> Comparison:
    try:
        return Comparison.from_dict(unseal(json.loads(path.read_text(encoding="utf-8"))))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} is damaged ({error}); run compare again to write it anew") from None
