"""What each command of the command line does, with the Python API."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqcritic.errors import UserError
from seqcritic.files import seal
from seqcritic.progress import Bar, set_up_logging
from seqcritic.settings.bounds import LARGEST, MOST_JOBS
from seqcritic.settings.io import load_recipe, recipe_description, recipe_names, to_yaml, with_method
from seqcritic.training.packaged import packaged_names, summary

if TYPE_CHECKING:
    from seqcritic.decoding.search import AnySearch
    from seqcritic.report.comparison import Comparison

CHUNK_BYTES = 1 << 16


def init(options: argparse.Namespace) -> int:
    """Look at pairs, print what was seen and chosen, and write a recipe for them."""
    from seqcritic.starting.init import init as run

    told, recipe = run(options.pairs, options.out, options.valid, options.test)
    print("\n".join(told))
    print(f"{recipe}; train by: seqcritic train {recipe} --out runs/{recipe.stem}")
    return 0


def train(options: argparse.Namespace) -> int:
    """Train or resume one run."""
    settings = load_recipe(options.recipe, options.overrides)
    from seqcritic.training.train import train as run

    label = settings.method.label
    run(settings, options.out or f"runs/{settings.name}-{label}-seed{settings.seed}")
    return 0


def compare(options: argparse.Namespace) -> int:
    """Train several methods or rows with equal compute, print the table and write the report."""
    settings = load_recipe(options.recipe, options.overrides)
    from seqcritic.comparing.compare import compare as run
    from seqcritic.comparing.compare import print_comparison
    from seqcritic.comparing.rows import parse_rows

    rows = parse_rows(options.row)
    methods = tuple(options.methods.split(",")) if options.methods else () if rows else settings.compare.methods
    comparison, folder = run(
        settings,
        methods,
        num_seeds=options.seeds,
        out=options.out or f"runs/compare-{settings.name}",
        # A cluster places runs by itself; here two unless more are asked for, since each takes memory of its own.
        jobs=options.jobs or (MOST_JOBS if options.on else min(2, os.cpu_count() or 1)),
        on=options.on,
        from_scratch=options.from_scratch,
        rows=rows,
    )
    print_comparison(comparison, folder)
    return 0


def evaluate(options: argparse.Namespace) -> int:
    """Print the score of a model with its interval and signature."""
    from seqcritic.evaluation.run import evaluate as run
    from seqcritic.evaluation.tuning import tune_length_reward

    _check_search(options)
    places = [options.run, *options.others]
    rho = options.rho
    if options.tune_rho:
        rho, scores = tune_length_reward(places, options.beam, options.overrides, options.device, options.refill)
        # With --json, standard output is one JSON object and nothing else.
        if not options.json:
            print("validation: " + "  ".join(f"rho {value:g}: {score:.2f}" for value, score in scores.items()))
    search = _search(options, rho)
    result = run(places, options.split, options.overrides, search, options.device)
    if options.json:
        found_by = {"mbr": options.mbr} if options.mbr else {"beam": options.beam, "rho": rho}
        print(json.dumps(seal(result.to_dict() | found_by)))
        return 0
    score, low, high = (result.write(result.score_name, value) for value in (result.score, *result.interval))
    print(f"{result.score_name} {score}  (95 % interval {low} to {high})")
    print(result.signature)
    for name, (value, signature) in result.further.items():
        print(f"{name} {result.write(name, value)}\n{signature}")
    return 0


def predict(options: argparse.Namespace) -> int:
    """Predict lines as they arrive."""
    from seqcritic.decoding.search import Search
    from seqcritic.training.model import load_model

    _check_search(options)
    if options.margin is not None and not abs(options.margin) <= LARGEST:
        raise UserError(f"--margin: {options.margin} is not a finite number of at most {LARGEST:g}")
    if options.nbest and options.margin is not None:
        raise UserError("--nbest: --margin chooses between the first and the line itself; take one of the two")
    if options.nbest and options.mbr:
        raise UserError("--nbest: --mbr chooses one prediction; take one of the two")
    if options.nbest and options.nbest > options.beam:
        raise UserError(f"--nbest {options.nbest} needs a --beam at least as wide")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # as the lines that come in
    if sys.stdin is None:
        raise UserError("standard input is closed; give the lines by a pipe or as predict RUN < FILE")
    model = load_model([options.run, *options.others], options.device)
    if options.max_length:
        # N whatever the source is; the room that the actor has stays as it is.
        model.actor.limits = replace(model.actor.limits, factor=0.0, extra=options.max_length)
    search = _search(options, options.rho)
    set_up_logging()
    # A person may watch the count where the predictions go elsewhere.
    watched = sys.stderr is not None and sys.stderr.isatty() and not sys.stdout.isatty()
    with Bar("predicting", unit="lines") if watched else nullcontext() as bar:
        for lines in arriving_lines(sys.stdin.fileno()):
            if options.nbest and isinstance(search, Search):
                for found in model.predict_several(lines, search, options.nbest, options.raw):
                    sys.stdout.write("".join(f"{score:.4f}\t{text}\n" for score, text in found) + "\n")
            else:
                sys.stdout.write(
                    "".join(f"{line}\n" for line in model.predict(lines, search, options.raw, options.margin))
                )
            # Into a pipe Python would keep lines back, and who waits for an answer would wait for ever.
            sys.stdout.flush()
            if bar is not None:
                bar.update(bar.done + len(lines))
    return 0


def arriving_lines(descriptor: int) -> Iterator[list[str]]:
    """Yield lines from a pipe as they arrive: all that one read completes, so that a slow writer is answered at once.

    A last line without an end counts too. Lines before one that cannot be read are yielded still.
    """
    pending = b""
    number = 0
    while True:
        # Of the descriptor: sys.stdin's own reading waits for more than what has come.
        chunk = os.read(descriptor, CHUNK_BYTES)
        *complete, pending = (pending + chunk).split(b"\n")
        if not chunk and pending:
            complete, pending = [*complete, pending], b""
        lines: list[str] = []
        fault: UserError | None = None
        for line in complete:
            number += 1
            try:
                lines.append(_decode_line(line, number))
            except UserError as error:
                fault = error
                break
        if lines:
            yield lines
        if fault:  # after what came before it has been answered
            raise fault
        if not chunk:
            return


def _decode_line(line: bytes, number: int) -> str:
    try:
        return line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r")  # a byte order mark may be first
    except UnicodeDecodeError:
        raise UserError(f"standard input:{number}: not valid UTF-8; convert it, for example with iconv") from None


def export(options: argparse.Namespace) -> int:
    """Write a trained actor with its card to a folder of its own."""
    from seqcritic.training.export import export as run

    print(run(options.run, options.out, options.card, options.result, options.half))
    return 0


def report(options: argparse.Namespace) -> int:
    """Write one page about some runs or a comparison, or what is on it for other programs and papers."""
    from seqcritic.comparing.gather import compare_runs
    from seqcritic.report.comparison_tables import markdown_table
    from seqcritic.report.exports import write_csv, write_latex
    from seqcritic.report.pages import render_page

    writers: dict[str, Callable[[Comparison], str]] = {
        ".html": render_page,
        ".json": lambda found: _to_json(found.to_dict()),
        ".md": markdown_table,
        ".csv": write_csv,
        ".tex": write_latex,
    }

    beam = options.beam if options.beam > 1 else None
    # Overrides of where the text is; all else is a path, in any order.
    overrides = [argument for argument in options.runs if argument.startswith("data.") and "=" in argument]
    runs = [Path(argument) for argument in options.runs if argument not in overrides]
    if not runs:
        raise UserError("report: name at least one run, or the folder of a comparison")
    outs = options.out or ["report.html"]
    _check_outs(outs, tuple(writers))
    comparison = compare_runs(runs, beam, overrides)
    for out in outs:
        _write_page(out, writers[Path(out).suffix](comparison))
    return 0


def inspect(options: argparse.Namespace) -> int:
    """Print the critic's values along one prediction, and write them as a page."""
    from seqcritic.analysis.inspect import inspect as run
    from seqcritic.report.pages import render_values
    from seqcritic.report.terminal import print_values

    table = run(options.run, options.source, options.reference, options.prediction, options.top, options.device)
    print_values(table)
    if options.out:
        _write_page(options.out, render_values(table))
    return 0


def playground(options: argparse.Namespace) -> int:
    """Write a page that runs a recurrent run's actor and critic in the browser."""
    from seqcritic.analysis.playground import playground as run

    _check_outs([options.out], (".html",))
    print(run(options.run, options.out, examples=options.example, half=options.half))
    return 0


def diagnose(options: argparse.Namespace) -> int:
    """Print bias and variance of the gradient estimators, and write them as a page or as JSON."""
    _check_outs(options.out)  # before torch is loaded
    from seqcritic.analysis.diagnose import diagnose as run
    from seqcritic.report.pages import render_diagnosis
    from seqcritic.report.terminal import print_diagnosis

    found = run(
        options.runs,
        num_examples=options.examples,
        most_draws=options.draws,
        split=options.split,
        wanted_error=options.precision,
        device=options.device,
    )
    print_diagnosis(found)
    for out in options.out:
        _write_page(out, _to_json(found.to_dict()) if out.endswith(".json") else render_diagnosis(found))
    return 0


def ablate(options: argparse.Namespace) -> int:
    """Train actor-critic with one setting changed at a time and print the table."""
    settings = load_recipe(options.recipe, options.overrides)
    from seqcritic.comparing.ablate import ablate as run
    from seqcritic.comparing.ablate import print_ablation

    ablation, folder = run(
        settings,
        tuple(options.rows.split(",")) if options.rows else (),
        num_seeds=options.seeds,
        out=options.out or f"runs/ablate-{settings.name}",
        jobs=options.jobs or min(2, os.cpu_count() or 1),
    )
    print_ablation(ablation, folder)
    return 0


def prepare(options: argparse.Namespace) -> int:
    """Make the sets of a published corpus and print their sizes beside the published ones."""
    from seqcritic.corpora.prepare import prepare as run
    from seqcritic.corpora.prepare import summary

    prepared = run(options.corpus, options.out, options.source)
    print("\n".join(summary(prepared)))
    return 0


def validate(options: argparse.Namespace) -> int:
    """Print the resolved configuration; with --trial, what a run on its text will meet and take."""
    settings = load_recipe(options.recipe, options.overrides)
    # compare.overrides are of single methods, and only together with the rest can they be told to be wrong.
    for label in settings.compare.methods:
        with_method(settings, label)
    if options.trial:
        from seqcritic.training.preflight import look_ahead

        for line in look_ahead(settings):
            print(line, file=sys.stderr)  # standard output is the configuration, as a recipe
    elif settings.user_scores:  # torch takes seconds to load
        from seqcritic.training.rewards import check_described_score

        check_described_score(settings)
    print(to_yaml(settings), end="")
    return 0


def recipes(options: argparse.Namespace) -> int:
    """List the packaged recipes with what they are."""
    names = recipe_names()
    width = max(map(len, names))
    for name in names:
        print(f"{name:{width}}  {recipe_description(name)}")
    return 0


def models(options: argparse.Namespace) -> int:
    """List the packaged models with the first paragraph of their cards."""
    names = packaged_names()
    width = max(map(len, names), default=0)
    for name in names:
        print(f"{name:{width}}  {summary(name)}")
    return 0


def env(options: argparse.Namespace) -> int:
    """Print what a bug report needs."""
    from seqcritic.training.environment import environment

    for name, value in environment().items():
        print(f"{name}: {value}")
    return 0


def _search(options: argparse.Namespace, rho: float) -> AnySearch:
    from seqcritic.decoding.minimum_bayes_risk import MinimumBayesRisk
    from seqcritic.decoding.search import Search

    if options.mbr:
        return MinimumBayesRisk(options.mbr, options.utility)
    return Search(options.beam, rho, options.refill)


def _check_search(options: argparse.Namespace) -> None:
    if options.mbr:
        # `predict` has no --tune-rho, and getattr's default stands in for it.
        for name, default in {"beam": 1, "rho": 0.0, "refill": False, "tune_rho": False}.items():
            if getattr(options, name, default) != default:
                raise UserError(f"--mbr: samples are drawn, not searched for; leave out --{name.replace('_', '-')}")
    elif options.utility:
        raise UserError("--utility: what samples are compared by; give --mbr with their number")
    if not abs(options.rho) <= LARGEST:  # nor is NaN
        raise UserError(f"--rho: {options.rho} is not a finite number of at most {LARGEST:g}")
    if options.rho and options.beam == 1:
        raise UserError("--rho: greedy search has no length reward; give --beam with a width of at least 2")
    if options.refill and options.beam == 1:
        raise UserError("--refill: greedy search has no beam to fill; give --beam with a width of at least 2")


def _check_outs(outs: list[str], endings: Sequence[str] = (".html", ".json")) -> None:
    """Refuse pages that could not be written, before what they show is worked out for minutes."""
    for out in outs:
        path = Path(out)
        if path.suffix not in endings:
            known = " or ".join(filter(None, (", ".join(endings[:-1]), endings[-1])))
            raise UserError(f"--out: {out}: give a file that ends in {known}")
        try:
            # Made now: that it can be made is what is to be found out.
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"--out: cannot write {path}: {error.strerror or error}") from None
        if path.is_dir() or not os.access(path.parent, os.W_OK):
            raise UserError(f"--out: cannot write {path}: it is a folder, or its folder is read-only")


def _to_json(content: dict[str, Any]) -> str:
    return json.dumps(seal(content), indent=1) + "\n"


def _write_page(out: str, page: str) -> None:
    path = Path(out)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UserError(f"--out: cannot write {path}: {error.strerror or error}") from None
    print(path)
