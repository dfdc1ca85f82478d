"""Sphinx configuration."""

import gc
import sys
from pathlib import Path

import dprisk

gc.set_threshold(100_000, 20, 50)  # pages are many small objects, and hardly any are garbage before the end
sys.path.append(str(Path(__file__).parent / "_ext"))

project = "dprisk"
author = "The dprisk developers"
copyright = "The dprisk developers"
version = release = dprisk.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode"]
extensions += ["blocks", "mathml", "own", "reports", "sidebars"]  # in _ext
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_use_type_comments = False  # there are none, and looking for them parses every function again
toc_object_entries = False
default_role = "code"  # of single backticks in docstrings
exclude_patterns = ["_build"]

html_theme = "furo"
html_title = "dprisk"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["dprisk.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_search_summary = False  # fetches pages, which a browser refuses for files
html_use_index = html_domain_indices = False
