#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Write 1 to queue_enable of each virtqueue of a PCI device, whose driver has
enabled them already.

The window in the device's configuration space (virtio 1.2, 4.1.4.9) reaches
the registers, as the kernel does not map a device that has a driver.
"""
import os
import struct
import sys

VENDOR_CAP = 9
COMMON_CFG, PCI_CFG = 1, 5
# Offsets in the common configuration
NUM_QUEUES, QUEUE_SELECT, QUEUE_ENABLE = 18, 22, 28


class Registers:
    """The common configuration of a virtio device."""

    def __init__(self, device):
        self.fd = os.open(f'/sys/bus/pci/devices/{device}/config', os.O_RDWR)
        config = os.pread(self.fd, 256, 0)
        caps = {}
        at = config[0x34]
        while at:
            if config[at] == VENDOR_CAP:
                caps.setdefault(config[at + 3], at)
            at = config[at + 1]
        self.window = caps[PCI_CFG]
        common = caps[COMMON_CFG]
        self.bar = config[common + 4]
        self.base, = struct.unpack_from('<I', config, common + 8)

    def select(self, offset):
        where = struct.pack('<B3xII', self.bar, self.base + offset, 2)
        os.pwrite(self.fd, where, self.window + 4)

    def read(self, offset):
        self.select(offset)
        data = os.pread(self.fd, 2, self.window + 16)
        return int.from_bytes(data, 'little')

    def write(self, offset, value):
        self.select(offset)
        os.pwrite(self.fd, value.to_bytes(2, 'little'), self.window + 16)


def main():
    registers = Registers(sys.argv[1])
    enabled = 0
    for queue in range(registers.read(NUM_QUEUES)):
        registers.write(QUEUE_SELECT, queue)
        if registers.read(QUEUE_ENABLE):
            registers.write(QUEUE_ENABLE, 1)
            enabled += 1
    print(enabled)


if __name__ == '__main__':
    main()
