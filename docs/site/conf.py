"""Sphinx's settings for the site. `make docs` gathers the pages first, see tests/site."""

import streamskit

project = "streamskit"
author = "The streamskit authors"
project_copyright = "The streamskit authors; lessons under CC BY 4.0, everything else under Apache-2.0"
version = release = streamskit.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
language = "en"

# Outputs are shown as they are stored: tests have compared them, and nothing needs to run.
nb_execution_mode = "off"
nb_ipywidgets_js: dict[str, dict[str, str]] = {}  # the scripts that bring widgets to life would come from another host
myst_heading_anchors = 6

# A docstring's `backticks` mean code, as everywhere else in this project.
default_role = "literal"
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100

html_theme = "furo"
html_title = f"streamskit {version}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
