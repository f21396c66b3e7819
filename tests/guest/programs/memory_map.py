#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Change the memory map on one processor while another reads a device.

The clock is the HPET's, which is read as memory. The SATA controller, which
has no disk, loses its addresses and gets them back.
"""
import os
import time
from pathlib import Path

CLOCK = Path('/sys/devices/system/clocksource/clocksource0/'
             'current_clocksource')
CONFIG = '/sys/bus/pci/devices/0000:00:1f.2/config'
# PCI's command register; its low bits let the device decode addresses.
COMMAND = 4
TIMES = 400


def change():
    os.sched_setaffinity(0, {0})
    config = os.open(CONFIG, os.O_RDWR)
    before = os.pread(config, 2, COMMAND)
    for _ in range(TIMES):
        os.pwrite(config, b'\0\0', COMMAND)
        os.pwrite(config, b'\3\0', COMMAND)
    os.pwrite(config, before, COMMAND)


def main():
    before = CLOCK.read_text(encoding='ascii')
    CLOCK.write_text('hpet', encoding='ascii')
    try:
        child = os.fork()
        if not child:
            change()
            os._exit(0)
        os.sched_setaffinity(0, {1})
        last = 0
        while not os.waitpid(child, os.WNOHANG)[0]:
            for _ in range(100):
                now = time.monotonic_ns()
                if now < last:
                    raise SystemExit(f'time went from {last} to {now}')
                last = now
    finally:
        CLOCK.write_text(before, encoding='ascii')


if __name__ == '__main__':
    main()
