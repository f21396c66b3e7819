# SPDX-License-Identifier: GPL-2.0-or-later
"""vrdma-lab: guests on one network, each with an RDMA adapter, for programs of
users.

place     the directory of a lab, and the lock that its keeper holds
plan      the options of a lab, and checks that all files they need exist
installed files of a lab from Debian packages instead of a source tree
images    disk images that guests boot from, and the files that they need
guests    a guest of a lab
diskguest a guest that boots from a disk image
taps      taps of guests on a bridge of this machine
network   the network of a lab: hub, captures, impairments
keeper    the background process of a lab
session   commands and shells in guests, for a client
client    a connection to the keeper, and its output on a terminal
top       rates of all adapters
cli       the command line

A lab is up while its keeper runs; guests and hub end with the keeper. The
package guestkit boots the guests, also for the project's tests.
"""
