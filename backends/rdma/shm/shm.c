/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames by shared memory: a port, and how ports of a host find each other.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "int.h"
#include "socket.h"
#include "../trace.h"

bool rdma_roce_shm_check_dir(const char *dir, Error **errp)
{
    static const uint8_t mac[6];
    g_autofree char *path = rdma_roce_shm_socket_path(dir, mac);
    struct sockaddr_un un;

    if (strlen(path) >= sizeof(un.sun_path)) {
        error_setg(errp, "'%s' is too long for sockets in it: take a directory "
                   "whose path has at most %zu bytes", dir,
                   sizeof(un.sun_path) - 1 - (strlen(path) - strlen(dir)));
        return false;
    }
    if (!g_file_test(dir, G_FILE_TEST_IS_DIR)) {
        error_setg(errp, "'%s' is not a directory: make one for all guests of "
                   "the network", dir);
        return false;
    }
    return true;
}

/* Warn once, as the problem may persist. */
static void shm_warn(RdmaRoceShm *shm, const char *what, const char *path,
                     const char *why)
{
    if (!shm->warned) {
        shm->warned = true;
        warn_report("rdma-roce: cannot %s at '%s': %s; frames of this host "
                    "take the netdev", what, path, why);
    }
}

static void accept_one(RdmaRoceShm *shm)
{
    int fd = accept4(shm->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0) {
        if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
            /* Out of descriptors or memory: the event would repeat at once. */
            shm_warn(shm, "accept", shm->path, strerror(errno));
            rdma_roce_shm_set_handler(shm, shm->fd, NULL, NULL);
            timer_mod(shm->listen_again,
                      rdma_roce_shm_now() + ROCE_SHM_RETRY_MS);
        }
        return;
    }
    rdma_roce_shm_inbox_new(shm, fd);
}

static void shm_accept(void *opaque)
{
    RdmaRoceShm *shm = opaque;

    if (!rdma_roce_shm_enter(shm, &shm->fd, &shm->waits)) {
        return;
    }
    if (shm->fd >= 0) {
        accept_one(shm);
    }
    shm->ops->leave(shm->opaque);
}

static void shm_listen_again(void *opaque)
{
    RdmaRoceShm *shm = opaque;

    if (!shm->ops->enter(shm->opaque)) {
        timer_mod(shm->listen_again, rdma_roce_shm_now() + ROCE_SHM_RETRY_MS);
        return;
    }
    if (shm->fd >= 0) {
        rdma_roce_shm_set_handler(shm, shm->fd, shm_accept, shm);
    }
    shm->ops->leave(shm->opaque);
}

/* Events that wait for the lock */

static void listen_retry(RdmaRoceShm *shm)
{
    if (rdma_roce_shm_stop_waiting(&shm->waits) && shm->fd >= 0 &&
        !timer_pending(shm->listen_again)) {
        rdma_roce_shm_set_handler(shm, shm->fd, shm_accept, shm);
    }
}

void rdma_roce_shm_retry(RdmaRoceShm *shm)
{
    GHashTableIter iter;
    void *ob;

    if (rdma_roce_shm_stop_waiting(&shm->any_waits)) {
        listen_retry(shm);
        rdma_roce_shm_inboxes_retry(shm);
        g_hash_table_iter_init(&iter, shm->outboxes);
        while (g_hash_table_iter_next(&iter, NULL, &ob)) {
            rdma_roce_shm_outbox_retry(ob);
        }
    }
}

/* The port */

RdmaRoceShm *rdma_roce_shm_new(const char *dir, AioContext *ctx,
                               uint32_t poll_max, const RdmaRoceShmOps *ops,
                               void *opaque)
{
    RdmaRoceShm *shm = g_new0(RdmaRoceShm, 1);

    shm->dir = g_strdup(dir);
    shm->ctx = ctx;
    shm->poll_max = poll_max;
    shm->ops = ops;
    shm->opaque = opaque;
    shm->fd = -1;
    shm->listen_again = rdma_roce_shm_timer_new(shm, shm_listen_again, shm);
    shm->outboxes = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL,
                                          rdma_roce_shm_outbox_free);
    QSIMPLEQ_INIT(&shm->to_wake);
    shm->inboxes = g_ptr_array_new_with_free_func(rdma_roce_shm_inbox_free);
    return shm;
}

void rdma_roce_shm_free(RdmaRoceShm *shm)
{
    if (shm) {
        rdma_roce_shm_close(shm);
        g_hash_table_unref(shm->outboxes);
        g_ptr_array_unref(shm->inboxes);
        timer_free(shm->listen_again);
        g_free(shm->dir);
        g_free(shm);
    }
}

/*
 * Remove a stale socket at @path: one that no process listens at. False: the
 * path may be in use.
 */
static bool take_path(RdmaRoceShm *shm, const char *path)
{
    struct sockaddr_un un;
    int fd = rdma_roce_shm_new_socket();
    struct stat st;
    int err;

    rdma_roce_shm_set_address(&un, path);
    err = fd < 0 || connect(fd, (struct sockaddr *)&un, sizeof(un)) < 0
          ? errno : 0;
    rdma_roce_shm_close_socket(shm, &fd);
    switch (err) {
    case ECONNREFUSED:
        if (!lstat(path, &st) && !S_ISSOCK(st.st_mode)) {
            shm_warn(shm, "listen", path, "the path is not a socket, "
                     "so remove it");
            return false;
        }
        unlink(path);
        return true;
    case ENOENT:
        return true;
    case 0:
    case EAGAIN:
        shm_warn(shm, "listen", path, "another port is there");
        return false;
    default:
        shm_warn(shm, "listen", path, strerror(err));
        return false;
    }
}

static int listen_at(RdmaRoceShm *shm, const char *path)
{
    struct sockaddr_un un;
    int fd;

    if (!take_path(shm, path)) {
        return -1;
    }
    rdma_roce_shm_set_address(&un, path);
    fd = rdma_roce_shm_new_socket();
    if (fd < 0 || bind(fd, (struct sockaddr *)&un, sizeof(un)) < 0 ||
        listen(fd, ROCE_SHM_MAX_PEERS) < 0) {
        shm_warn(shm, "listen", path, strerror(errno));
        rdma_roce_shm_close_socket(shm, &fd);
    }
    return fd;
}

void rdma_roce_shm_open(RdmaRoceShm *shm, const MACAddr *mac,
                        const MACAddr *nic_mac)
{
    struct stat st;

    rdma_roce_shm_close(shm);
    shm->path = rdma_roce_shm_socket_path(shm->dir, mac->a);
    qatomic_set(&shm->fd, listen_at(shm, shm->path));
    if (shm->fd < 0) {
        return;
    }
    shm->ino = stat(shm->path, &st) < 0 ? 0 : st.st_ino;
    if (memcmp(mac, nic_mac, sizeof(*mac))) {
        shm->nic_path = rdma_roce_shm_socket_path(shm->dir, nic_mac->a);
        if (take_path(shm, shm->nic_path) &&
            link(shm->path, shm->nic_path) < 0) {
            shm_warn(shm, "listen", shm->nic_path, strerror(errno));
        }
    }
    rdma_roce_shm_set_handler(shm, shm->fd, shm_accept, shm);
    trace_rdma_roce_shm_listens(shm, shm->path);
}

/* Remove a path, unless it is another port's socket by now. */
static void remove_path(RdmaRoceShm *shm, char **path)
{
    struct stat st;

    if (*path && stat(*path, &st) == 0 && st.st_ino == shm->ino) {
        unlink(*path);
    }
    g_clear_pointer(path, g_free);
}

void rdma_roce_shm_close(RdmaRoceShm *shm)
{
    remove_path(shm, &shm->nic_path);
    remove_path(shm, &shm->path);
    timer_del(shm->listen_again);
    rdma_roce_shm_close_socket(shm, &shm->fd);
    shm->ino = 0;
    shm->last = NULL;
    g_hash_table_remove_all(shm->outboxes);
    g_ptr_array_set_size(shm->inboxes, 0);
}

void rdma_roce_shm_frames(const RdmaRoceShm *shm, uint64_t *tx, uint64_t *rx)
{
    *tx = shm->tx_frames;
    *rx = shm->rx_frames;
}
