"""`predict` answers every line with one line, in order, as soon as it can."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from seqcritic.data.vocabulary import SPELLING_ALPHABET
from seqcritic.decoding.search import Search
from seqcritic.training.model import load_model
from support import complaints, run, start


@pytest.fixture(scope="module")
def lines() -> list[str]:
    """Lines of every kind: empty, blank, long, foreign, and more than fit in one batch."""
    some = [
        "the cat sat",
        "",
        "on a mat",
        "   ",
        "x" * 200,
        "word " * 40,
        "Ünïcödé — ½ 猫 \x85\x00",
        "#?!",
        "1234567890",
    ]
    return [f"{line}{index}" if line.strip() else line for index, line in enumerate(some * 8)]


@pytest.mark.parametrize(("line_end", "last"), [("\n", "\n"), ("\r\n", "\r\n"), ("\n", "")])
def test_one_line_in_one_line_out(line_end: str, last: str, lines: list[str], lively_run: Path):
    expected = load_model(lively_run).predict(lines)
    answered = run("predict", lively_run, input=line_end.join(lines) + last)
    assert answered.returncode == 0, answered.stderr
    assert answered.stderr == ""
    assert answered.stdout.split("\n") == [*expected, ""]


def test_answers_keep_their_order(lines: list[str], lively_run: Path):
    model = load_model(lively_run)
    together = model.predict(lines, raw=True)
    assert len(together) == len(lines)
    assert len(set(together)) > len(lines) // 4, "the model answers all lines alike, so their order cannot be told"
    assert together == [model.predict([line], raw=True)[0] for line in lines]
    assert all(answer == "" for answer, line in zip(together, lines, strict=True) if not line.strip())
    assert set("".join(together)) <= set(SPELLING_ALPHABET)


def test_what_the_alphabet_lacks_and_case_stay_unless_the_raw_text_is_asked_for(lines: list[str], lively_run: Path):
    line = "Ünïcödé — ½ 猫 THE cat"
    restored, raw = (run("predict", lively_run, *options, input=f"{line}\n").stdout for options in ((), ("--raw",)))
    foreign = [(place, character) for place, character in enumerate(line) if not character.isascii()]
    assert len(restored) == len(line) + 1
    assert [(place, restored[place]) for place, _ in foreign] == foreign
    assert all(restored[place].isupper() for place in (14, 15, 16) if restored[place].isalpha())
    assert restored != f"{line}\n"
    assert set(raw) <= set(SPELLING_ALPHABET) | {"\n"}
    model = load_model(lively_run)
    assert [text.strip() for text in model.predict([" ", ""])] == ["", ""]
    assert model.predict([" "]) == [" "]


def test_a_line_is_answered_before_the_next_is_written(lively_run: Path):
    process = start("predict", lively_run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=1)
    assert process.stdin is not None
    assert process.stdout is not None
    model = load_model(lively_run)
    for line in ("the cat", "", "sat on a mat"):
        process.stdin.write(f"{line}\n")
        assert process.stdout.readline() == f"{model.predict([line])[0]}\n"
    process.stdin.write("no end of line")
    process.stdin.close()
    assert process.stdout.read() == f"{model.predict(['no end of line'])[0]}\n"
    assert process.wait() == 0


def test_input_that_is_not_utf8_is_named_by_its_line(lively_run: Path, tmp_path: Path):
    (tmp_path / "latin.txt").write_bytes(b"one\nM\xfcll\n")
    with (tmp_path / "latin.txt").open() as stream:
        refused = run("predict", lively_run, stdin=stream)
    assert refused.returncode == 2
    assert complaints(refused.stderr) == [
        "seqcritic: standard input:2: not valid UTF-8; convert it, for example with iconv"
    ]


def test_several_predictions_of_a_short_line_are_as_short_and_begin_with_the_best(lively_run: Path):
    model = load_model(lively_run)
    (found,) = model.predict_several(["cat"], Search(width=4), num_best=3)
    assert len(found) == 3
    assert [score for score, _ in found] == sorted((score for score, _ in found), reverse=True)
    assert all(len(text) == 3 for _, text in found)
    assert model.predict_several(["  "], Search(width=4), num_best=1)[0][0][1] == "  "
    assert found[0][1] == model.predict(["cat"], Search(width=4))[0]


def test_a_margin_leaves_the_line_alone_where_its_correction_is_not_much_likelier(lively_run: Path):
    model = load_model(lively_run)
    lines = ["The cat sat on a mat", "é — Dogs", ""]
    assert model.predict(lines, margin=1e6) == lines
    assert model.predict(lines, margin=-1e6) == model.predict(lines) != lines
    # A window's correction has a margin of its own: just below it is made, just above it is not.
    line = "the cat sat on a mat"[: model.codec.length].strip().ljust(model.codec.length, "x")
    sources, mask = model.codec.encode_sources([line])
    made, left = (model._log_probabilities(sources, mask, text) for text in (model.predict([line], raw=True), [line]))
    gain = float(made - left)
    assert model.predict([line], margin=gain - 1e-3) == model.predict([line]) != [line]
    assert run("predict", lively_run, "--margin", str(gain + 1e-3), input=f"{line}\n").stdout == f"{line}\n"
    for options in (("1", "--beam", "2", "--nbest", "2"), ("nan",)):
        assert run("predict", lively_run, "--margin", *options, input="").returncode == 2
