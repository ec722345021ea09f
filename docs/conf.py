"""The site: Markdown pages, no resource from the network, no warnings."""

from tempriv._version import VERSION

project = "tempriv"
author = "the tempriv authors"
copyright = "the tempriv authors, Apache-2.0"
version = release = VERSION

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
myst_heading_anchors = 3

html_theme = "furo"
html_title = f"tempriv {VERSION}"
html_static_path = ["_static"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"top_of_page_buttons": []}
html_css_files = ["site.css"]
pygments_style = "friendly"
