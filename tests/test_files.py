"""What is read back is what was written: flipped bytes change no figure, and end no command in a traceback."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from seqcritic.cli import main
from seqcritic.errors import UserError
from seqcritic.files import seal, seal_text, unseal, unseal_text, write_whole
from seqcritic.training.tracking import METRICS_FILE, read_metrics
from support import Refusal, complaints, method_overrides

NUM_FLIPS = 60
Command = list[str]


def test_a_record_is_known_by_its_values():
    record = {"a": 0.1 + 0.2, "b": [1, (2, None)], "c": {1: "ü\ud800"}}
    read = json.loads(json.dumps(seal(record), indent=3))
    assert unseal(read) == json.loads(json.dumps(record))
    assert seal(read) == read
    for change in ({"a": 0.3}, {"d": 1}, {"digest": "0" * 32}):
        with pytest.raises(ValueError, match="its digest is not the one written with it"):
            unseal(read | change)


def test_what_has_no_digest_is_taken_unless_it_must_have_one():
    assert unseal({"a": 1}) == {"a": 1}
    with pytest.raises(ValueError, match="it has no digest"):
        unseal({"a": 1}, required=True)


@pytest.mark.parametrize("change", [("a: 1", "a: 2"), ("# w", "# v"), ("\na: 1", "#a: 1"), ("digest ", "digest")])
def test_a_text_is_known_by_its_bytes(change: tuple[str, str]):
    sealed = seal_text("a: 1\nb: ü\n")
    assert unseal_text(sealed) == "a: 1\nb: ü\n"
    with pytest.raises(ValueError, match="its digest is not the one written with it"):
        unseal_text(sealed.replace(*change))


def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "file"
    write_whole(path, "old")

    def fail(*rest: object) -> None:
        raise OSError("full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="full"):
        write_whole(path, "new")
    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"file": "old"}


@pytest.fixture(scope="module")
def evaluated_run(finished_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with all that later commands read: evaluations, a comparison, a diagnosis, printed results."""
    folder = tmp_path_factory.mktemp("evaluated") / "run"
    shutil.copytree(finished_run, folder)
    assert main(["report", str(folder), "--out", str(folder / "comparison.json")]) == 0
    size = ["--examples", "2", "--draws", "40", "--precision", "0.9"]
    assert main(["diagnose", str(folder), *size, "--out", str(folder / "diagnosis.json")]) == 0
    (folder / "reported").mkdir()
    shutil.move(folder / "comparison.json", folder / "reported")
    return folder


def report(folder: Path, out: Path) -> Command:
    return ["report", str(folder), "--out", str(out / "page.json")]


def report_comparison(folder: Path, out: Path) -> Command:
    return ["report", str(folder / "reported"), "--out", str(out / "page.json")]


def evaluate(folder: Path, out: Path) -> Command:
    return ["evaluate", str(folder), "--json"]


def export(folder: Path, out: Path) -> Command:
    return ["export", str(folder), "--out", str(out / "exported")]


def export_result(folder: Path, out: Path) -> Command:
    return ["export", str(folder / "model"), "--result", str(folder / "result.json"), "--out", str(out / "exported")]


def diagnose(folder: Path, out: Path) -> Command:
    return ["diagnose", str(folder / "diagnosis.json"), "--out", str(out / "diagnosis.json")]


def outcome_of(command: Command, out: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, object]:
    """Return the exit code, and all that a command has printed and written or, at a fault, its complaints."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    code = main(command)
    printed = capsys.readouterr()
    if code:
        return code, complaints(printed.err)
    return code, (printed.out, {path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()})


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("config.yaml", report),
        ("metrics.jsonl", report),
        ("metrics.jsonl", export),
        ("model/description.json", evaluate),
        ("model/description.json", export),
        ("evaluations/test-greedy.json", report),
        ("reported/comparison.json", report_comparison),
        ("diagnosis.json", diagnose),
        ("result.json", export_result),
    ],
)
def test_flipped_bytes_change_nothing_or_are_refused(
    name: str,
    command: Callable[[Path, Path], Command],
    evaluated_run: Path,
    lively_run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
):
    folder, out = tmp_path / "run", tmp_path / "out"
    shutil.copytree(lively_run if name.startswith("evaluations") else evaluated_run, folder)  # it predicts most
    if name == "result.json":
        assert main(evaluate(folder, out)) == 0
        (folder / name).write_text(capsys.readouterr().out.splitlines()[-1], encoding="utf-8")
    else:
        capsys.readouterr()
    expected = outcome_of(command(folder, out), out, capsys)
    assert expected[0] == 0
    content = (folder / name).read_bytes()
    randomness = random.Random(name)
    for _ in range(NUM_FLIPS):
        place, change = randomness.randrange(len(content)), 1 << randomness.randrange(7)  # mostly it is still text
        flipped = content[:place] + bytes([content[place] ^ change]) + content[place + 1 :]
        (folder / name).write_bytes(flipped)
        code, told = outcome_of(command(folder, out), out, capsys)
        if (code, told) != expected:
            assert code == 2, (place, change)
            assert isinstance(told, list)
            assert len(told) == 1, (place, change, told)


@pytest.mark.parametrize("field", ["best_score", "kind", "update", "compute"])
def test_a_record_without_a_field_is_named_by_its_line(
    field: str, finished_run: Path, tmp_path: Path, refusal: Refusal
):
    """As a run of an earlier version has them, without digests."""
    run = tmp_path / "run"
    shutil.copytree(finished_run, run)
    records = read_metrics(run)
    number = next(place for place, record in enumerate(records) if field in record)
    records[number][f"{field[:-1]}!"] = records[number].pop(field)
    (run / METRICS_FILE).write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    line = refusal("export", run, "--out", tmp_path / "exported")
    assert line.startswith(f"seqcritic: {run / METRICS_FILE}:{number + 1}: the record is damaged (")
    assert field in line.partition("damaged (")[2].partition(")")[0]
    assert not (tmp_path / "exported").exists()


def test_a_last_record_whose_line_end_was_lost_counts(finished_run: Path, tmp_path: Path):
    content = (finished_run / METRICS_FILE).read_bytes()
    whole = read_metrics(finished_run)
    for end, expected in ((b"", whole), (b" ", whole), (b"x", None)):
        (tmp_path / METRICS_FILE).write_bytes(content[:-1] + end)
        if expected is not None:
            assert read_metrics(tmp_path) == expected
            continue
        with pytest.raises(UserError, match=rf"{METRICS_FILE}:{len(whole)}: the record is damaged"):
            read_metrics(tmp_path)
    (tmp_path / METRICS_FILE).write_bytes(content[:-5])
    assert read_metrics(tmp_path) == whole[:-1]


def test_a_changed_configuration_is_refused_and_mended_by_its_command(
    recipe: Path, finished_run: Path, tmp_path: Path, refusal: Refusal
):
    run = tmp_path / "run"
    shutil.copytree(finished_run, run)
    config = run / "config.yaml"
    written = config.read_bytes()
    config.write_bytes(written.replace(b"noise: 0.3", b"noise: 0.2"))
    again = ["train", str(recipe), "--out", str(run), *method_overrides("actor-critic")]
    for command in (again, ["report", str(run), "--out", str(tmp_path / "page.html")]):
        line = refusal(*command)
        assert line.startswith(f"seqcritic: {config} is not as seqcritic wrote it (its digest is not the one")
        assert "remove it and give the run's own command again" in line
    config.unlink()
    assert "holds a run with other settings (seed: 1 -> 2)" in refusal(*again, "seed=2")
    assert not config.exists()
    assert main(again) == 0
    assert config.read_bytes() == written
