"""Standard output that is closed early or cannot be written."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

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
