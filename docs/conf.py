"""How the documentation is built: ``make docs``, without network, warnings being errors."""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).parent
ROOT = DOCS.parent
sys.path[:0] = [str(DOCS / "_ext"), str(ROOT / "src"), str(ROOT)]

import api  # noqa: E402
import commands  # noqa: E402
import gallery  # noqa: E402
import sentences  # noqa: E402

import spdmetric  # noqa: E402

project = "spdmetric"
author = "The spdmetric developers"
copyright = author
version = release = spdmetric.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinxcontrib.bibtex",
    "sphinx_gallery.gen_gallery",
    "citations",
    "sphinx-mathjax-offline",
    "pages",
    "gallery",
    "quotes",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "images", "api/backreferences", "gallery/**/*.md5", "gallery/**/*.ipynb"]
default_role = "py:obj"
highlight_language = "default"

# The first fit after an installation compiles kernels and says so: here, not in the output of an example.
spdmetric.LogEuclideanMetric(1.0).fit(*spdmetric.datasets.make_toy(200, 2, d=16, random_state=0)[:2])

# Pages that are written from the source, so that they cannot fall behind it.
api.write_api(DOCS / "api")
sentences.write_sentences(DOCS / "api" / "sentences.md")
commands.write_commands(DOCS / "api" / "commands.md")

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 4
myst_dmath_allow_labels = False

# MathJax comes with the build (sphinx-mathjax-offline): pages fetch nothing. Its letters are large.
mathjax3_config = {"chtml": {"scale": 0.92}}

bibtex_bibfiles = ["references.bib"]
bibtex_default_style = "plain"
bibtex_reference_style = "label"

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's tables have the types
autodoc_member_order = "alphabetical"  # as on the pages of scikit-learn
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "reset_modules": ("matplotlib", "gallery.reset"),
    "examples_dirs": [str(ROOT / "examples")],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"plot_",
    "subsection_order": [f"../examples/{section}" for section in gallery.SECTIONS],
    "within_subsection_order": "gallery.Order",
    "backreferences_dir": gallery.BACKREFERENCES,
    "doc_module": ("spdmetric",),
    "thumbnail_size": (800, 280),  # site.css shows the middle of wide pictures
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,  # their page loads scripts from the network
    "show_signature": False,
    "min_reported_time": 0,
    "capture_repr": ("_repr_html_",),  # no <... object at 0x7f5f6e69f710>
    "remove_config_comments": True,
    "plot_gallery": "True",
}

html_theme = "pydata_sphinx_theme"
html_title = "spdmetric"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["sort.js", "pictures.js"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {
    page: [] for page in ("index", "start", "how_it_works", "troubleshooting", "changes", "references")
}
html_logo = "_static/logo.svg"
html_favicon = "_static/favicon.svg"
html_theme_options = {
    "show_nav_level": 1,
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navbar_end": ["version", "theme-switcher", "navbar-icon-links"],
    "logo": {"text": "spdmetric"},
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
