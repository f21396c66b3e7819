/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The double of libibumad, see fake-ibumad.h.
 */
#include "qemu/osdep.h"
#include <infiniband/umad.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "fake-ibumad.h"

static char *path_of(const char *name)
{
    const char *dir = g_getenv(FAKE_IBUMAD_DIR);

    return dir ? g_build_filename(dir, name, NULL) : NULL;
}

/* The errno with which @name must fail, or 0 */
static int scripted(const char *name)
{
    g_autofree char *path = path_of(name);
    g_autofree char *text = NULL;

    return path && g_file_get_contents(path, &text, NULL, NULL) ? atoi(text)
                                                                : 0;
}

int umad_open_port(const char *ca_name, int portnum)
{
    g_autofree char *path = path_of(FAKE_IBUMAD_PORT);
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int fd;

    if (!path) {
        errno = ENODEV;
        return -ENODEV;
    }
    g_strlcpy(addr.sun_path, path, sizeof(addr.sun_path));
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&addr, sizeof(addr))) {
        close(fd);
        errno = ENODEV;
        return -ENODEV;
    }
    return fd;
}

int umad_close_port(int portid)
{
    return close(portid);
}

int umad_get_fd(int portid)
{
    return portid;
}

size_t umad_size(void)
{
    return sizeof(struct ib_user_mad);
}

int umad_status(void *umad)
{
    return ((struct ib_user_mad *)umad)->status;
}

/* Accept only the class of the connection manager, with its only method. */
int umad_register2(int port_fd, struct umad_reg_attr *attr,
                   uint32_t *agent_id)
{
    bool good = attr->mgmt_class == 7 && attr->mgmt_class_version == 2 &&
        !attr->flags && !attr->rmpp_version && !attr->method_mask[1] &&
        attr->method_mask[0] == 1 << 3;

    *agent_id = 5;
    return good ? scripted("register2") : EPROTO;
}

int umad_send(int portid, int agentid, void *umad, int length, int timeout_ms,
              int retries)
{
    struct ib_user_mad *mad = umad;
    int err = scripted("send");

    if (err || agentid != 5) {
        errno = err ?: EINVAL;
        return -EIO;
    }
    mad->agent_id = agentid;
    mad->timeout_ms = timeout_ms;
    mad->retries = retries;
    return send(portid, umad, umad_size() + length, MSG_NOSIGNAL) < 0 ? -EIO
                                                                      : 0;
}

int umad_recv(int portid, void *umad, int *length, int timeout_ms)
{
    ssize_t n = recv(portid, umad, umad_size() + *length, 0);

    if (n <= 0) {
        errno = n ? errno : ENODEV;
        return -errno;
    }
    *length = n - umad_size();
    return ((struct ib_user_mad *)umad)->agent_id;
}
