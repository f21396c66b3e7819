# SPDX-License-Identifier: GPL-2.0-or-later
"""Count the system calls that QEMUs make for the data that they move, and the
doorbells of their guests. perf counts calls at the kernel's tracepoints, which
costs less than strace."""
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager

EVENT = 'syscalls:sys_enter_'
# Calls that send or receive, writes to eventfds, which wake other threads, and
# calls of ppoll(), in which main loops and iothreads wait
COUNTED = ('sendmsg', 'recvmsg', 'sendto', 'recvfrom', 'write', 'ppoll')
# A thread waits for a mutex: FUTEX_WAIT_PRIVATE. Waits for conditions have
# other codes.
LOCK_WAIT = ['-e', EVENT + 'futex', '--filter', 'op == 128']
DOORBELL = 'virtio_rdma_doorbell'


def _start(pid):
    return subprocess.Popen(
        ['perf', 'stat', '-x,', '-e',
         ','.join(EVENT + call for call in COUNTED), *LOCK_WAIT,
         '-p', str(pid)],
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


def _trace_doorbells(vms, on):
    """Make QEMUs log doorbells, or stop that. Return the number of doorbells
    that each log has."""
    for vm in vms:
        vm.qmp('trace-event-set-state', name=DOORBELL, enable=on)
    return [vm.qemu_said().count(DOORBELL) for vm in vms]


@contextmanager
def counted(vms, doorbells=False):
    """Return a list. After the block it has {call: number} for each of vms.
    With @doorbells it also has {DOORBELL: number}, and QEMU makes a further
    write() for each, to its log."""
    before = _trace_doorbells(vms, doorbells)
    counters, counts = [_start(vm.process.pid) for vm in vms], []
    # Wait until perf counts
    time.sleep(0.5)
    try:
        yield counts
    finally:
        counts += map(_end, counters)
        after = _trace_doorbells(vms, False)
        for one, least, most in zip(counts, before, after):
            one[DOORBELL] = most - least


def increase(counts, base, *names):
    """Return the sum of these counts minus that of base, which may be a little
    higher by chance."""
    return max(0, sum(counts[name] - base[name] for name in names))


def per_million(counts, base, sent):
    """Return (calls that send or receive, writes, calls of ppoll) for each
    million bytes of sent."""
    return tuple(increase(counts, base, *names) / sent * 1e6 for names in
                 (('sendmsg', 'recvmsg', 'sendto', 'recvfrom'), ('write',),
                  ('ppoll',)))
