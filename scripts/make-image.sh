#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# make-image.sh SUITE FILE [PACKAGE...]: as root, make a disk image like
# Debian's for clouds: GPT with an EFI partition and an ext4 root, Debian's
# kernel, systemd, cloud-init, and the given packages. It has no boot loader,
# which the lab does not need. A FILE with the ending .qcow2 is compressed; any
# other is a raw disk. From the environment: B (build directory), PYTHON.
set -euo pipefail
suite=$1 file=$(realpath -m "$2")
shift 2
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-/usr/bin/python3}

[ "$(id -u)" = 0 ] || {
    echo "make-image: needs root to make the system in the image" >&2
    exit 1
}
if [ -z "${FRESH_NAMESPACE:-}" ]; then
    FRESH_NAMESPACE=1 exec unshare --mount --pid --fork --kill-child \
        --mount-proc "$0" "$suite" "$file" "$@"
fi
# shellcheck source=scripts/fresh.sh
. scripts/fresh.sh

MIB=1048576
DISK=3072 ROOT_AT=128       # MiB, as in Debian's
ROOT_SIZE=$((DISK - ROOT_AT - 1))
packages=(systemd systemd-sysv udev dbus linux-image-amd64 cloud-init
          netplan.io openssh-server unattended-upgrades python3 iproute2 kmod
          e2fsprogs procps zstd "$@")

root=$B/fresh/image-$suite disk=$file.$$
mkdir -p "$B/fresh" "${file%/*}"
trap 'rm -f "$disk" "$disk.efi" "$disk.done"' EXIT
make_system "$suite" "$root" ca-certificates
enter "$root" "apt-get update -q && DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends \
    -o Dpkg::Options::=--force-unsafe-io ${packages[*]}"
release "$root"
rm "$root/usr/sbin/policy-rc.d" "$root/etc/resolv.conf"
rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
echo "debian-$suite" > "$root/etc/hostname"
: > "$root/etc/machine-id"
cat > "$root/etc/fstab" <<END
LABEL=root / ext4 rw,discard,errors=remount-ro,x-systemd.growfs 0 1
LABEL=EFI /boot/efi vfat defaults 0 0
END
mkdir -p "$root/boot/efi"

truncate -s "${DISK}M" "$disk"
sfdisk -q "$disk" <<END
label: gpt
1 : start=$((ROOT_AT * 2048)), size=$((ROOT_SIZE * 2048)), type=linux
14 : start=2048, size=6144, type=21686148-6449-6E6F-744E-656564454649
15 : start=8192, size=$((ROOT_AT * 2048 - 8192)), type=uefi
END
truncate -s $((ROOT_AT * MIB - 8192 * 512)) "$disk.efi"
mkfs.vfat -n EFI "$disk.efi" > /dev/null
dd if="$disk.efi" of="$disk" bs=512 seek=8192 conv=notrunc,sparse status=none
mke2fs -q -t ext4 -L root -E "offset=$((ROOT_AT * MIB))" -d "$root" \
    "$disk" "${ROOT_SIZE}M"
case $file in
*.qcow2) qemu-img convert -q -c -O qcow2 "$disk" "$disk.done" ;;
*) mv "$disk" "$disk.done" ;;
esac
mv "$disk.done" "$file"
rm -rf --one-file-system "$root"
