/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The connection to the front end. One front end is connected at a time. When
 * its connection ends, the server resets the device and accepts the next one.
 *
 * QEMU's util/vhost-user-server.c does not fit. It aborts if a client passes a
 * file descriptor that cannot be made non-blocking, loses descriptors of a
 * message that has too many, and spins if the client reads no replies.
 */
#include "qemu/osdep.h"
#include "hw/core/qdev.h"
#include "io/channel-socket.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/main-loop.h"
#include "qemu/timer.h"
#include "server.h"

/* Version 1 of the protocol, and the bit of a reply */
#define FLAGS_REPLY (1 | 4)
#define FLAGS_NOTIFY 1
#define BACKEND_CONFIG_CHANGE 2

/*
 * Headers and bodies that one iteration of the main loop reads: enough to start
 * all rings, each of which needs up to ten messages with a body.
 */
#define TURN_PARTS (20 * VUS_MAX_RINGS)
/* Time that they take. Changes of memory are slow. */
#define TURN_NS (100 * SCALE_MS)

static void on_connect(QIONetListener *listener, QIOChannelSocket *client,
                       gpointer opaque);

static void close_fds(VusMessage *msg)
{
    for (uint32_t i = 0; i < msg->nfds; i++) {
        if (msg->fds[i] >= 0) {
            close(msg->fds[i]);
        }
    }
    msg->nfds = 0;
}

static void disconnect(VhostUserServer *s)
{
    if (!s->client) {
        return;
    }
    qemu_set_fd_handler(s->client->fd, NULL, NULL, NULL);
    vus_run_stop(s);
    vus_reset(s);
    vus_rings_clear(s);
    vus_fd_close(&s->backend_fd);
    vus_state_close(s);
    vus_log_clear(s);
    vus_memory_clear(s);
    close_fds(&s->msg);
    s->received = 0;
    s->features = 0;
    s->protocol_features = 0;
    object_unref(s->client);
    s->client = NULL;
    if (s->listener) {
        qio_net_listener_set_client_func(s->listener, on_connect, s, NULL);
    }
}

/* Never waits: a front end that reads its replies leaves room for them. */
static bool send_reply(VhostUserServer *s, Error **errp)
{
    VusMessage *msg = &s->msg;
    struct iovec parts[] = {
        { &msg->header, sizeof(msg->header) },
        { &msg->body, msg->header.size },
    };
    struct msghdr hdr = { .msg_iov = parts, .msg_iovlen = 2 };
    union {
        struct cmsghdr header;
        uint8_t room[CMSG_SPACE(sizeof(int))];
    } control = {
        .header = {
            .cmsg_len = CMSG_LEN(sizeof(int)),
            .cmsg_level = SOL_SOCKET,
            .cmsg_type = SCM_RIGHTS,
        },
    };

    if (msg->reply_fd >= 0) {
        memcpy(CMSG_DATA(&control.header), &msg->reply_fd, sizeof(int));
        hdr.msg_control = &control;
        hdr.msg_controllen = sizeof(control);
    }
    msg->header.flags = FLAGS_REPLY;
    if (sendmsg(s->client->fd, &hdr, MSG_DONTWAIT | MSG_NOSIGNAL) !=
        sizeof(msg->header) + msg->header.size) {
        error_setg(errp, "the front end does not read replies");
        return false;
    }
    return true;
}

/*
 * Refuse a socket by which the connection could outlive the front end. If the
 * server holds the front end's own end, it never sees a hang-up, and accepts no
 * other front end. That end may be in the queue of another socket, also of one
 * that listens later. A connected socket cannot listen.
 */
static bool check_fd(VhostUserServer *s, int fd, Error **errp)
{
    struct sockaddr_storage peer;
    socklen_t peer_len = sizeof(peer);
    int type = 0;
    socklen_t type_len = sizeof(type);
    uint8_t queued[256];
    ssize_t n;
    struct stat st;

    if (fstat(fd, &st) < 0 || !S_ISSOCK(st.st_mode)) {
        return true;
    }
    if (getpeername(fd, (struct sockaddr *)&peer, &peer_len) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) < 0 ||
        type != SOCK_STREAM || shutdown(fd, SHUT_RD) < 0) {
        error_setg(errp, "a file descriptor is a socket, but not a connected "
                   "stream");
        return false;
    }
    /* recv() closes descriptors in the queue. SHUT_RD lets nothing follow. */
    do {
        n = recv(fd, queued, sizeof(queued), MSG_DONTWAIT);
    } while (n > 0);
    /* SHUT_RD of the front end's own end makes writes to it fail. */
    if (send(s->client->fd, "", 0, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
        error_setg_errno(errp, errno, "cannot write to the front end after it "
                         "passed a socket, which may be its own end of the "
                         "connection");
        return false;
    }
    return true;
}

static bool check_fds(VhostUserServer *s, const int *fds, size_t n,
                      Error **errp)
{
    for (size_t i = 0; i < n; i++) {
        if (!check_fd(s, fds[i], errp)) {
            return false;
        }
    }
    return true;
}

static bool keep_fds(VusMessage *msg, int *fds, size_t n, Error **errp)
{
    bool fits = n <= VUS_MAX_FDS - msg->nfds;

    for (size_t i = 0; i < n; i++) {
        if (fits) {
            msg->fds[msg->nfds++] = fds[i];
        } else {
            close(fds[i]);
        }
    }
    g_free(fds);
    if (!fits) {
        error_setg(errp, "a message has more than %d file descriptors",
                   VUS_MAX_FDS);
    }
    return fits;
}

/*
 * Read more of the header, then more of the body. Returns the number of bytes,
 * 0 at the end of the connection, QIO_CHANNEL_ERR_BLOCK, or -1.
 */
static ssize_t read_part(VhostUserServer *s, Error **errp)
{
    VusMessage *msg = &s->msg;
    const size_t head = sizeof(msg->header);
    struct iovec iov;
    int *fds = NULL;
    size_t nfds = 0;
    ssize_t ret;

    if (s->received < head) {
        iov.iov_base = (uint8_t *)&msg->header + s->received;
        iov.iov_len = head - s->received;
    } else {
        iov.iov_base = (uint8_t *)&msg->body + (s->received - head);
        iov.iov_len = head + msg->header.size - s->received;
    }
    ret = qio_channel_readv_full(QIO_CHANNEL(s->client), &iov, 1, &fds, &nfds,
                                 0, errp);
    if (ret > 0) {
        s->received += ret;
        if (!keep_fds(msg, fds, nfds, errp) ||
            !check_fds(s, msg->fds + (msg->nfds - nfds), nfds, errp)) {
            return -1;
        }
    }
    return ret;
}

static bool is_complete(const VhostUserServer *s)
{
    return s->received == sizeof(VusHeader) + s->msg.header.size;
}

/*
 * Read a part of a message. Execute the message when it is complete. Returns 1
 * after a part, 0 if nothing has arrived, -1 if the connection has to end.
 */
static int receive(VhostUserServer *s, Error **errp)
{
    ssize_t ret = read_part(s, errp);
    bool ok;

    if (ret == QIO_CHANNEL_ERR_BLOCK) {
        return 0;
    }
    if (ret <= 0) {
        return -1;
    }
    if (s->received == sizeof(VusHeader) && !vus_message_check(&s->msg, errp)) {
        return -1;
    }
    if (s->received < sizeof(VusHeader) || !is_complete(s)) {
        return 1;
    }
    s->received = 0;
    ok = vus_message_execute(s, &s->msg, errp) &&
         (!s->msg.reply || send_reply(s, errp));
    close_fds(&s->msg);
    return ok ? 1 : -1;
}

void vus_socket_run(VhostUserServer *s)
{
    int64_t end = get_clock() + TURN_NS;
    Error *err = NULL;
    int ret = 1;

    for (int i = 0; i < TURN_PARTS && s->client && ret > 0 &&
         get_clock() < end; i++) {
        ret = receive(s, &err);
    }
    if (ret < 0) {
        if (err) {
            error_reportf_err(err, "%s: disconnecting the front end: ",
                              s->path);
        }
        disconnect(s);
    }
}

static void on_readable(void *opaque)
{
    vus_socket_run(opaque);
}

static void on_connect(QIONetListener *listener, QIOChannelSocket *client,
                       gpointer opaque)
{
    VhostUserServer *s = opaque;

    /* Other front ends wait in the backlog of the listening socket. */
    qio_net_listener_set_client_func(s->listener, NULL, NULL, NULL);
    s->client = client;
    object_ref(client);
    qio_channel_set_blocking(QIO_CHANNEL(client), false, NULL);
    qemu_set_fd_handler(client->fd, on_readable, NULL, s);
}

bool vus_socket_listen(VhostUserServer *s, Error **errp)
{
    SocketAddress address = {
        .type = SOCKET_ADDRESS_TYPE_UNIX,
        .u.q_unix.path = s->path,
    };

    s->listener = qio_net_listener_new();
    if (qio_net_listener_open_sync(s->listener, &address, 1, errp) < 0) {
        object_unref(s->listener);
        s->listener = NULL;
        return false;
    }
    qio_net_listener_set_client_func(s->listener, on_connect, s, NULL);
    return true;
}

void vus_socket_close(VhostUserServer *s)
{
    QIONetListener *listener = s->listener;

    s->listener = NULL;
    if (listener) {
        qio_net_listener_disconnect(listener);
        object_unref(listener);
    }
    disconnect(s);
}

void vus_socket_notify_config(VhostUserServer *s)
{
    VusHeader header = {
        .request = BACKEND_CONFIG_CHANGE,
        .flags = FLAGS_NOTIFY,
    };

    /* Without room, an earlier notification is still unread, and suffices. */
    if (s->backend_fd >= 0) {
        send(s->backend_fd, &header, sizeof(header),
             MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}
