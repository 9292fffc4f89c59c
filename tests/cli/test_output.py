"""Standard output that is closed early or cannot be written."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from seqcritic.cli import main
from support import quiet_environment, run, start


@pytest.mark.parametrize("command", ["validate demo", "predict RUN"])
def test_a_full_disk_is_named_once(command: str, lively_run: Path):
    with Path("/dev/full").open("w") as full:
        refused = run(*command.replace("RUN", str(lively_run)).split(), input="a line\n", stdout=full)
    assert refused.returncode == 2
    assert refused.stderr == "seqcritic: [Errno 28] No space left on device\n"


@pytest.mark.parametrize("buffered", [True, False])
def test_a_reader_that_leaves_early_is_no_fault(buffered: bool):
    reading, writing = os.pipe()
    os.close(reading)
    environment = quiet_environment() | ({} if buffered else {"PYTHONUNBUFFERED": "1"})
    left = run("validate", "demo", stdout=writing, env=environment)
    os.close(writing)
    assert left.returncode == 141
    assert left.stderr == ""


def test_closed_streams_are_no_traceback(lively_run: Path):
    command = [sys.executable, "-m", "seqcritic", "predict", str(lively_run)]
    shell = " ".join(shlex.quote(part) for part in command)
    without_input = subprocess.run(f"{shell} <&-", shell=True, capture_output=True, text=True, env=quiet_environment())
    assert without_input.returncode == 2
    assert without_input.stderr.startswith("seqcritic: standard input is closed")
    without_output = subprocess.run(
        f"echo a | {shell} >&-", shell=True, capture_output=True, text=True, env=quiet_environment()
    )
    assert (without_output.returncode, without_output.stderr) == (0, "")


@pytest.mark.parametrize("fault", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")])
def test_a_full_memory_is_told_with_what_to_do(
    fault: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def fill(options: object) -> int:
        raise fault

    monkeypatch.setattr("seqcritic.commands.validate", fill)
    assert main(["validate", "demo"]) == 2
    assert capsys.readouterr().err.startswith("seqcritic: there is not enough memory; make training.batch")


def test_other_faults_of_the_program_are_not_hidden(monkeypatch: pytest.MonkeyPatch):
    def fail(options: object) -> int:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr("seqcritic.commands.validate", fail)
    with pytest.raises(RuntimeError, match="a fault of ours"):
        main(["validate", "demo"])


def test_an_interrupt_is_one_line(lively_run: Path):
    process = start("predict", lively_run, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("a line\n")
    process.stdin.flush()
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert process.communicate()[1] == "seqcritic: interrupted\n"
    assert process.returncode == 130
