"""The site: Markdown pages and an API reference; no resource from the network, no warnings."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

from tempriv._version import VERSION

project = "tempriv"
author = "the tempriv authors"
copyright = "the tempriv authors, Apache-2.0"
version = release = VERSION

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "reference"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "signature"

autoclass_content = "class"
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True
napoleon_numpy_docstring = False
napoleon_custom_sections = ["Guarantees"]
napoleon_use_rtype = False
suppress_warnings = ["ref.python"]  # short names of types that several modules have

html_theme = "furo"
html_title = f"tempriv {VERSION}"
html_static_path = ["_static"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"top_of_page_buttons": []}
html_css_files = ["site.css"]
pygments_style = "friendly"
