"""The page works in a real browser: its script runs without error and does what its controls promise."""

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from seqcritic.report.comparison import Comparison
from seqcritic.report.pages import render_page

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def dump_page(page: str, folder: Path, *further: str) -> str:
    """Load a page in headless Chromium and return the document as it stands after the script has run."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        pytest.skip("no Chromium is installed")
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--window-size=1200,1600",
        f"--user-data-dir={folder / 'profile'}",
        *further,
        "--dump-dom",
    ]
    finished = subprocess.run(
        [browser, *options, path.as_uri()], capture_output=True, encoding="utf-8", timeout=120, check=True
    )
    return finished.stdout


def add_script(page: str, script: str) -> str:
    """Let a script of the test act as the reader, which the page's policy would refuse."""
    without_policy = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    assert without_policy != page
    return without_policy.replace("</body>", f"<script>{script}</script></body>")


def opening_tag(document: str) -> str:
    found = re.search(r"<html[^>]*>", document)
    assert found is not None
    return found.group()


def test_page_in_browser(comparison: Comparison, tmp_path: Path) -> None:
    document = dump_page(render_page(comparison), tmp_path)
    assert 'data-ready="true"' in opening_tag(document)
    assert "data-error" not in opening_tag(document)
    wide = document[document.index('<div class="wide">') : document.index('<div class="narrow">')]
    for row in comparison.rows:
        assert re.search(rf'<tr data-label="{re.escape(row.label)}">', document)
        group = wide[wide.index(f'data-label="{row.label}"') :]
        assert re.search(r'<path class="curve main" d="M[^"]+L[^"]+"', group)
    assert wide.count('class="curve main"') == len(comparison.rows)
    assert document.count('<article class="example">') == 20
    assert not re.search(r"(src|href)\s*=\s*[\"']?\s*https?:|@import", document)


def test_an_error_in_the_script_is_seen(comparison: Comparison, tmp_path: Path) -> None:
    document = dump_page(add_script(render_page(comparison), "undefinedFunction();"), tmp_path)
    assert "undefinedFunction is not defined" in opening_tag(document)


def test_policy_refuses_foreign_scripts(comparison: Comparison, tmp_path: Path) -> None:
    page = render_page(comparison).replace("</body>", "<script>document.title = 'taken'</script></body>")
    document = dump_page(page, tmp_path)
    assert 'data-ready="true"' in opening_tag(document)
    assert "<title>taken</title>" not in document


def test_legend_hides_a_method_and_pointer_reads_the_others(comparison: Comparison, tmp_path: Path) -> None:
    script = """
        document.querySelector('.legend button[data-label="reinforce-critic"]').click();
        const drawing = document.querySelector(".wide svg.curves");
        const box = drawing.getBoundingClientRect();
        const place = { clientX: box.left + box.width / 2, clientY: box.top + 100 };
        drawing.dispatchEvent(new PointerEvent("pointermove", place));
    """
    document = dump_page(add_script(render_page(comparison), script), tmp_path)
    assert "data-error" not in opening_tag(document)
    assert re.search(r'<button[^>]*aria-pressed="false"[^>]*data-label="reinforce-critic"', document)
    assert re.findall(r'<g class="([^"]*)" data-label="reinforce-critic"', document) == ["method method-3 off"] * 2
    tooltip = re.search(r'<div class="tooltip"[^>]*style[^>]*>(.*?)</div></div>', document)
    assert tooltip is not None
    assert "actor-critic+likelihood at" in tooltip.group(1)
    assert "reinforce-critic" not in tooltip.group(1)
    assert re.search(r'<line class="crosshair"[^>]*y2="', document)


def test_single_run_in_browser(comparison: Comparison, tmp_path: Path) -> None:
    bare = replace(comparison, rows=comparison.rows[:1], curves=())
    document = dump_page(render_page(bare), tmp_path)
    assert 'data-ready="true"' in opening_tag(document)
    assert "data-error" not in opening_tag(document)
