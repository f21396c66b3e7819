# SPDX-License-Identifier: GPL-2.0-or-later
"""
Sphinx's settings for "make docs", which makes HTML of this project's pages.

The same pages are part of QEMU's manuals, which QEMU's own conf.py builds. The
settings that decide what a page may contain are the same here as there.
"""
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1]

project = 'virtio-rdma'
version = (DOCS.parent / 'VERSION').read_text(encoding='utf-8').strip()
language = 'en'

default_role = 'any'
rst_epilog = '.. |qemu_system| replace:: qemu-system-x86_64\n'
# Warn of each reference without a target.
nitpicky = True

html_theme = 'sphinx_rtd_theme'
html_static_path = ['style.css']
html_css_files = ['style.css']
html_copy_source = False
html_show_copyright = False
