"""Every bad input about a pretrained model gets one line that says what to do."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tiny_texts import make_byte_tokenizer, make_folder, recipe_of


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["actor.pretrained=/no/such/folder"], "actor.pretrained: no folder /no/such/folder"),
        (["actor.pretrained={folder}", "actor.lora.targets=nothing"], "actor.lora.targets: no layer of the model"),
        (["actor.pretrained={folder}", "actor.lora.rang=3"], "unknown setting 'actor.lora.rang'"),
        (["actor.pretrained={folder}", "actor.freeze=decoder"], "actor.freeze"),
        (["actor.pretrained={pickled}"], "has its weights only as a pickle .pytorch_model.bin."),
        (["actor.pretrained={cut}"], "actor.pretrained: cannot load .*cut: .*header"),
        (["actor.pretrained={wordless}"], "actor.pretrained: .*wordless has no tokenizer; give actor.tokenizer="),
        (["actor.pretrained={folder}", "data.task=spelling"], "actor.pretrained: a pretrained model reads pairs"),
        (["actor.pretrained={prompted}"], "actor.template: a decoder-only model reads a prompt"),
        (["actor.pretrained={folder}", "actor.tokenizer={bytes}"], "the tokenizer does not belong to the model"),
        (["actor.pretrained={folder}", "actor.encoder_cache=float16"], "actor.encoder_cache: .* is trained"),
    ],
)
def test_bad_input_is_told_in_one_line(overrides: list[str], message: str, tmp_path: Path, refusal: Any):
    folder = make_folder("t5", tmp_path / "pretrained")
    pickled = make_folder("t5", tmp_path / "pickled")
    (pickled / "model.safetensors").rename(pickled / "pytorch_model.bin")
    cut, wordless = (make_folder("t5", tmp_path / name) for name in ("cut", "wordless"))
    (cut / "model.safetensors").write_bytes((cut / "model.safetensors").read_bytes()[:500])
    for path in wordless.glob("tokenizer*"):
        path.unlink()
    prompted = make_folder("gpt2", tmp_path / "prompted")
    make_byte_tokenizer().save_pretrained(tmp_path / "bytes")
    places = {"folder": folder, "pickled": pickled, "prompted": prompted, "bytes": tmp_path / "bytes"}
    places |= {"cut": cut, "wordless": wordless}
    given = [each.format(**places) for each in overrides]
    recipe = recipe_of("t5", tmp_path)
    if "data.task=spelling" in given:
        recipe = ["demo"]
    assert re.search(message, refusal("train", recipe[0], "--out", str(tmp_path / "run"), *recipe[1:], *given))


def test_what_is_longer_than_the_positions_is_told_in_one_line(tmp_path: Path, refusal: Any):
    recipe = recipe_of("bart", tmp_path, "data.maximum_length=200", f"data.train.pairs={tmp_path / 'long.tsv'}")
    (tmp_path / "long.tsv").write_text(f"{'one ' * 90}\ttwos\none two\ttwos\n", encoding="utf-8")
    told = refusal("train", recipe[0], "--out", str(tmp_path / "run"), *recipe[1:])
    assert re.search(r"a source of \d+ tokens.*longer than the 64 positions of the model; shorten it", told)


def test_a_missing_extra_is_told_in_one_line(tmp_path: Path):
    code = (
        "import sys; sys.modules['transformers'] = None; from seqcritic.cli import main\n"
        "sys.exit(main(['train', 'tatoeba-de-en', '--out', 'run', 'actor.pretrained=any']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Hugging Face models need the extra 'hf': pip install 'seqcritic[hf]'" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
