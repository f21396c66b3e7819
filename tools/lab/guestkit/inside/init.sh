#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Process 1 of a lab guest, on an overlay of the host's root or on a foreign
# root (in User-mode Linux after uml.sh). It mounts the file systems that
# programs expect, and runs the agent until that ends.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root TERM=dumb LC_ALL=C

# Read files of /proc instead of starting programs, which takes an emulated
# guest 0.1 s each.
read -r cmdline < /proc/cmdline
arg() { # NAME: set this variable to the last lab.NAME= of the command line
    local last=" $cmdline"
    last=${last##* lab."$1"=}
    [ "$last" != " $cmdline" ] || last=
    printf -v "$1" %s "${last%% *}"
}
name=
for parameter in modules logs name agent; do arg "$parameter"; done

mkdir -p /dev/pts /dev/shm /run /out
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /run
if [ -n "$modules" ]; then
    read -r release < /proc/sys/kernel/osrelease
    mkdir -p "/lib/modules/$release"
    mount --bind "$modules" "/lib/modules/$release"
    [ -n "$logs" ] ||
        mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=none \
            labout /out
fi
modprobe -q configfs && mount -t configfs configfs /sys/kernel/config
echo "$name" > /proc/sys/kernel/hostname
ip link set lo up
ulimit -l unlimited
ulimit -c 0
# Make addresses usable at once: the link has no other machines.
for setting in accept_dad accept_ra; do
    echo 0 > "/proc/sys/net/ipv6/conf/default/$setting"
done
[ -n "$agent" ] || modprobe virtio_console
/usr/bin/python3 -E -S "$(dirname "$0")/agent.py" ${agent:+"$agent"}
echo "lab: agent ended with $?" > /dev/console
busybox poweroff -f
