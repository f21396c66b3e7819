#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Process 1 of a lab guest, on an overlay of the host's root or on a root of
# its own (uml.sh goes before it in User-mode Linux): mounts what programs
# expect, then runs the agent until it ends.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root TERM=dumb LC_ALL=C

arg() { sed -n "s|.*\blab\.$1=\([^ ]*\).*|\1|p" /proc/cmdline; }

mkdir -p /dev/pts /dev/shm /run /out
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /run
modules=$(arg modules)
if [ -n "$modules" ]; then
    release=$(uname -r)
    mkdir -p "/lib/modules/$release"
    mount --bind "$modules" "/lib/modules/$release"
    [ -n "$(arg logs)" ] ||
        mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=none \
            labout /out
fi
modprobe -q configfs && mount -t configfs configfs /sys/kernel/config
hostname "$(arg name)"
ip link set lo up
ulimit -l unlimited
ulimit -c 0
# Addresses are usable at once: nobody else is on the link.
sysctl -qw net.ipv6.conf.default.accept_dad=0 \
    net.ipv6.conf.default.accept_ra=0
agent=$(arg agent)
[ -n "$agent" ] || modprobe virtio_console
/usr/bin/python3 -E -s "$(dirname "$0")/agent.py" ${agent:+"$agent"}
echo "lab: agent ended with $?" > /dev/console
busybox poweroff -f
