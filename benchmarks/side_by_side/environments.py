"""The peers' own virtual environments: made on first use, kept in a folder, made anew when what they need changes."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"
PINNED = ("torch",)  # by the project's constraints, so that all sides compute with the same PyTorch


@dataclass(frozen=True)
class Peer:
    """A toolkit to compare with: what to install, and what of it without its own requirements."""

    name: str
    title: str
    requirements: tuple[str, ...]
    alone: tuple[str, ...] = ()


JOEY_NMT = Peer("joeynmt", "Joey NMT 2.3.0", ("joeynmt==2.3.0", "importlib_metadata"))
# What these two need to train and decode text; what their servers and their large transforms need is left out.
NEEDED = ("configargparse", "pyonmttok", "pyyaml", "rapidfuzz", "regex", "sacrebleu", "six", "tensorboard")
OPENNMT = Peer("opennmt", "OpenNMT-py 3.5.1", NEEDED, ("OpenNMT-py==3.5.1",))
EOLE = Peer(
    "eole",
    "Eole 0.6.4",
    (*NEEDED, "huggingface_hub", "pydantic", "rich", "safetensors", "tokenizers", "torch-optimi"),
    ("eole==0.6.4",),
)
# CTranslate2 beside the library whose models it converts.
HUGGING_FACE = Peer(
    "huggingface",
    "transformers 5.23.0",
    ("transformers==5.23.0", "accelerate==1.15.0", "numpy==2.4.6", "ctranslate2==4.8.5"),
)
PEERS = {peer.name: peer for peer in (JOEY_NMT, OPENNMT, EOLE, HUGGING_FACE)}


def python_of(peer: Peer, cache: Path, report: Callable[[str], None] = print) -> Path:
    """Return the interpreter of a peer's environment, which is made if it is missing or out of date."""
    folder = cache / peer.name
    python, stamp = folder / "bin" / "python", folder / "installed.txt"
    pins = _pins()
    wanted = _digest(peer, pins)
    if not (stamp.is_file() and stamp.read_text() == wanted and python.exists()):
        report(f"installing {peer.title} in {folder} (once)")
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, with_pip=True)
        pins_file = folder / "pins.txt"
        pins_file.write_text("".join(f"{pin}\n" for pin in pins))
        # The pinned PyTorch first: asked for by another package, pip would take the newest one.
        _pip(python, "-c", str(pins_file), *pins)
        _pip(python, "-c", str(pins_file), *peer.requirements)
        if peer.alone:
            _pip(python, "--no-deps", *peer.alone)
        stamp.write_text(wanted)
    return python


def _pins() -> list[str]:
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line.partition("==")[0] in PINNED]


def _digest(peer: Peer, pins: list[str]) -> str:
    wanted = json.dumps([peer.requirements, peer.alone, pins, sys.version_info[:2]])
    return hashlib.sha256(wanted.encode()).hexdigest()


def _pip(python: Path, *words: str) -> None:
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *words]
    if subprocess.run(command, check=False).returncode != 0:
        raise SystemExit(f"could not install: {' '.join(command)}")
