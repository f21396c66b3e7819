# SPDX-License-Identifier: GPL-2.0-or-later
"""Directories of the sources of guest tests, and of their results."""
from pathlib import Path

from guestkit.paths import BUILD

GUEST_TESTS = Path(__file__).resolve().parent.parent
# Programs and modules that run in guests
PROGRAMS = GUEST_TESTS / 'programs'
RESULTS = BUILD / 'results'
