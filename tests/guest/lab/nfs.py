# SPDX-License-Identifier: GPL-2.0-or-later
"""NFS over RDMA between two guests. The tests write to the kernel's caches
what the daemons of nfs-kernel-server would answer, so they need none of its
programs."""

PORT = 20049
ROOT = '/srv/nfs'
CLIENT = 'lab'
FOREVER = 0x7fffffff
# Any client port, no subtree check, a given fsid; root stays root.
FLAGS = 0x2 | 0x400 | 0x2000
NOBODY = 65534


def export(vm, clients):
    """Export a file system in memory to clients with these addresses."""
    mapped = '\n'.join(
        f'echo "nfsd {client} {FOREVER} {CLIENT}" > auth.unix.ip/channel'
        for client in clients)
    vm.must(f'''set -e
mkdir -p {ROOT} /var/lib/nfs/v4recovery
mount -t tmpfs -o size=512M tmpfs {ROOT}
modprobe -a nfsd rpcrdma
mount -t nfsd nfsd /proc/fs/nfsd
cd /proc/net/rpc
{mapped}
echo "{CLIENT} {ROOT} {FOREVER} {FLAGS} {NOBODY} {NOBODY} 0" \
    > nfsd.export/channel
echo "{CLIENT} 1 \\\\x00000000 {FOREVER} {ROOT}" > nfsd.fh/channel
cd /proc/fs/nfsd
echo "-2 -3 +4 +4.1 +4.2" > versions
echo "rdma {PORT}" > portlist
echo 4 > threads
echo Y > v4_end_grace''')


def withdraw(vm):
    vm.must(f'''set -e
echo 0 > /proc/fs/nfsd/threads
for cache in nfsd.export nfsd.fh auth.unix.ip; do
    echo $(($(date +%s) + 2)) > /proc/net/rpc/$cache/flush
done
umount /proc/fs/nfsd {ROOT}''')


def mount(vm, server, own, version='4.2'):
    vm.must('modprobe -a nfsv4 rpcrdma')
    host = f'[{server}]' if ':' in server else server
    vm.must('mount -i -t nfs4 '
            f'-o addr={server},clientaddr={own},vers={version},'
            f'proto=rdma{6 if ":" in server else ""},port={PORT} '
            f'{host}:/ /mnt')


def unmount(vm):
    vm.must('umount /mnt')


def unload(vm):
    """Unload the modules of the server and the client, if loaded."""
    vm.must('''modprobe -r nfsd nfsv4 nfs rpcrdma
! lsmod | grep -E '^(nfsd|nfs|rpcrdma) ' ''')
