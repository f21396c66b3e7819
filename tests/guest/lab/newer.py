# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests with Debian 13's kernel, for tests of what older kernels lack."""
from guestkit import driver
from guestkit.paths import Unavailable

from .pair import Pair
from .runner import Skip

SERIES = '6.12'


def pair(tag, **options):
    """Return a pair.Pair of such guests. Skip if there is no such kernel."""
    try:
        driver.prepare(SERIES)
    except Unavailable as e:
        raise Skip(str(e)) from e
    return Pair(tag, series=SERIES, **options)
