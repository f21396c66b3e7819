# SPDX-License-Identifier: GPL-2.0-or-later
"""Registration of memory by rdma-verbs on rxe in User-mode Linux, beside a
program of that host."""
import os

from guestkit.paths import BUILD, LOGS, TOP

from .qtests import Qtests

SCRIPT = TOP / 'scripts' / 'bench-verbs-mr.sh'


def main(mib, timeout=1800):
    """Print the table; the exit code."""
    LOGS.mkdir(parents=True, exist_ok=True)
    with Qtests('rxe') as host:
        done = host.vm.run(
            f'V_DIR={os.environ.get("V_DIR", BUILD)} MR_BENCH_MIB={mib} '
            f'MR_BENCH_IBDEV={host.stack.device} {SCRIPT} > /out/mr 2>&1',
            timeout)
        print((host.vm.out / 'mr').read_text(errors='replace'), end='')
        complaints = host.vm.complaints()
    if complaints:
        print(complaints)
    return 0 if done.rc == 0 and not complaints else 1
