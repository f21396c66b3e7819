# SPDX-License-Identifier: GPL-2.0-or-later
#
# Devices of the QEMU that `make check SUITE=threads` builds: what the tests of
# iothreads have.

CONFIG_I440FX=y
CONFIG_PCIE_PORT=y
CONFIG_PCI_DEVICES=n
CONFIG_Q35=y
CONFIG_VIRTIO=y
CONFIG_VIRTIO_BLK=y
CONFIG_VIRTIO_PCI=y
CONFIG_VIRTIO_RDMA=y
