# SPDX-License-Identifier: GPL-2.0-or-later
"""The network of more than two guests, or of guests that come and go."""
import os
import socket
import subprocess
import time

from .agent import Channel
from .paths import LOGS, LabError, qemu_binary
from .vm import die_with_parent


def _netdev(name, link, directory, port, far):
    """One end of the link to a port: the guest's end if @far, else the
    hub's."""
    path = f'{directory}/port{port}'
    if link == 'dgram':
        local, remote = (f'{path}.far', path) if far else \
            (path, f'{path}.far')
        return ['-netdev', f'dgram,id={name},'
                f'local.type=unix,local.path={local},'
                f'remote.type=unix,remote.path={remote}']
    server = 'server=off,reconnect-ms=50' if far else 'server=on'
    return ['-netdev', f'stream,id={name},addr.type=unix,addr.path={path},'
            f'{server}']


def to_hub(link, directory, port):
    """The netdev of a guest at a port of a hub. The guest, or another one, may
    connect to the port again."""
    return _netdev('n0', link, directory, port, True)


class Hub:
    """A QEMU without a machine, which forwards each frame of a port to all
    others. @link: stream or dgram; @first: number of its first port among
    those of all hubs in the directory."""

    def __init__(self, tag, directory, ports, logs=LOGS, link='stream',
                 first=0):
        self.directory, self.first = directory, first
        qmp, far = socket.socketpair()
        command = [str(qemu_binary()), '-machine', 'none', '-nodefaults',
                   '-display', 'none',
                   '-chardev', f'socket,id=qmp,fd={far.fileno()}',
                   '-qmp', 'chardev:qmp']
        for i in range(ports):
            command += [*_netdev(f's{i}', link, directory, first + i, False),
                        '-netdev', f'hubport,id=h{i},hubid=0,netdev=s{i}']
        self.log = logs / f'{tag}-hub.qemu'
        logs.mkdir(parents=True, exist_ok=True)
        with open(self.log, 'wb') as errors:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=errors,
                stderr=errors, pass_fds=(far.fileno(),),
                preexec_fn=die_with_parent)
        far.close()
        self.qmp_channel = Channel(f'{tag}-hub (QMP)', qmp)
        end = time.monotonic() + 20
        while not os.path.exists(self.path(ports - 1)):
            if self.process.poll() is not None or time.monotonic() > end:
                self.kill()
                raise LabError('the hub did not start:\n'
                               f'{self.log.read_text()}')
            time.sleep(0.02)
        self.qmp('qmp_capabilities')

    def path(self, port):
        """The socket of a port."""
        return f'{self.directory}/port{self.first + port}'

    def qmp(self, command, **arguments):
        """Execute a QMP command; its return value."""
        return self.qmp_channel.execute(command, arguments, 20)

    def kill(self):
        self.process.kill()
        self.process.wait()
