# SPDX-License-Identifier: GPL-2.0-or-later
"""guestkit: Debian guests on a QEMU of this project, driven from the host.

The command vrdma-lab and the project's tests use it. Each module imports only
modules that this list has before it.

paths      where things are
arch       architectures of guests
packages   Debian packages, fetched and unpacked without being installed
suites     Debian's suites, asked by private lists
buildroot  compilers of other suites
foreign    the root of guests of another architecture
kernel     guest kernels: vmlinux, modules, initramfs, header prefixes
driver     building the guest's driver and provider
agent      commands in a guest, and their output
vm         one QEMU process with its QMP and agent channels
adapter    the NIC and the adapter of a guest, and its addresses
stack      an RDMA stack inside a guest: virtio-rdma or rxe
hub        the network of more than two guests
diskread   reading a disk image, which may be hostile
disks      disk images, and what is in them
diskboot   guests that boot from disk images
diskpackages  packages that such guests are to have

inside/ has what runs in guests.
"""
