"""The pages on bringing one's own run as they stand: files are written, the rest is executed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import outcome, quiet_environment, wait_until

DOCS = Path(__file__).parents[1] / "docs"
PAGES = DOCS / "own"
PRINTED = {
    "score": r"score:my_scores:covered\|.*code:[0-9a-f]+.*",
    "data": r"\['four five six', 'two three two'\]\n"
    r"score:WER\|split:valid\|sentences:11\|text:[0-9a-f]{8}\|\S+\nTrue",
    "method": r"\d+\.\d+",
    "callback": r"",
    "growing-state": r"(\d+) of \1 methods",
    "losses": r"True",
    "huggingface": r"\['one three two', '[\w ]+'\]\nTrue",
    "estimator": r"the estimator is biased: by 0\.5 of the length of the true gradient, cosine 1 .*",
    "../diagnosis": r"explains -?\d+% ± \d+%\ntokens: correlation -?\d\.\d\d ± \d\.\d\d\nGAE: variance \S+, bias \S+",
}
TRAINED = r"(\S+ \d+\.\d+ \['\w+ \w+', '\w+ \w+'\]\n){3}"


def test_every_page_is_run():
    assert {path.stem for path in PAGES.glob("*.md")} == {*PRINTED, "actor", "README"} - {"../diagnosis"}


def write_files(page: str, folder: Path) -> str:
    """Write the files of a page into a folder and return the rest of its code."""
    rest = []
    for block in re.findall(r"```python\n(.*?)```", (PAGES / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL):
        name = re.match(r"# file: (\S+)\n", block)
        if name:
            (folder / name[1]).write_text(block, encoding="utf-8")
        else:
            rest.append(block)
    return "\n".join(rest)


def test_from_pairs_to_a_model_and_back_to_text_takes_fifteen_lines():
    page = (PAGES / "data.md").read_text(encoding="utf-8").partition("## A task by four members")[0]
    lines = [
        line for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) for line in block.splitlines() if line
    ]
    assert "model.predict(" in lines[-2]
    assert len(lines) <= 15


def test_an_actor_takes_forty_lines():
    page = (PAGES / "actor.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n# file: my_actor.py\n(.*?)```", page, re.DOTALL)
    assert len([line for line in block.splitlines() if line]) <= 40


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a user whose caches are in a folder."""
    return quiet_environment() | {"SEQCRITIC_CACHE": str(folder / "cache")}


@pytest.mark.parametrize("page", PRINTED)
def test_the_page_runs_as_it_stands(page: str, tmp_path: Path):
    if page == "huggingface":
        pytest.importorskip("transformers")
    command = [sys.executable, "-c", write_files(page, tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment(tmp_path))
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(PRINTED[page], done.stdout.strip()), done.stdout
    if page == "callback":
        assert "validation is level" in done.stderr


def test_the_actor_of_the_page_is_killed_and_resumed_to_the_bit(tmp_path: Path):
    assert write_files("actor", tmp_path) == ""
    options = {"cwd": tmp_path, "text": True, "env": environment(tmp_path)}
    whole = subprocess.run([sys.executable, "train_lstm.py", "whole"], capture_output=True, check=False, **options)
    assert whole.returncode == 0, whole.stderr
    assert re.fullmatch(TRAINED, whole.stdout), whole.stdout
    command = [sys.executable, "train_lstm.py", "killed"]
    for method in ("actor-critic", "mixer", "minimum-risk"):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
        wait_until(lambda method=method: any((tmp_path / "killed" / method / "checkpoints").glob("0*")), process)
        process.kill()
        process.wait()
    resumed = subprocess.run(command, capture_output=True, check=False, **options)
    assert resumed.stdout == whole.stdout
    assert "resuming from" in resumed.stderr
    for method in ("actor-critic", "mixer", "minimum-risk"):
        assert outcome(tmp_path / "killed" / method) == outcome(tmp_path / "whole" / method)
    loaded = subprocess.run(
        [sys.executable, "-m", "seqcritic", "predict", "whole/mixer"],
        input="three two\none four\n",
        capture_output=True,
        check=False,
        **options,
    )
    assert loaded.stdout.splitlines() == re.findall(r"'(.*?)'", whole.stdout.splitlines()[1])
