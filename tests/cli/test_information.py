"""The commands that only tell: help, version, recipes, env, validate; and arguments that cannot be parsed."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version

import pytest
import yaml

from seqcritic import cli
from seqcritic.cli import main
from seqcritic.settings.io import load_recipe, recipe_names, settings_from
from support import command_line, quiet_environment, run

COMMANDS = ("train", "compare", "evaluate", "predict", "inspect", "report", "export", "prepare")
COMMANDS += ("validate", "recipes", "models", "env")


def fastest(command: list[str]) -> float:
    """Return the processor seconds of the fastest of three runs: the machine may be busy with other things."""
    times = []
    for _ in range(3):
        began = os.times()
        subprocess.run(command, env=quiet_environment(), stdout=subprocess.DEVNULL, check=True)
        ended = os.times()
        times.append(sum(ended[2:4]) - sum(began[2:4]))  # user and system time of children
    return min(times)


def test_help_comes_at_once_and_imports_come_soon():
    assert fastest(command_line("--help")) < 1
    assert fastest([sys.executable, "-c", "import seqcritic"]) < 3


@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"], ["--version"]])
def test_help_does_not_wait_for_torch(arguments: list[str]):
    code = "import sys; from seqcritic.cli import main\ntry: main(sys.argv[1:])\nfinally: print('torch' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr
    assert told.stdout.splitlines()[-1] == "False"


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as left:
        main(["--help"])
    assert left.value.code == 0
    told = capsys.readouterr().out
    assert all(f"\n    {command} " in told for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_in_any_encoding(command: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as left:
        main([command, "--help"])
    assert left.value.code == 0
    assert capsys.readouterr().out.isascii()


def test_the_version_is_the_package_s(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out == f"seqcritic {version('seqcritic')}\n"


def test_recipes_are_listed_with_what_they_are(capsys: pytest.CaptureFixture[str]):
    assert main(["recipes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == recipe_names()
    assert all(line.endswith(load_recipe(line.split()[0]).description) for line in lines)


def test_env_prints_versions(capsys: pytest.CaptureFixture[str]):
    assert main(["env"]) == 0
    told = dict(line.split(": ") for line in capsys.readouterr().out.splitlines())
    assert told["python"] == sys.version.split()[0]
    assert told["torch"] == version("torch")
    assert told["seqcritic"] == version("seqcritic")
    assert int(told["cores"]) >= 1


def test_validate_prints_what_loads_back(capsys: pytest.CaptureFixture[str]):
    overrides = ["seed=3", "data.length=12", "data.train=a.txt,b.txt", "phases.train.learning_rate=3e-5"]
    assert main(["validate", "demo", *overrides]) == 0
    printed = yaml.safe_load(capsys.readouterr().out)
    assert settings_from(printed) == load_recipe("demo", overrides)
    assert printed["data"]["length"] == 12


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "required: COMMAND"),
        (["train"], "required: RECIPE"),
        (["train", "demo", "--seed", "3"], "unrecognized arguments: --seed"),
        (["train", "demo", "--out"], "expected one argument"),
        (["predict", "run", "more"], "unrecognized arguments: more"),
        (["evaluate", "run", "--split", "dev"], "invalid choice: 'dev'"),
        (["compare", "demo", "--seeds", "0"], "'0' is not a whole number from 1 to 10,000"),
        (["compare", "demo", "--jobs", "two"], "'two' is not a whole number from 1 to 1,024"),
    ],
)
def test_arguments_that_cannot_be_parsed(arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert complaint in capsys.readouterr().err


def test_overrides_may_follow_options(capsys: pytest.CaptureFixture[str]):
    refused = run("train", "demo", "seed=1", "--out", "nowhere", "data.nois=1", "seed=2")
    assert refused.returncode == 2
    assert refused.stderr == "seqcritic: unknown setting 'data.nois' (did you mean 'data.noise'?)\n"


@pytest.mark.parametrize(
    ("given", "listed", "expected"),
    [
        ("report a --out page.md data.test=t", "runs", ["a", "data.test=t"]),
        ("init a.csv --out r.yaml data.columns.source=s", "pairs", ["a.csv", "data.columns.source=s"]),
        ("train demo --out run seed=2", "overrides", ["seed=2"]),
    ],
)
def test_settings_may_follow_an_option(given: str, listed: str, expected: list[str]):
    assert getattr(cli._parse(cli.build_parser(), given.split()), listed) == expected
