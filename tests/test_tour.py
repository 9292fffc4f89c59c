"""The README's tour is found whole, its short form is accepted, and what a command takes is measured."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import tour
from seqcritic.cli import build_parser
from seqcritic.settings.io import load_recipe

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_all_commands_of_the_tour_are_found_and_their_short_forms_are_accepted():
    commands = tour.tour_commands(tour.tour_block(README))
    names = []
    for command in commands:
        _, _, given = tour.shortened(command).rpartition("seqcritic ")
        options, rest = build_parser().parse_known_args(shlex.split(given))
        names.append(options.command)
        if options.command in ("train", "compare", "ablate"):
            settings = load_recipe(options.recipe, [*options.overrides, *rest])
            assert settings.phases.train.updates == tour.PHASES["train"]
    expected = [
        "recipes",
        "validate",
        "train",
        "evaluate",
        "predict",
        "compare",
        "report",
        "inspect",
        "diagnose",
        "ablate",
    ]
    assert names == expected


MEASURING = """
import shlex, sys
from pathlib import Path
import tour
python = f"{shlex.quote(sys.executable)} -c"
small = tour.measure(f"{python} 'pass'", Path())
large = tour.measure(f"true | {python} 'import time; held = bytearray(300 * 2**20); time.sleep(0.2)'", Path())
again = tour.measure(f"{python} 'pass'", Path())
assert large.seconds > 0.2
assert 280 < large.megabytes - small.megabytes < 400, (small, large)
assert again.megabytes < 100 + small.megabytes, "not the most of all commands so far"
assert "| `true \\\\| " in tour.table([large])
"""


def test_what_a_command_takes(tmp_path: Path):
    # In a process of its own: a child begins with the memory of its parent, which here is that of all tests.
    path = os.pathsep.join(sys.path)
    command = [sys.executable, "-c", MEASURING]
    done = subprocess.run(command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_figures_stand_in_the_comments_and_take_the_place_of_older_ones():
    block = "# first\nseqcritic recipes\nseqcritic models   # 3 min, 1,002 MB; what there is\nother  # thing\n"
    costs = [tour.Cost("seqcritic recipes", 2.04, 36), tour.Cost("seqcritic models", 11.6, 1024)]
    once = tour.with_figures(block, costs)
    assert once.splitlines() == [
        "# first",
        "seqcritic recipes  # 2.0 s, 36 MB",
        "seqcritic models  # 12 s, 1,024 MB; what there is",
        "other  # thing",
    ]
    assert tour.with_figures(once, costs) == once
    assert tour.tour_commands(once) == [cost.command for cost in costs]


def test_a_command_that_fails_ends_the_tour_with_what_it_said(tmp_path: Path):
    with pytest.raises(SystemExit, match=r"ended with 3:\nwrong"):
        tour.measure("echo wrong >&2; exit 3", tmp_path)
