# SPDX-License-Identifier: GPL-2.0-or-later
"""Domains of the page about libvirt, with Debian's libvirt in session mode.
`make check-libvirt` runs more tests of it."""
from lab import libvirt
from lab.runner import slow
from lab.verified import verified_traffic

PAIR = libvirt.LibvirtPair
SECONDS = 30


@slow
def test_a_domain_is_saved_and_restored_during_traffic(bench):
    with verified_traffic(bench, '-s 16384 -n 64 -q 2 -m 4096 -e ' +
                          libvirt.PATIENCE):
        bench.one.save_and_restore()
