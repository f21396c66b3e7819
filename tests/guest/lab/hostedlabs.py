# SPDX-License-Identifier: GPL-2.0-or-later
"""The command vrdma-lab on two hosts, whose bridges are one network. It
replaces a Pair and a Bench."""
from guestkit.adapter import MTU

from .hosts import OVERHEAD, LinuxBridge, make_hosts
from .userlab import UserLab


class HostedLabs:
    """Guests 1 and 2 on host 1, 3 and 4 on host 2."""

    def __init__(self, tag, rdma=True, underlay=MTU + OVERHEAD):
        self.tag, self.underlay = tag, underlay
        self.stack = 'virtio-rdma' if rdma else 'rxe'
        self.hosts, self.labs = [], []
        self.switch = None
        self.vms = []       # the command owns the guests, not the runner

    def start(self):
        try:
            make_hosts(self.hosts, self.underlay)
            self.switch = LinuxBridge(self.hosts)
            self.switch.up()
            for first, host in zip((1, 3), self.hosts):
                lab = UserLab(self.tag, guests=2, host=host)
                self.labs.append(lab)
                lab.call('up', '2', '--bridge', 'br0', '--of', '4', '--first',
                         str(first), '--stack', self.stack)
        except BaseException:
            self.kill()
            raise
        return self

    def kill(self):
        for lab in self.labs:
            lab.kill()
        for host in reversed(self.hosts):
            host.end()
        self.hosts.clear()


class LabsBench:
    def __init__(self, pair, stack, _):
        self.pair, self.stack = pair, stack
        self.one, self.two = pair.labs
        self.notes = []
        self.baseline = None

    def note(self, text):
        self.notes.append(text)

    def healthy(self):
        return all(lab.call('status', check=False).rc == 0
                   for lab in self.pair.labs)

    def nothing_left(self, _):
        """Require that no process of a test runs in the guests."""
        for lab in self.pair.labs:
            lab.call('run', '--', 'sh', '-c', '! pgrep -x "sleep|rping"')
