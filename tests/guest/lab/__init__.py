# SPDX-License-Identifier: GPL-2.0-or-later
"""The machinery of guest tests. guestkit (tools/lab) boots the guests.

places     where tests have their sources, and where results go
uml        User-mode Linux: a host with rxe
nested     a guest of User-mode Linux, with a peer of its host
qtests     the device's tests in a host with an RDMA device
cannot     which of these cannot pass there, and why
pair       two guests on one link
hosts      network namespaces as hosts, and guests on them
openvswitch  Debian's Open vSwitch on such hosts
moving     guests that migrate
image      the root of such guests
hotplug    the adapter comes and goes
verified   traffic that is verified while something happens
lanes      traffic that goes on until it is told to end
soak       trouble of all kinds during traffic
pvrdma     guests with pvrdma
builds     building the broken device, and rdma-core's libibverbs
programs   building the tests' programs; running a server with a client
stock      programs of rdma-core and perftest between the guests of a bench
perftest   the perftest matrix and its output formats
interop    the table of virtio-rdma with rxe
calls      how many system calls QEMUs make
capture    what tshark has to say about a capture file
pvrdmabench  pvrdma beside virtio-rdma
demo       the comparison that `make demo` shows
pyverbs    rdma-core's own tests on either stack
storage    data that goes to another guest's disk and comes back
nvme, nfs, iser, srp  kernel users of RDMA: both ends of each
scsi       the disk of the kernel's SCSI target
pages      scripts and programs that pages of docs show
vfiouser   a client that may break the protocol
vmm        Debian's own QEMU, with devices of virtio-rdma-server
vmmbench   adapters of virtio-rdma-server beside those in QEMU
movingserved  guests that migrate, with adapters of vhost-user servers
libvirt    Debian's libvirt in session mode, and its guests
userlab    the command vrdma-lab, as users call it
testimages disk images for tests, and labs with them
travel     what guests do while they migrate, in tests
leaks      memory that a guest's kernel and its QEMU use
runner     the tests of `make check-guest`, and suites that CI does not run
"""
