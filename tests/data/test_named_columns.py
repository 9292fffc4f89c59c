"""Pairs of named columns: csv, jsonl, parquet and Hugging Face datasets, from files, by settings and from Python."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import seqcritic
from seqcritic.data.pairs import PairsFromFiles
from seqcritic.data.parallel import read_pairs
from seqcritic.data.sounds import read_sound, sound_path
from seqcritic.errors import UserError
from seqcritic.settings.data import ColumnSettings, PairFiles, TranslationSettings

ROWS = [{"de": f"eins {number}", "en": f'one, "{number}"\n!'} for number in range(5)]
PAIRS = [(row["de"], row["en"].replace("\n", " ")) for row in ROWS]
COLUMNS = ColumnSettings(source="de", target="en")


def write_csv(path: Path) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["en", "de"])
        writer.writeheader()
        writer.writerows(ROWS)
    return path


def write_jsonl(path: Path) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in ROWS), encoding="utf-8")
    return path


def write_parquet(path: Path) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(pyarrow.Table.from_pylist(ROWS), path)
    return path


def write_dataset(path: Path, nested: bool = False) -> Path:
    datasets = pytest.importorskip("datasets")
    rows = [{"translation": row} for row in ROWS] if nested else ROWS
    made = datasets.Dataset.from_list(rows)
    datasets.DatasetDict({"train": made, "validation": made, "testing": made}).save_to_disk(str(path))
    return path


@pytest.mark.parametrize(
    ("write", "name"), [(write_csv, "a.csv"), (write_jsonl, "a.jsonl"), (write_parquet, "a.parquet")]
)
def test_named_columns_are_pairs(write: Any, name: str, tmp_path: Path):
    path = write(tmp_path / name)
    found = list(read_pairs(PairFiles(pairs=(str(path),)), "data.train", COLUMNS))
    assert [(pair.source, pair.target) for pair in found] == PAIRS
    assert found[0].path == str(path)
    with pytest.raises(UserError, match=rf"data.train.pairs: .*{name}:\d: no field 'source', only (en, de|de, en)"):
        list(read_pairs(PairFiles(pairs=(str(path),)), "data.train"))


def settings(**given: Any) -> TranslationSettings:
    tokens = {"kind": "whitespace"}
    return TranslationSettings.model_validate({"source_tokens": tokens, "target_tokens": tokens} | given)


@pytest.mark.parametrize("nested", [False, True])
def test_a_dataset_of_the_settings_is_read_by_its_splits(nested: bool, tmp_path: Path):
    folder = write_dataset(tmp_path / "dataset", nested)
    columns = {"source": "translation.de", "target": "translation.en"} if nested else COLUMNS.model_dump()
    dataset = {"name": str(folder), "test": "testing"}
    task = PairsFromFiles(settings(dataset=dataset, columns=columns), cache=tmp_path / "cache")
    assert task.epoch_size == len(ROWS)
    assert sorted(task.evaluation_set("test").references) == sorted(target for _, target in PAIRS)
    again = PairsFromFiles(settings(dataset=dataset, columns=columns), cache=tmp_path / "cache")
    assert again.fingerprint() == task.fingerprint()
    assert len(list((tmp_path / "cache").glob("pairs-*"))) == 1, "encoded once"
    turned = PairsFromFiles(
        settings(dataset=dataset, columns={"source": columns["target"], "target": columns["source"]}),
        cache=tmp_path / "cache",
    )
    assert turned.fingerprint() != task.fingerprint()
    with pytest.raises(UserError, match=r"data.test: the dataset .* has no split 'test', only train, validation, test"):
        PairsFromFiles(settings(dataset={"name": str(folder)})).evaluation_set("test")
    with pytest.raises(UserError, match=r"data.train: row:1: no field 'source', only"):
        PairsFromFiles(settings(dataset=dataset)).fingerprint()


def test_a_folder_of_data_files_is_a_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("datasets")
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "datasets")
    folder = tmp_path / "files"
    folder.mkdir()
    for split in ("train", "validation"):
        write_parquet(folder / f"{split}.parquet")
    given = settings(dataset={"name": str(folder)}, columns=COLUMNS.model_dump())
    task = PairsFromFiles(given, cache=tmp_path / "cache")
    assert len(task.evaluation_set("valid")) == task.epoch_size == len(ROWS)
    with pytest.raises(UserError, match=r"data.dataset: cannot load .*nothing"):
        PairsFromFiles(settings(dataset={"name": str(tmp_path / "nothing")})).fingerprint()


def test_a_dataset_object_is_a_task():
    datasets = pytest.importorskip("datasets")
    made = datasets.Dataset.from_list([{"translation": row} for row in ROWS])
    task = seqcritic.pairs(made, made, source="translation.de", target="translation.en")
    assert task.evaluation_set("valid").sources == [source for source, _ in PAIRS]
    with pytest.raises(UserError, match="a mapping where a list of pairs should be"):
        seqcritic.pairs(datasets.DatasetDict({"train": made}))


def test_sounds_of_a_dataset_become_files_of_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    soundfile, datasets = pytest.importorskip("soundfile"), pytest.importorskip("datasets")
    monkeypatch.setenv("SEQCRITIC_CACHE", str(tmp_path / "cache"))
    wave = np.sin(np.arange(800, dtype=np.float32) / 9)
    soundfile.write(tmp_path / "a.flac", wave, 8000)
    made = datasets.Dataset.from_list([{"audio": str(tmp_path / "a.flac"), "text": "hm"}])
    made = made.cast_column("audio", datasets.Audio())
    kept = seqcritic.pairs(made, made, source="audio", target="text").evaluation_set("valid").sources[0]
    assert np.allclose(soundfile.read(kept)[0], wave, atol=1e-4)
    array = sound_path({"array": wave, "sampling_rate": 8000, "path": None}, "row 1")
    assert np.array_equal(soundfile.read(array, dtype="float32")[0], wave)
    assert sound_path({"array": wave, "sampling_rate": 8000}, "row 1") == array
    assert sound_path({"bytes": None, "path": "a.wav"}, "row 1") == "a.wav"
    with pytest.raises(UserError, match="row 1: an empty sound"):
        sound_path({"bytes": None, "path": None}, "row 1")


def test_a_missing_extra_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for hidden in ("datasets", "pyarrow", "soundfile"):
        monkeypatch.setitem(sys.modules, hidden, None)
    path = tmp_path / "a.parquet"
    path.touch()
    with pytest.raises(UserError, match=r"data.train.pairs: parquet files need the extra 'datasets'"):
        list(read_pairs(PairFiles(pairs=(str(path),)), "data.train"))
    with pytest.raises(UserError, match=r"data.dataset needs the extra 'datasets'"):
        PairsFromFiles(settings(dataset={"name": "any"})).fingerprint()
    with pytest.raises(UserError, match=r"sounds need the extra 'audio'"):
        read_sound(b"", 16_000, "a.wav")
