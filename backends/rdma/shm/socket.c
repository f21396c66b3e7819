/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sockets by which ports of a host meet.
 */
#include "qemu/osdep.h"
#include "net/net.h"
#include "qemu/bswap.h"
#include "socket.h"

/* The receiver's first message, with the descriptor of the ring's memory */
typedef struct Welcome {
    char magic[8];
    uint32_t version;
} Welcome;

static const Welcome welcome = {
    .magic = { 'V', 'R', 'D', 'M', 'A', 'S', 'H', 'M' },
    .version = const_le32(1),
};

char *rdma_roce_shm_socket_path(const char *dir, const uint8_t *mac)
{
    return g_strdup_printf("%s/" MAC_FMT, dir, mac[0], mac[1], mac[2], mac[3],
                           mac[4], mac[5]);
}

void rdma_roce_shm_set_address(struct sockaddr_un *un, const char *path)
{
    *un = (struct sockaddr_un) { .sun_family = AF_UNIX };
    g_strlcpy(un->sun_path, path, sizeof(un->sun_path));
}

int rdma_roce_shm_new_socket(void)
{
    return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

int rdma_roce_shm_receive_welcome(int fd)
{
    char control[CMSG_SPACE(sizeof(int))] QEMU_ALIGNED(8);
    Welcome got;
    struct iovec iov = { .iov_base = &got, .iov_len = sizeof(got) };
    struct msghdr msg = {
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control,
        /* Without room for a second descriptor, which would stay open */
        .msg_controllen = CMSG_LEN(sizeof(int)),
    };
    ssize_t len = recvmsg(fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct cmsghdr *cmsg = len < 0 ? NULL : CMSG_FIRSTHDR(&msg);
    int memory = -1;

    if (cmsg && cmsg->cmsg_level == SOL_SOCKET &&
        cmsg->cmsg_type == SCM_RIGHTS &&
        cmsg->cmsg_len == CMSG_LEN(sizeof(int))) {
        memcpy(&memory, CMSG_DATA(cmsg), sizeof(memory));
    }
    if (len != sizeof(got) || (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ||
        memcmp(&got, &welcome, sizeof(got))) {
        if (memory >= 0) {
            close(memory);
        }
        return -1;
    }
    return memory;
}

bool rdma_roce_shm_send_welcome(int fd, int memory)
{
    char control[CMSG_SPACE(sizeof(int))] QEMU_ALIGNED(8) = { };
    struct iovec iov = {
        .iov_base = (void *)&welcome,
        .iov_len = sizeof(welcome),
    };
    struct msghdr msg = {
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof(control),
    };
    struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

    cmsg->cmsg_level = SOL_SOCKET;
    cmsg->cmsg_type = SCM_RIGHTS;
    cmsg->cmsg_len = CMSG_LEN(sizeof(memory));
    memcpy(CMSG_DATA(cmsg), &memory, sizeof(memory));
    return sendmsg(fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(welcome);
}

void rdma_roce_shm_wake(int fd)
{
    /* A full socket holds a wake-up already. The end of it is an event. */
    (void)!send(fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool rdma_roce_shm_drain(int fd)
{
    char buf[16];
    ssize_t len = recv(fd, buf, sizeof(buf), MSG_DONTWAIT);

    return len > 0 || (len < 0 && (errno == EAGAIN || errno == EINTR));
}
