# SPDX-License-Identifier: GPL-2.0-or-later
"""Guests with pvrdma. Nothing of this project is installed in them: they have
the driver of Linux, and the provider of the machine's rdma-core."""
from guestkit import driver, kernel, pvrdma
from guestkit.paths import Unavailable

from . import nested
from .moving import MovingPair
from .pair import Pair
from .runner import Skip

STACK = 'pvrdma'
# Programs of lab.interop that the provider cannot run, by family: it has no
# UC, and no address handles for IPv6 addresses that are not link-local.
UC = ('ibv_uc_pingpong', 'ib_send_bw -c UC')
CANNOT = {4: UC, 6: (*UC, 'ibv_ud_pingpong')}


def prepare(series=None):
    """Prepare kernel and driver of a series. Skip if that kernel, its headers
    or its source are not available."""
    try:
        pvrdma.prepare(series)
    except Unavailable as e:
        raise Skip(str(e)) from e


def pair(tag, peer=STACK, series=None, **options):
    """Return a pair.Pair whose guest 1 has pvrdma. @peer: the adapter of guest
    2, or '' for none. @series: of Linux, or 'newest' for the newest one"""
    if series == 'newest':
        series = kernel.newest()
    prepare(series)
    if peer == 'virtio-rdma':
        driver.prepare(series)
    return Pair(tag, adapters=(STACK, peer), series=series, **options)


def moving_pair(tag, **options):
    """Return a moving.MovingPair of such guests."""
    prepare()
    return MovingPair(tag, adapter=STACK, **options)


def nested_pair(tag, **options):
    """Return a nested.NestedPair: guest 1 has pvrdma on the rxe of its host,
    guest 2 has virtio-rdma."""
    prepare()
    driver.prepare()
    return nested.NestedPair(tag, devices=nested.pvrdma_on_rxe, **options)
