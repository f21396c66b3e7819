# SPDX-License-Identifier: GPL-2.0-or-later
"""Debian's suites, queried with private lists: the machine's own configuration
does not change."""
import contextlib
import functools
import importlib.util
import io
import re

from .arch import NATIVE
from .packages import Apt
from .paths import BUILD, DEBS, TOP, say

# All suites with kernels, oldest first
SUITES = ('bookworm', 'bookworm-security', 'bookworm-backports', 'trixie',
          'trixie-security', 'trixie-backports', 'forky', 'sid',
          'experimental')


@functools.cache
def _fetch_module():
    """scripts/fetch.py, which queries other suites with private lists."""
    spec = importlib.util.spec_from_file_location(
        'fetch', TOP / 'scripts' / 'fetch.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def apt(suite, arch=NATIVE):
    """An Apt with only this suite, or None."""
    fetch = _fetch_module()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            private = fetch.Apt(BUILD / 'download', suite, 'deb',
                                arch.name if arch.foreign else '')
    except fetch.FetchError as e:
        say(f'  {suite}: {e}')
        return None
    return Apt(private.options, DEBS / arch.name if arch.foreign else DEBS)


def machine():
    """The suite of this machine."""
    return _fetch_module().codename()


def base(suite):
    """The suite for which packages of this suite are built."""
    if suite == 'experimental':
        return 'sid'
    return re.sub('-(backports|security|updates)$', '', suite)


def sources(arch=NATIVE):
    """Sources of kernels, in order: (Apt, suite). The first is the machine's
    own."""
    own = machine()
    yield apt(own, arch) if arch.foreign else Apt(), own
    yield from ((apt(suite, arch), suite) for suite in
                (f'{own}-backports', *(s for s in SUITES if
                                       base(s) != own and
                                       s != 'experimental'))
                if apt(suite, arch))
