# SPDX-License-Identifier: GPL-2.0-or-later
"""Where tests of guests have their sources, and where results go."""
from pathlib import Path

from guestkit.paths import BUILD

GUEST_TESTS = Path(__file__).resolve().parent.parent
# Programs and modules that run in guests
PROGRAMS = GUEST_TESTS / 'programs'
RESULTS = BUILD / 'results'
