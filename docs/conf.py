"""Sphinx configuration."""

import dprisk

project = "dprisk"
author = "The dprisk developers"
copyright = "The dprisk developers"
version = release = dprisk.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx.ext.viewcode"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
autodoc_typehints = "none"
autodoc_member_order = "bysource"
exclude_patterns = ["_build"]

html_theme = "pydata_sphinx_theme"
html_title = "dprisk"
html_show_sourcelink = False
