# SPDX-License-Identifier: GPL-2.0-or-later
"""guestkit: Debian guests on a QEMU of this project, driven from the host.

The command vrdma-lab and the project's tests use it. Each module imports only
modules that come earlier in this list.

paths      paths of sources and built files
arch       architectures of guests
accel      the accelerator of guests: KVM where it works
packages   Debian packages, fetched and unpacked without installation
suites     Debian's suites, queried with private lists
buildroot  compilers of other suites
foreign    the root of guests of another architecture
kernel     guest kernels: vmlinux, modules, initramfs, headers
driver     build of the guest's driver and provider
source     the source of Debian's kernels
pvrdma     build of Linux's driver of pvrdma
agent      commands in a guest, and their output
vm         one QEMU process with its QMP and agent channels
adapter    the NIC and the adapter of a guest, and its addresses
stack      an RDMA stack inside a guest: virtio-rdma, pvrdma or rxe
hub        the network of more than two guests
diskread   reads a disk image, which may be hostile
disks      formats and contents of disk images
diskboot   guests that boot from disk images
diskpackages  packages to install in such guests
providers  the provider for such guests

Programs in inside/ run in guests.
"""
