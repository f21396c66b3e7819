# SPDX-License-Identifier: GPL-2.0-or-later
"""vrdma-lab: guests with an RDMA adapter each on one network, for programs
of users.

place     the directory of a lab that is up, and who keeps it
plan      what a lab is to be, and whether all that it needs is there
installed what a lab takes from Debian packages, not from a source tree
images    disk images that guests boot from, and what these need
guests    one guest, as booted for a lab
diskguest one that boots from a disk image
taps      ends of guests on a bridge of this machine
network   the hub between them: captures, and links that are bad on purpose
keeper    the process in the background that a lab belongs to
session   commands and shells in guests, on behalf of a client
client    a connection to the keeper, and what it says on a terminal
cli       the command line

A lab is up as long as its keeper runs: guests and hub end when it does.
The package guestkit boots the guests, for tests of the project as well.
"""
