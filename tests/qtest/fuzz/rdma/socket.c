/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Clients of a server in QEMU's own process, which works when the main loop
 * runs.
 */
#include "qemu/osdep.h"
#include "rdma-fuzz.h"

int fuzz_connect(const char *path)
{
    struct sockaddr_un un = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    g_strlcpy(un.sun_path, path, sizeof(un.sun_path));
    g_assert_cmpint(connect(fd, (struct sockaddr *)&un, sizeof(un)), ==, 0);
    return fd;
}

void fuzz_send_message(int fd, const void *data, size_t len, const int *fds,
                       unsigned n)
{
    char control[CMSG_SPACE(FUZZ_MAX_FDS * sizeof(int))]
        __attribute__((aligned(8))) = {};
    struct iovec iov = { .iov_base = (void *)data, .iov_len = len };
    struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
    struct cmsghdr *cmsg;

    if (n) {
        msg.msg_control = control;
        msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
        cmsg = CMSG_FIRSTHDR(&msg);
        cmsg->cmsg_level = SOL_SOCKET;
        cmsg->cmsg_type = SCM_RIGHTS;
        cmsg->cmsg_len = CMSG_LEN(n * sizeof(int));
        memcpy(CMSG_DATA(cmsg), fds, n * sizeof(int));
    }
    (void)!sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
    fuzz_settle();
}

void fuzz_drain(int fd, void *reply, size_t size)
{
    uint8_t data[4096];
    ssize_t n;

    fuzz_settle();
    while ((n = recv(fd, data, sizeof(data), MSG_DONTWAIT)) > 0) {
        if (reply) {
            memcpy(reply, data, MIN(n, size));
            reply = NULL;
        }
    }
}
