"""The README's Python example runs as it stands, and its commands name things that exist."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from seqcritic.cli import build_parser
from seqcritic.settings.io import load_recipe

README = Path(__file__).parents[1] / "README.md"


def code_blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.timeout(240)
def test_the_python_example_runs(tmp_path):
    _, example = code_blocks("python")
    assert len(example.strip().splitlines()) <= 10
    done = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    score, prediction = done.stdout.strip().splitlines()
    assert "score:CER" in score
    assert prediction.startswith("['")


def test_the_lines_with_a_pretrained_model_run(tmp_path, monkeypatch):
    pytest.importorskip("transformers")
    from tiny_texts import PAIRS, make_folder

    example, _ = code_blocks("python")
    first, *rest = [line for line in example.splitlines() if line and not line.startswith("from ")]
    assert len([first, *rest]) == 5
    (folder,) = re.findall(r'"(google-t5/\S+)"', first)
    make_folder("t5", tmp_path / folder)
    short = [f"phases.{phase}.updates=2" for phase in ("actor", "critic", "train")] + ["critic.columns=8"]
    code = example.replace('load_recipe("fine-tune")', f'load_recipe("fine-tune", {short})')
    monkeypatch.chdir(tmp_path)
    exec(code, {"my_pairs": PAIRS, "my_metric": lambda prediction, reference: float(prediction == reference)})
    assert (tmp_path / "runs" / "t5" / "model").is_dir()


def test_the_commands_of_the_readme_parse_and_their_settings_exist():
    text = "\n".join(code_blocks("sh")).replace("\\\n", " ")
    commands = re.findall(
        r"seqcritic ((?:init|train|compare|validate|evaluate|predict|inspect|report|recipes|diagnose|ablate)[^#|\n]*)",
        text,
    )
    assert len(commands) >= 10
    written = set()  # by `init`
    for command in commands:
        options, rest = build_parser().parse_known_args(shlex.split(command))
        if options.command == "init":
            written.add(options.out)
        elif options.command in ("train", "compare", "validate", "ablate") and options.recipe not in written:
            load_recipe(options.recipe, [*options.overrides, *rest])
