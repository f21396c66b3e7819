# SPDX-License-Identifier: GPL-2.0-or-later
"""Count the system calls that QEMUs make for the data that they move. perf
counts them at the kernel's tracepoints, which costs less than strace."""
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager

EVENT = 'syscalls:sys_enter_'
# Calls that send or receive, and writes to eventfds, which wake other threads
COUNTED = ('sendmsg', 'recvmsg', 'sendto', 'recvfrom', 'write')


def _start(pid):
    return subprocess.Popen(
        ['perf', 'stat', '-x,', '-e',
         ','.join(EVENT + call for call in COUNTED), '-p', str(pid)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _end(counter):
    counter.send_signal(signal.SIGINT)
    said = counter.communicate(timeout=30)[1]
    fields = [line.split(',') for line in said.splitlines() if EVENT in line]
    return {line[2].removeprefix(EVENT): int(line[0]) for line in fields}


def refusal():
    """Return why calls cannot be counted here, or None."""
    if not shutil.which('perf'):
        return 'install linux-perf to have system calls counted'
    tried = subprocess.run(['perf', 'stat', '-e', EVENT + 'write', 'true'],
                           capture_output=True, text=True, check=False)
    if tried.returncode:
        return 'perf may not count system calls: be root, with tracefs mounted'
    return None


@contextmanager
def counted(vms):
    """Return a list. After the block it has {call: number} for each of vms."""
    counters, counts = [_start(vm.process.pid) for vm in vms], []
    # Wait until perf counts
    time.sleep(0.5)
    try:
        yield counts
    finally:
        counts += map(_end, counters)


def per_million(counts, base, sent):
    """Return (calls that send or receive, writes) for each million bytes of
    sent. Subtract the counts of base, which may be a little higher by
    chance."""
    def calls(*names):
        more = sum(counts[name] - base[name] for name in names)
        return max(0.0, more / sent * 1e6)

    return (calls('sendmsg', 'recvmsg', 'sendto', 'recvfrom'),
            calls('write'))
