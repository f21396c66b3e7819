/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * System calls for datagrams. This library is preloaded into QEMU. Test
 * programs link to it, too, to count the calls and to make one fail.
 */
#include "qemu/osdep.h"
#include <dlfcn.h>
#include "qemu/atomic.h"
#include "net-calls.h"

static NetCalls *shared;
static char *path;

static NetCalls *map(int fd)
{
    void *at = mmap(NULL, sizeof(NetCalls), PROT_READ | PROT_WRITE,
                    MAP_SHARED, fd, 0);

    return at == MAP_FAILED ? NULL : at;
}

/* In QEMU */

static void __attribute__((constructor)) find_wish(void)
{
    const char *name = getenv(NET_CALLS_ENV);
    int fd = name ? open(name, O_RDWR | O_CLOEXEC) : -1;

    if (fd >= 0) {
        shared = map(fd);
        close(fd);
    }
}

/* Like the kernel, report an error only if nothing was sent before it. */
int sendmmsg(int fd, struct mmsghdr *msgs, unsigned int n, int flags)
{
    int (*real)(int, struct mmsghdr *, unsigned int, int) =
        dlsym(RTLD_NEXT, "sendmmsg");
    uint32_t error, left;
    int sent;

    if (!shared) {
        return real(fd, msgs, n, flags);
    }
    qatomic_inc(&shared->sends);
    error = qatomic_read(&shared->fail_error);
    left = qatomic_read(&shared->fail_after) -
           qatomic_read(&shared->frames_sent);
    if (error && !left) {
        qatomic_set(&shared->fail_error, 0);
        errno = error;
        return -1;
    }
    sent = real(fd, msgs, error ? MIN(n, left) : n, flags);
    if (sent > 0) {
        qatomic_add(&shared->frames_sent, sent);
    }
    return sent;
}

int recvmmsg(int fd, struct mmsghdr *msgs, unsigned int n, int flags,
             struct timespec *timeout)
{
    int (*real)(int, struct mmsghdr *, unsigned int, int, struct timespec *) =
        dlsym(RTLD_NEXT, "recvmmsg");
    int received = real(fd, msgs, n, flags, timeout);

    if (shared && received > 0) {
        qatomic_inc(&shared->recvs);
        qatomic_add(&shared->frames_received, received);
    }
    return received;
}

/* In the test */

NetCalls *net_calls_begin(void)
{
    const char *asan = getenv("ASAN_OPTIONS");
    g_autofree char *options = NULL;
    Dl_info info;
    int fd;

    fd = g_file_open_tmp("virtio-rdma-XXXXXX", &path, NULL);
    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(ftruncate(fd, sizeof(NetCalls)), ==, 0);
    shared = map(fd);
    g_assert_nonnull(shared);
    close(fd);
    /* ASan insists on being the first library without this option */
    options = g_strdup_printf("%s%sverify_asan_link_order=0", asan ?: "",
                              asan ? ":" : "");
    g_assert_cmpint(dladdr(net_calls_begin, &info), !=, 0);
    g_setenv("ASAN_OPTIONS", options, true);
    g_setenv("LD_PRELOAD", info.dli_fname, true);
    g_setenv(NET_CALLS_ENV, path, true);
    return shared;
}

void net_calls_end(void)
{
    g_unsetenv("LD_PRELOAD");
    g_unsetenv(NET_CALLS_ENV);
    unlink(path);
    g_clear_pointer(&path, g_free);
    munmap(shared, sizeof(*shared));
    shared = NULL;
}

void net_calls_reset(uint32_t after, uint32_t error)
{
    qatomic_set(&shared->fail_error, 0);
    qatomic_set(&shared->sends, 0);
    qatomic_set(&shared->recvs, 0);
    qatomic_set(&shared->frames_sent, 0);
    qatomic_set(&shared->frames_received, 0);
    qatomic_set(&shared->fail_after, after);
    qatomic_set(&shared->fail_error, error);
}
