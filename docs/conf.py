"""The documentation as a site: `make docs` (Sphinx, MyST, furo). The pages are the Markdown files as they stand."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "site"))

import docstrings
import links
import mathematics
import reference

project = "seqcritic"
author = "the authors of seqcritic"
extensions = ["sphinx.ext.autodoc", "myst_nb"]
exclude_patterns = ["_build", "site", "images", "**/.ipynb_checkpoints"]

# Pages are read as files too: they link to headings and write formulas as forges do.
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]
smartquotes = False  # options begin with two hyphens
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
python_use_unqualified_type_names = True
maximum_signature_line_length = 100

html_theme = "furo"
html_title = "seqcritic"
html_extra_path = ["spelling-playground.html"]
html_math_renderer = "mathml"
html_static_path = ["site/static.css"]
html_css_files = ["static.css"]
html_copy_source = html_show_sphinx = html_show_copyright = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#2448c8", "color-brand-content": "#2448c8"},
    "dark_css_variables": {"color-brand-primary": "#a3a8ff", "color-brand-content": "#a3a8ff"},
}


def setup(app) -> None:
    """Make the reference before pages are read, and let docstrings and links be what they are elsewhere."""
    app.add_html_math_renderer("mathml", (mathematics.write_inline, None), (mathematics.write_block, None))
    app.connect("builder-inited", reference.write_pages)
    app.connect("autodoc-process-docstring", docstrings.from_plain_text)
    app.connect("source-read", links.to_files_of_the_repository)
