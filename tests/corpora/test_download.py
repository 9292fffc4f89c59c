"""Fetching from a server on this machine: resumed, checked, and refused with the address."""

from __future__ import annotations

import hashlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from small_archives import iwslt_files, prepare_here, write_tar

from seqcritic.corpora import download as download_module
from seqcritic.corpora.download import Download, fetch
from seqcritic.corpora.table import CORPORA
from seqcritic.errors import UserError


class Server(ThreadingHTTPServer):
    """Serves `content` at /de-en.tgz, and breaks off after `breaks_after` bytes of an answer."""

    daemon_threads = True
    content = b""
    can_resume = True
    breaks_after: int | None = None

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked_for: list[str | None] = []

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/de-en.tgz"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server = self.server
        asked = self.headers["Range"]
        server.asked_for.append(asked)
        if self.path != "/de-en.tgz":
            self.send_error(404)
            return
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and server.can_resume else 0
        if start and start >= len(server.content):
            self.send_response(416)
            self.send_header("Content-Range", f"bytes */{len(server.content)}")
            self.end_headers()
            return
        body = server.content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: server.breaks_after])

    def log_message(self, *ignored: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(download_module, "TIMEOUT_SECONDS", 10.0)
    with Server() as served:
        served.content = write_tar(tmp_path / "original.tgz", iwslt_files()).read_bytes()
        thread = threading.Thread(target=served.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield served
        served.shutdown()
        thread.join(timeout=10)


def fetch_here(server: Server, folder: Path, sha256: str | None = None) -> Path:
    fetch([Download(server.address, sha256)], folder)
    return folder / "de-en.tgz"


def test_a_file_is_fetched_once(server: Server, tmp_path: Path):
    assert fetch_here(server, tmp_path / "d").read_bytes() == server.content
    fetch_here(server, tmp_path / "d")
    assert server.asked_for == [None]
    assert [path.name for path in (tmp_path / "d").iterdir()] == ["de-en.tgz"]


def test_what_is_there_is_not_fetched_again(server: Server, tmp_path: Path):
    server.breaks_after = 700
    with pytest.raises(UserError) as caught:
        fetch_here(server, tmp_path / "d")
    assert "the connection broke off" in str(caught.value)
    assert "give the same command again to resume" in str(caught.value)
    assert (tmp_path / "d/de-en.tgz.partial").read_bytes() == server.content[:700]
    server.breaks_after = None
    assert fetch_here(server, tmp_path / "d").read_bytes() == server.content
    assert server.asked_for == [None, "bytes=700-"]


def test_a_server_that_cannot_resume_sends_all_again(server: Server, tmp_path: Path):
    server.can_resume = False
    (tmp_path / "de-en.tgz.partial").write_bytes(server.content[:700])
    assert fetch_here(server, tmp_path).read_bytes() == server.content


def test_a_partial_file_that_is_whole(server: Server, tmp_path: Path):
    (tmp_path / "de-en.tgz.partial").write_bytes(server.content)
    assert fetch_here(server, tmp_path).read_bytes() == server.content
    assert server.asked_for == [f"bytes={len(server.content)}-"]


def test_a_partial_file_that_is_too_long_is_fetched_anew(server: Server, tmp_path: Path):
    (tmp_path / "de-en.tgz.partial").write_bytes(server.content + b"more")
    assert fetch_here(server, tmp_path).read_bytes() == server.content
    assert server.asked_for == [f"bytes={len(server.content) + 4}-", None]


def test_the_checksum(server: Server, tmp_path: Path):
    right = hashlib.sha256(server.content).hexdigest()
    assert fetch_here(server, tmp_path / "right", right).exists()
    with pytest.raises(UserError, match=f"is not {'0' * 64}; it was removed"):
        fetch_here(server, tmp_path / "wrong", "0" * 64)
    assert list((tmp_path / "wrong").iterdir()) == []


def test_without_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/de-en.tgz"
        monkeypatch.setitem(CORPORA, "iwslt14", replace(CORPORA["iwslt14"], downloads=(Download(address),)))
        # The port stays taken and nobody listens on it, so no other process can answer.
        with pytest.raises(UserError) as caught:
            prepare_here("iwslt14", tmp_path / "out", None)
    assert str(caught.value).startswith(f"cannot fetch {address}: ")
    assert "name it as the source" in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_an_address_that_has_gone(server: Server, tmp_path: Path):
    gone = Download(server.address.replace("de-en", "gone"))
    with pytest.raises(UserError, match="the server answers 404 Not Found"):
        fetch([gone], tmp_path)


def test_sets_from_the_network(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    corpus = replace(CORPORA["iwslt14"], downloads=(Download(server.address),))
    monkeypatch.setitem(CORPORA, "iwslt14", corpus)
    fetched = prepare_here("iwslt14", tmp_path / "out", None)
    given = prepare_here("iwslt14", tmp_path / "other", tmp_path / "original.tgz")
    assert fetched.record["files"] == given.record["files"]
    assert fetched.record["source"]["fetched_from"] == [server.address]
    # The archive can go when the sets are there, and the network too.
    (tmp_path / "out/download/de-en.tgz").unlink()
    server.breaks_after = 0
    assert not prepare_here("iwslt14", tmp_path / "out", None).is_new
    assert not prepare_here("iwslt14", tmp_path / "out", tmp_path / "original.tgz").is_new


@pytest.mark.parametrize("corpus", CORPORA.values(), ids=CORPORA)
def test_addresses_name_archives_or_files_of_use(corpus: object):
    for download in corpus.downloads:
        assert download.name.endswith((".tgz", ".tar.gz")) or corpus.key_of(download.name) is not None
        assert download.sha256 is None or len(bytes.fromhex(download.sha256)) == 32
