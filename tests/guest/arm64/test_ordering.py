# SPDX-License-Identifier: GPL-2.0-or-later
"""Instructions that order memory accesses, in driver and provider as compiled
for arm64. A guest in TCG on x86 cannot show that an acquire or a release is
missing, so this test searches the code for them."""
import re
import subprocess

from guestkit import driver, kernel
from guestkit.arch import ARM64
from lab.runner import NoGuests

BARRIER, ACQUIRE, RELEASE = r'dmb\tish$', r'ldapr|ldar', 'stlr'
TO_DEVICE = r'dmb\toshst$'
PROVIDER = {
    'vrdma_wq_publish': (RELEASE,),             # the producer, after WQEs
    'vrdma_wq_full': (ACQUIRE,),                # of what has completed
    'vrdma_wq_ring': (BARRIER,),                # before "awake" is read
    'vrdma_cq_next': (ACQUIRE,),                # of the number of a CQE
    'vrdma_cq_consumed': (RELEASE,),            # after the CQE was read
    'vrdma_req_notify_cq': (BARRIER,),          # after arming
}
DRIVER = {
    'vrdma_direct_publish': (RELEASE, BARRIER),
    'vrdma_direct_notify': (TO_DEVICE,),
    'vrdma_cq_direct_poll': (ACQUIRE, RELEASE),
    'vrdma_cq_direct_notify': (BARRIER,),
}

PAIR = BENCH = NoGuests


def lacking(path, expected):
    """Return the ordering instructions that an object's functions lack."""
    code = subprocess.run([f'{ARM64.cross}objdump', '-d', '--no-show-raw-insn',
                           str(path)], text=True, capture_output=True,
                          check=True).stdout
    functions = dict(re.findall(r'^[0-9a-f]+ <(\w+)>:\n((?:.+\n)+)', code,
                                re.M))
    return [f'{name}: no {pattern}' for name, patterns in expected.items()
            for pattern in patterns
            if not re.search(rf'\t(?:{pattern})', functions.get(name, ''),
                             re.M)]


def test_the_provider_orders_its_accesses(_):
    missing = lacking(driver.provider(ARM64), PROVIDER)
    assert not missing, '\n'.join(missing)


def test_the_driver_orders_its_accesses(_):
    made = kernel.prepare(arch=ARM64)
    missing = lacking(driver.module(made.series, ARM64), DRIVER)
    assert not missing, '\n'.join(missing)
