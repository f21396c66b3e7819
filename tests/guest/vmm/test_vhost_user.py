# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs in guests whose adapters a server provides by vhost-user."""
from lab.served import *
from lab.vmm import VhostUserPair

PAIR = VhostUserPair
SECONDS = 90
