# SPDX-License-Identifier: GPL-2.0-or-later
"""vhost-user, with QEMU's options as in the proposal of May 2022."""
from lab.stock import pingpong
from lab.vmm import SeedVm, VhostUserPair

PAIR = VhostUserPair
GUESTS = {'kinds': (SeedVm, SeedVm)}
SECONDS = 40


def test_ibv_rc_pingpong(bench):
    pingpong(bench, 'ibv_rc_pingpong')


def test_ibv_ud_pingpong(bench):
    pingpong(bench, 'ibv_ud_pingpong', '-s 1024')
