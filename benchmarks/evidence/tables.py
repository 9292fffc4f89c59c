"""The tables of docs/results that stand over several result files, or beside the paper's figures."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from paper import SETTINGS, TABLE_1, bleu_gain
from seqcritic.report.ablation import Ablation
from seqcritic.report.comparison import Comparison, MethodRow
from seqcritic.report.comparison_tables import write_spread, write_valid
from seqcritic.report.diagnosis import Diagnosis
from seqcritic.report.diagnosis_tables import format_bias, format_figure, format_number, list_estimator_columns
from seqcritic.report.formats import ABSENT, format_count, format_p_value, format_percent, format_score
from seqcritic.report.tables import Column, list_cells, markdown_columns

RESULTS = Path(__file__).parents[2] / "docs" / "results"
# The studies, with the encoder of the paper's table that each stands beside.
TRANSLATION = {"tatoeba-de-en": None, "iwslt14-conv": "window", "iwslt14-bigru": "bidirectional"}


def read_comparison(path: Path) -> Comparison:
    """Return a committed comparison."""
    return Comparison.from_dict(json.loads(path.read_text(encoding="utf-8")))


def read_ablation(path: Path) -> Ablation:
    """Return a committed ablation."""
    return Ablation.from_dict(json.loads(path.read_text(encoding="utf-8")))


def read_diagnosis(path: Path) -> Diagnosis:
    """Return a committed diagnosis."""
    return Diagnosis.from_dict(json.loads(path.read_text(encoding="utf-8")))


def headlines() -> str:
    """Return one line for each comparison: the baseline, the method chosen on valid and what lies between them."""
    rows = []
    for path in sorted(RESULTS.glob("*/comparison.json")):
        comparison = read_comparison(path)
        baseline, best = comparison.baseline_row, comparison.chosen_rows[0]
        assert baseline is not None, f"{path}: nothing to compare"
        rows.append(
            (
                path.parent.name,
                comparison.score_name,
                str(comparison.num_seeds),
                format_score(baseline.score),
                best.label,
                format_score(best.score),
                _gain(comparison, best),
                format_p_value(comparison.p_value(best)),
            )
        )
    return _table(("study", "score", "seeds", "likelihood", "best on valid", "on test", "better by", "p (Holm)"), rows)


def spelling() -> str:
    """Return Table 1: every setting and method on both test sets, with the paper's reductions beside ours."""
    rows: list[tuple[str, ...]] = []
    for setting in SETTINGS:
        folder = RESULTS / f"spelling-{setting}"
        if not (folder / "comparison.json").is_file():
            continue
        domain, news = read_comparison(folder / "comparison.json"), read_comparison(folder / "news.json")
        for row in domain.rows:
            other = next(candidate for candidate in news.rows if candidate.label == row.label)
            paper = TABLE_1[setting].get(row.label)
            rows.append(
                (
                    setting,
                    row.label,
                    write_valid(domain, row),
                    _score(row),
                    _gain(domain, row),
                    format_p_value(domain.p_value(row)),
                    _score(other),
                    _gain(news, other),
                    format_p_value(news.p_value(other)),
                    ABSENT if paper is None else f"{paper:.1f} %",
                    _seeds(row),
                    format_count(row.updates),
                )
            )
    p_value = "p (Holm)"
    headings = (
        "setting",
        "method",
        "CER ↓ valid",
        "CER ↓ in domain",
        "better by",
        p_value,
        "CER ↓ news",
        "better by",
        p_value,
    )
    return _table((*headings, "paper better by", "seeds, in domain", "updates"), rows)


def translation() -> str:
    """Return Tables 2 and 3: BLEU of every method in every study, greedy and by beam, with the gains of the paper."""
    rows: list[tuple[str, ...]] = []
    for study, encoder in TRANSLATION.items():
        path = RESULTS / study / "comparison.json"
        if not path.is_file():
            continue
        greedy = read_comparison(path)
        beam = greedy.with_beam
        assert beam is not None, f"{path}: not judged by beam search"
        for row, beam_row in zip(greedy.rows, beam.rows, strict=True):
            paper = None if encoder is None else bleu_gain(encoder, row.label)
            is_baseline = row.label == greedy.baseline
            rows.append(
                (
                    study,
                    row.label,
                    write_valid(greedy, row),
                    _score(row),
                    _difference(greedy, row),
                    format_p_value(greedy.p_value(row)),
                    _score(beam_row),
                    _difference(beam, beam_row),
                    format_p_value(beam.p_value(beam_row)),
                    ABSENT if paper is None or is_baseline else f"{paper[0]:+.1f} / {paper[1]:+.1f}",
                    format_percent(row.critic_explains),
                    format_count(row.updates),
                )
            )
    p_value = "p (Holm)"
    headings = ("study", "method", "BLEU ↑ valid", "BLEU ↑ greedy", "gain", p_value, "BLEU ↑ beam 10", "gain", p_value)
    return _table((*headings, "paper's gains", "critic explains", "updates"), rows)


def gradients(path: Path) -> str:
    """Return one line for each checkpoint of a diagnosis."""
    rows = []
    for checkpoint in read_diagnosis(path).rows:
        linear, with_critic, critic = (
            checkpoint.estimator(name) for name in ("reinforce", "reinforce-critic", "actor-critic")
        )
        rows.append(
            (
                checkpoint.label,
                format_percent(checkpoint.explained_variance),
                *(format_figure(one.variance) for one in (linear, with_critic, critic)),
                format_bias(critic, is_truth=False),
                format_figure(critic.cosine),
                format_number(linear.samples.value),
                format_number(with_critic.samples.value),
                f"{checkpoint.gradient_error:.0%}",
            )
        )
    variances = ("REINFORCE's variance", "with the critic", "actor-critic's")
    worth = ("REINFORCE samples worth one of AC", "with the critic")
    return _table(("at", "critic explains", *variances, "its bias", "its cosine", *worth, "error of the truth"), rows)


def errors(path: Path) -> str:
    """Return one line for each checkpoint of a diagnosis: squared errors with one and with several samples an
    example."""
    rows = [
        (
            checkpoint.label,
            *(
                " / ".join(format_number(error) for error in checkpoint.estimator(name).errors)
                for name in ("reinforce", "reinforce-critic", "actor-critic")
            ),
        )
        for checkpoint in read_diagnosis(path).rows
    ]
    return _table(("at", "REINFORCE", "with the critic", "actor-critic"), rows)


def estimators(path: Path) -> str:
    """Return all figures of the one checkpoint of a diagnosis."""
    (checkpoint,) = read_diagnosis(path).rows
    return markdown_columns(list_estimator_columns(checkpoint))


def trials(path: Path) -> str:
    """Return one line for each run that was tried, by its validation scores."""
    rows = [
        (
            each["title"],
            each["method"],
            format_count(each["critic_updates"]),
            format_percent(each["critic_explains"]),
            format_count(each["updates"]),
            format_score(each["best"]),
            format_score(each["last"]),
        )
        for each in json.loads(path.read_text(encoding="utf-8"))
    ]
    critic = ("updates of the critic before", "it then explains")
    return _table(("tried", "method", *critic, "joint updates", "best on valid", "last on valid"), rows)


def trial_means(path: Path) -> str:
    """Return the means over seeds of runs that were tried, whose titles begin with their seed."""
    seeds: dict[tuple[str, str], list[dict[str, float]]] = {}
    for each in json.loads(path.read_text(encoding="utf-8")):
        seeds.setdefault((each["title"].partition(", ")[2], each["method"]), []).append(each)
    rows = [
        (
            title,
            method,
            str(len(runs)),
            *(format_score(statistics.fmean(run[when] for run in runs)) for when in ("best", "last")),
            " ".join(format_score(run["best"]) for run in runs),
        )
        for (title, method), runs in seeds.items()
    ]
    return _table(("tried", "method", "seeds", "best on valid, mean", "last on valid, mean", "best, by seed"), rows)


def rates(path: Path) -> str:
    """Return one line for each row of a league: what seed 1 reached on validation at each rate."""
    rows = json.loads(path.read_text(encoding="utf-8"))
    columns = list_cells(
        rows,
        ("row", "row", lambda each: each["row"]),
        ("cost", "cost per update", lambda each: f"{each['cost']:.2f}×"),
        ("updates", "updates", lambda each: format_count(each["updates"])),
    )
    for name in rows[0]["valid"]:
        scores = tuple(format_score(each["valid"][name]) for each in rows)
        chosen = frozenset(index for index, each in enumerate(rows) if each["chosen"] == name)
        columns.append(Column(name, f"valid at {name}", scores, chosen))
    return markdown_columns(columns)


def samples(path: Path) -> str:
    """Return one line for each run of a file of trials that learnt from samples: what they returned, and what for."""
    rows = [
        (
            each["title"],
            each["method"],
            *(f"{number:.2f}" for number in each["returns"]),
            " → ".join(f"{number:.1f}" for number in each["entropies"]),
            *(format_score(each[when]) for when in ("first", "last")),
        )
        for each in json.loads(path.read_text(encoding="utf-8"))
        if each["returns"]
    ]
    returned = ("samples return at first", "in the end")
    return _table(("run", "method", *returned, "nats a token", "valid, greedy, at first", "in the end"), rows)


def token_values(path: Path) -> str:
    """Return one line for each critic of a file that token_values.py wrote, the best correlation first."""
    critics = json.loads(path.read_text(encoding="utf-8"))
    rows = [
        (
            each["title"],
            format_percent(each["critic_explains"]),
            f"{each['correlation']:.2f}",
            f"{each['critic_spread']:.2f} / {each['true_spread']:.2f}",
            format_percent(each["unlikely_favourites"]),
            *(_change(each, end) for end in ("best", "last")),
        )
        for each in sorted(critics, key=lambda critic: -critic["correlation"])
    ]
    names = ("critic", "it explains", "correlation", "spread / true", "unlikely favourites")
    return _table((*names, "on valid, best", "at the end"), rows)


def pronunciation(path: Path) -> str:
    """Return one line for each row of a file that g2p.py or g2p_peers.py wrote."""
    rows = [
        (
            each["title"],
            each["search"],
            *(_with_interval(each[rate], each[f"{rate}_interval"]) for rate in ("wer", "per")),
            *(" / ".join(format_score(seed[rate]) for seed in each["seeds"]) for rate in ("wer", "per")),
        )
        for each in json.loads(path.read_text(encoding="utf-8"))["rows"]
    ]
    return _table(("system", "search", "WER ↓", "PER ↓", "WER of the seeds", "PER of the seeds"), rows)


def privilege(path: Path) -> str:
    """Return one line for each arm of a file that privileged.py wrote, means over seeds; a note where there is none.

    Samples and seconds are shares of what the arm with the fewest spent in all, so that every arm has a figure.
    """
    if not path.is_file():
        return "*Not run yet.*"
    found = json.loads(path.read_text(encoding="utf-8"))
    arms: dict[str, list[dict[str, Any]]] = {}
    for each in found["rows"]:
        arms.setdefault(each["arm"], []).append(each)
    fewest = [min(each["valid"][-1][unit] for each in found["rows"]) for unit in (0, 1)]
    marks = [(unit, share * fewest[unit]) for unit in (0, 1) for share in (0.25, 0.5, 1)]
    group = {each["seed"]: _error_of(each) for each in arms.get("RLOO", [])}
    rows = [
        (
            title,
            str(len(runs)),
            _mean_percent([each["explained"][place][2] for each in runs if each["explained"]] for place in (0, -1)),
            _relative({each["seed"]: _error_of(each) for each in runs}, group),
            *(_mean_percent([[_reached(each["valid"], *mark) for each in runs]]) for mark in marks),
            " ".join(f"{100 * each['test']:.1f}" for each in runs),
        )
        for title, runs in arms.items()
    ]
    titles = [f"{mark:,.0f} {('samples', 's')[unit]}" for unit, mark in marks]
    errors = ("explains, first and last", "gradient's error, RLOO = 1")
    table = _table(("arm", "seeds", *errors, *titles, "test, by seed"), rows)
    valid, test = (f"{100 * found['start'][split]:.1f}" for split in ("valid", "test"))
    return f"Right answers in percent; at the start {valid} on valid, {test} on test.\n\n{table}"


def _error_of(run: dict[str, Any]) -> float | None:
    """Return the squared error of a sample's gradient where joint training began, where it was measured."""
    if run["at_start"] is None:
        return None
    found = run["at_start"]["estimators"]
    return float(found.get("actor-critic", found["reinforce-critic"])["error"])


def _relative(errors: Mapping[int, float | None], unit: Mapping[int, float | None]) -> str:
    """Write the mean of the ratios of figures by seed, of the seeds that have both."""
    ratios = [error / own for seed, error in errors.items() if error is not None and (own := unit.get(seed))]
    return f"{statistics.fmean(ratios):.2f}" if ratios else ABSENT


def _reached(curve: Sequence[Sequence[float]], unit: int, mark: float) -> float:
    """Return the figure of a curve's last point that is not beyond a mark on its axis; before its first, that one's."""
    # The first point is of the start, which is where an arm stands while its critic is pre-trained.
    return [curve[0][2], *(point[2] for point in curve if point[unit] <= mark)][-1]


def _mean_percent(groups: Iterable[Sequence[float]]) -> str:
    """Write the mean of each group in percent."""
    means = [f"{100 * statistics.fmean(group):.1f}" for group in groups if group]
    return " → ".join(means) or ABSENT


def _change(critic: dict[str, float], end: str) -> str:
    """Write where joint training began and where it came to, if there was any."""
    return f"{format_score(critic['first'])} → {format_score(critic[end])}" if end in critic else ABSENT


def _score(row: MethodRow) -> str:
    return _with_interval(row.score, (row.low, row.high))


def _with_interval(score: float, ends: Sequence[float]) -> str:
    low, high = ends
    return f"{format_score(score)} [{format_score(low)}, {format_score(high)}]"


def _seeds(row: MethodRow) -> str:
    """Write the number of seeds and, of several, the smallest and the largest score and the standard deviation."""
    scores = row.seed_scores
    span = f": {format_score(min(scores))} to {format_score(max(scores))}" if len(scores) > 1 else ""
    span += f", sd {write_spread(row)}" if len(scores) > 1 else ""
    return f"{len(scores)}{span}"


def _gain(comparison: Comparison, row: MethodRow) -> str:
    """Write by how many percent of the baseline's score a row is better."""
    gain = comparison.gain(row)
    return ABSENT if gain is None else f"{gain:.1f} %"


def _difference(comparison: Comparison, row: MethodRow) -> str:
    """Write the difference to the baseline in the score's own unit."""
    baseline = comparison.baseline_row
    return ABSENT if baseline is None or row is baseline else f"{row.score - baseline.score:+.2f}"


def _table(names: Sequence[str], rows: Sequence[tuple[str, ...]]) -> str:
    columns = zip(names, zip(*rows, strict=True), strict=True)
    return markdown_columns([Column(name, name, cells) for name, cells in columns])
