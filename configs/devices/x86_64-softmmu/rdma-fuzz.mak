# SPDX-License-Identifier: GPL-2.0-or-later
#
# Devices of the QEMU that `make fuzz` builds: the machine, the device, and
# what a guest can reach through it.

CONFIG_Q35=y
CONFIG_PCI_DEVICES=n
CONFIG_PCIE_PORT=y
CONFIG_VIRTIO=y
CONFIG_VIRTIO_PCI=y
CONFIG_VIRTIO_RDMA=y
CONFIG_PVRDMA=y
CONFIG_MULTIPROCESS=y
CONFIG_VFIO_USER_SERVER=y
CONFIG_VHOST_USER_SERVER=y
CONFIG_VIRTIO_BLK=y
CONFIG_VIRTIO_IOMMU=y
