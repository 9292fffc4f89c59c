"""The pages on bringing one's own run as they stand: files are written, the rest is executed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support import quiet_environment

PAGES = Path(__file__).parents[1] / "docs" / "own"
PRINTED = {
    "score": r"score:my_scores:covered\|.*code:[0-9a-f]+.*",
    "data": r"WER \d+\.\d of 11: one three five → five three one\n"
    r"score:WER\|split:valid\|sentences:11\|text:[0-9a-f]{8}\|\S+\nTrue",
    "method": r"\d+\.\d+",
    "callback": r"",
    "actor": r"\[\[3, 2, 1\], \[5, 4\], \[4, 2\], \[1, 1, 5\]\]",
}


def test_every_page_is_run():
    assert {path.stem for path in PAGES.glob("*.md")} == {*PRINTED, "README"}


@pytest.mark.parametrize("page", PRINTED)
def test_the_page_runs_as_it_stands(page: str, tmp_path: Path):
    rest = []
    for block in re.findall(r"```python\n(.*?)```", (PAGES / f"{page}.md").read_text(encoding="utf-8"), re.DOTALL):
        name = re.match(r"# file: (\S+)\n", block)
        if name:
            (tmp_path / name[1]).write_text(block, encoding="utf-8")
        else:
            rest.append(block)
    command = [sys.executable, "-c", "\n".join(rest)]
    environment = quiet_environment() | {"SEQCRITIC_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(PRINTED[page], done.stdout.strip()), done.stdout
    if page == "callback":
        assert "validation is level" in done.stderr
