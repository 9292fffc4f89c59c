"""Archives that are damaged, hostile, or not archives."""

from __future__ import annotations

import gzip
import io
import os
import random
import tarfile
from pathlib import Path

import pytest
from small_archives import iwslt_files, prepare_here, write_folder, write_tar

from seqcritic.errors import UserError


def refused(out: Path, source: Path) -> str:
    with pytest.raises(UserError) as caught:
        prepare_here("iwslt14", out, source)
    return str(caught.value)


def noise(num_bytes: int) -> bytes:
    return random.Random(1).randbytes(num_bytes)


def large_archive(path: Path) -> Path:
    """Write an archive whose wanted files stand first, with much after them that nobody reads."""
    return write_tar(path, iwslt_files() | {"de-en/more.bin": noise(200_000)})


@pytest.mark.parametrize("kept", [0, 10, 1_000, 100_000, -4])
def test_an_archive_that_is_cut_short(kept: int, tmp_path: Path):
    archive = large_archive(tmp_path / "de-en.tgz")
    archive.write_bytes(archive.read_bytes()[:kept])
    assert f"{archive}: damaged, or not a tar archive" in refused(tmp_path / "out", archive)
    assert not (tmp_path / "out").exists()


def test_an_archive_with_a_wrong_byte_behind_all_that_is_wanted(tmp_path: Path):
    archive = large_archive(tmp_path / "de-en.tgz")
    content = bytearray(archive.read_bytes())
    content[-5_000] ^= 0xFF
    archive.write_bytes(content)
    assert "damaged" in refused(tmp_path / "out", archive)


@pytest.mark.parametrize(
    "content", [b"", b"plain text\n" * 100, gzip.compress(b"packed text\n" * 100, mtime=0), noise(3000)]
)
def test_files_that_are_no_archives(content: bytes, tmp_path: Path):
    (tmp_path / "de-en.tgz").write_bytes(content)
    assert "not a tar archive" in refused(tmp_path / "out", tmp_path / "de-en.tgz")


def test_nothing_at_the_path(tmp_path: Path):
    assert refused(tmp_path / "out", tmp_path / "none").startswith("source: no such file or folder: ")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["../train.tags.de-en.de", "/srv/train.tags.de-en.de", "a/../../train.tags.de-en.de"])
def test_members_outside_of_the_archive_are_refused(name: str, tmp_path: Path):
    archive = write_tar(tmp_path / "de-en.tgz", {name: "evil\n"} | iwslt_files())
    assert f"has a member '{name}', outside of its own folder" in refused(tmp_path / "out", archive)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["de-en.tgz"]


def test_links_are_not_followed(tmp_path: Path):
    secret = tmp_path / "secret"
    secret.write_text("secret\n", encoding="utf-8")
    with tarfile.open(tmp_path / "de-en.tgz", "w:gz") as tar:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
            link = tarfile.TarInfo("de-en/train.tags.de-en.de")
            link.type = kind
            link.linkname = str(secret)
            tar.addfile(link, io.BytesIO())
    assert "has no train.tags.de-en.de" in refused(tmp_path / "out", tmp_path / "de-en.tgz")


def test_an_archive_beside_its_own_files(tmp_path: Path):
    folder = write_folder(tmp_path / "both", iwslt_files())
    write_tar(folder / "de-en.tgz", iwslt_files())
    assert "found twice: " in refused(tmp_path / "out", folder)
    assert prepare_here("iwslt14", tmp_path / "out", folder / "de-en").is_new


def test_hidden_files_and_prepared_sets_are_no_source(tmp_path: Path):
    folder = write_folder(tmp_path / "files", iwslt_files())
    first = prepare_here("iwslt14", folder / "sets", folder)
    write_folder(folder, {"sets/train.tags.de-en.de": "x\n", ".trash/train.tags.de-en.de": "x\n"})
    (folder / "de-en/._train.tags.de-en.de").write_bytes(os.urandom(9))
    assert prepare_here("iwslt14", tmp_path / "out", folder).record["files"] == first.record["files"]
