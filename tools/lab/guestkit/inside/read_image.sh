#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Reads the disk image /dev/vda, in a guest that has no files of the host. This
# script is the end of /init in the guest's initramfs (guestkit/diskread.py).
#
# The script writes records to the disk /dev/vdb, each a line "SIZE NAME" and
# SIZE bytes: os-release, status (dpkg's installed packages), vmlinuz (the
# newest kernel), each module that an initramfs needs for the root, in order,
# facts, and end. A record "error" has the reason of a failure.
#
# The image is hostile. The script mounts it without devices, set-user-ID
# programs and execution. It opens only regular files, inside the image's root.

root=/image
scratch=/tmp/record
modprobe=/sbin/modprobe
blkid=/sbin/blkid

busybox --install -s /bin 2> /dev/null
mkdir -p $root /tmp
until [ -b /dev/vda ] && [ -b /dev/vdb ]; do sleep 0.05; done
exec 3> /dev/vdb

put() {     # NAME: write the scratch file as this record
    echo "$(stat -c %s $scratch) $1" >&3 && cat $scratch >&3
}

finish() {
    : > $scratch
    put end
    exec 3>&-
    sync
    poweroff -f
}

die() {
    echo "$*" > $scratch
    put error
    finish
}

fact() {    # NAME VALUE
    echo "$1=$2" >> /tmp/facts
}

inside() {
    chroot $root /run/busybox "$@"
}

take() {    # RECORD PATH: write a file of the image as this record
    inside test -f "$2" || die "$2 is not a regular file"
    inside head -c $((limit + 1)) "$2" > $scratch || die "cannot read $2"
    [ "$(stat -c %s $scratch)" -le "$limit" ] ||
        die "$2 has more than $limit bytes"
    put "$1"
}

has_system() {
    inside test -e /etc/os-release && inside test -e /sbin &&
        inside test -d /var/lib
}

# Find the root partition and mount it; sets $device and $type.
mount_root() {
    seen=
    set -- /dev/vda?*
    [ -b "$1" ] || set -- /dev/vda
    for device; do
        type=$($blkid -p -o value -s TYPE "$device")
        seen="$seen${seen:+, }${device#/dev/}: ${type:-nothing known}"
        mount -t "${type:-none}" -o ro,nosuid,nodev,noexec "$device" $root \
            2> /dev/null || continue
        # Only busybox runs in there: it needs no libraries.
        if mount -t tmpfs tools $root/run && cp /bin/busybox $root/run/; then
            has_system && return
        fi
        umount $root/run
        umount $root
    done
    die "no partition has the root of a system ($seen). Encrypted disks and" \
        "LVM are not supported"
}

# Print "RELEASE FILE" of kernels with modules.
kernels() {
    # shellcheck disable=SC2016 # its own variables
    inside sh -c '
        for dep in /usr/lib/modules/*/modules.dep /lib/modules/*/modules.dep
        do
            at=${dep%/*}
            release=${at##*/}
            case $release in [!0-9]* | *[!A-Za-z0-9.+~-]*) continue ;; esac
            for file in "/boot/vmlinuz-$release" "$at/vmlinuz"; do
                [ ! -f "$file" ] || echo "$release $file"
            done
        done'
}

needs() {   # MODULE: print the files of it and its dependencies, in order
    $modprobe -d $root -S "$release" --show-depends "$1" > /tmp/shown \
        2> /dev/null && sed -n "s|^insmod $root\([^ ]*\).*|\1|p" /tmp/shown
}

take_kernel() {
    limit=$((64 << 20))
    take vmlinuz "$file"
    for module in virtio_pci virtio_blk "$type"; do
        needs "$module" >> /tmp/needed ||
            die "its kernel $release has no $module"
    done
    limit=$((16 << 20))
    awk '!seen[$0]++' /tmp/needed > /tmp/files
    while read -r path; do
        take module "$path"
    done < /tmp/files
}

mount_root
fact device "$device"
fact type "$type"
for path in /usr/lib/systemd/systemd /lib/systemd/systemd; do
    ! inside test -e $path || fact systemd yes
done
! inside test -e /usr/bin/python3 || fact python yes

limit=65536
take os-release /etc/os-release
limit=$((64 << 20))
! inside test -e /var/lib/dpkg/status || take status /var/lib/dpkg/status

kernels | sort -r -V | head -n 1 > /tmp/newest
if read -r release file < /tmp/newest; then
    fact release "$release"
    ! { needs ib_uverbs && needs rdma_ucm; } > /dev/null || fact rdma yes
    take_kernel
fi
mv /tmp/facts $scratch
put facts
finish
