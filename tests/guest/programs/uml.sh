#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Process 1 of User-mode Linux: an overlay of the host's root, which is
# mounted read-only, and the NIC under the name that guests have for theirs.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mount -t proc proc /proc
arg() { sed -n "s|.*\blab\.$1=\([^ ]*\).*|\1|p" /proc/cmdline; }
logs=$(arg logs)
root=/mnt/root

mount -t tmpfs -o mode=755 tmpfs /mnt
mkdir /mnt/up /mnt/wk $root
mount -t overlay -o lowerdir=/,upperdir=/mnt/up,workdir=/mnt/wk overlay $root
mount -t proc proc $root/proc
mount -t sysfs sys $root/sys
mount -t devtmpfs dev $root/dev
mkdir -p "$root$logs" $root/out
mount -t hostfs -o "$logs" logs "$root$logs"
mount --bind "$root$logs/$(arg name)" $root/out
# perftest looks up the clock of the processor
mount --bind $root/out/cpuinfo $root/proc/cpuinfo
ip link set vec0 name eth0
exec chroot $root /bin/bash "$(arg init)"
