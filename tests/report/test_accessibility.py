"""Pages pass axe-core in headless Chromium, as wide as a screen or a telephone, light or dark."""

import html
import json
import re
from pathlib import Path

import pytest
from test_browser import dump_page, opening_tag
from test_values import paper_table
from test_values_page import spelled_table

from seqcritic.analysis.playground import describe_playground
from seqcritic.report.comparison import Comparison
from seqcritic.report.pages import render_page, render_values
from seqcritic.report.playground import render_playground

AXE = Path(__file__).parents[2] / ".npm/node_modules/axe-core/axe.min.js"  # put there by .ci/run
DARK, LIGHT = "--blink-settings=preferredColorScheme=0", "--blink-settings=preferredColorScheme=1"
# A window cannot be as narrow as a telephone; a frame can, and the page's media queries go by its width.
FRAME = """<!doctype html><html lang="en"><head><title>frame</title></head><body>
<iframe title="page" style="width: {width}px; height: 1400px; border: 0" srcdoc="{page}"></iframe>
<script>
addEventListener("message", (event) => {{ document.documentElement.setAttribute("data-axe", event.data); }});
</script></body></html>"""
RUN = """
{axe}
const tell = (found) => parent.postMessage(JSON.stringify({{
  dark: matchMedia("(prefers-color-scheme: dark)").matches,
  width: innerWidth,
  passes: found.passes.length,
  faults: found.violations.flatMap((rule) => rule.nodes.map((node) => `${{rule.id}}: ${{node.html.slice(0, 120)}} ` +
    `${{node.any.map((check) => check.message).join("; ").slice(0, 200)}}`)),
}}), "*");
addEventListener("load", () => axe.run().then(tell));
"""


def list_faults(page: str, folder: Path, width: int, dark: bool) -> list[str]:
    """Return what axe-core finds wrong with a page; skip the test where there is no axe-core or no browser."""
    if not AXE.is_file():
        pytest.skip("no axe-core is installed")
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    script = RUN.format(axe=AXE.read_text(encoding="utf-8").replace("</script", "<\\/script"))
    inner = page.replace("</body>", f"<script>{script}</script></body>")
    frame = FRAME.format(width=width, page=html.escape(inner, quote=True))
    document = dump_page(frame, folder, DARK if dark else LIGHT, "--virtual-time-budget=60000")
    found = re.search(r'data-axe="([^"]*)"', opening_tag(document))
    assert found is not None, "axe-core did not end"
    result = json.loads(html.unescape(found.group(1)))
    assert (result["dark"], result["width"]) == (dark, width)
    assert result["passes"] > 10
    return list(result["faults"])


# Rules that depend on the width and rules that depend on the colours hardly meet: two of the four cases see both.
LOOKS = pytest.mark.parametrize(("width", "dark"), [(1100, False), (390, True)])


@LOOKS
def test_the_report(comparison: Comparison, tmp_path: Path, width: int, dark: bool) -> None:
    assert list_faults(render_page(comparison).replace("<details>", "<details open>"), tmp_path, width, dark) == []


@LOOKS
def test_the_page_of_values(tmp_path: Path, width: int, dark: bool) -> None:
    assert list_faults(render_values(paper_table()), tmp_path, width, dark) == []


@LOOKS
def test_the_playground(finished_run: Path, tmp_path: Path, width: int, dark: bool) -> None:
    page = render_playground(describe_playground(finished_run))
    assert list_faults(page, tmp_path, width, dark) == []


def test_the_page_of_more_characters_than_a_line_holds(tmp_path: Path) -> None:
    page = render_values(spelled_table(70))
    assert 'class="long"' in page
    assert list_faults(page, tmp_path, 390, dark=False) == []


def test_faults_are_noticed(comparison: Comparison, tmp_path: Path) -> None:
    page = render_page(comparison).replace("--faint: #5c6470", "--faint: #9ca4b0").replace('scope="row"', 'role="row"')
    found = {fault.partition(":")[0] for fault in list_faults(page, tmp_path, 1100, dark=False)}
    assert found >= {"color-contrast", "aria-required-parent"}
