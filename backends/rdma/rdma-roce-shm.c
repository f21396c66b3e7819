/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames by shared memory: the ports of a host find each other.
 */
#include "qemu/osdep.h"
#include "net/util.h"
#include "qapi/error.h"
#include "qemu/error-report.h"
#include "qemu/iov.h"
#include "qemu/main-loop.h"
#include "qemu/queue.h"
#include "qemu/timer.h"
#include "rdma/roce.h"
#include "rdma-roce-shm.h"
#include "rdma-roce-shm-ring.h"
#include "rdma-roce-shm-socket.h"
#include "trace.h"

/* Frames that are written before a receiver that sleeps is woken */
#define WAKE_AFTER 8
/* Bytes of records received at once, whatever the engine makes of them */
#define RECEIVE_MAX (128 * 1024)

/* A port that frames are sent to, or that could not be reached. */
typedef struct Outbox {
    RdmaRoceShm *shm;
    MACAddr mac;
    int fd;                         /* -1: not connected */
    int64_t retry_at;               /* ms */
    RoceShmRing ring;               /* there is one when it can be used */
    unsigned unwoken;               /* frames since it was last looked at */
    QSIMPLEQ_ENTRY(Outbox) to_wake;
    uint8_t *queued;                /* a frame that waits for room */
    size_t queued_len;
    bool queued_checked;
    int64_t waits_since;            /* ms */
    int64_t patience;               /* ms, of ROCE_SHM_PATIENCE_MS, ... */
    int64_t patience_at;            /* ... at this time */
    QEMUTimer *timer;               /* then it is cut off */
    bool gone;                      /* an event may still be on its way */
} Outbox;

/* A port that frames come from. */
typedef struct Inbox {
    RdmaRoceShm *shm;
    int fd;                         /* -1: it has ended */
    RoceShmRing ring;
    bool gone;                      /* an event may still be on its way */
} Inbox;

struct RdmaRoceShm {
    char *dir;
    AioContext *ctx;                /* of an iothread, or NULL */
    const RdmaRoceShmOps *ops;
    void *opaque;
    int fd;                         /* listens; -1: closed */
    QEMUTimer *listen_again;        /* does so only then */
    bool warned;
    char *path, *nic_path;          /* of its socket */
    ino_t ino;
    GHashTable *outboxes;           /* by MAC address */
    Outbox *last;                   /* found last */
    QSIMPLEQ_HEAD(, Outbox) to_wake;
    GPtrArray *inboxes;
    unsigned next;                  /* inbox that is looked at first */
    uint64_t tx_frames, rx_frames;
};

bool rdma_roce_shm_check_dir(const char *dir, Error **errp)
{
    static const uint8_t mac[6];
    g_autofree char *path = rdma_roce_shm_socket_path(dir, mac);
    struct sockaddr_un un;

    if (strlen(path) >= sizeof(un.sun_path)) {
        error_setg(errp, "'%s' is too long for sockets in it: take a directory "
                   "whose path has at most %zu characters", dir,
                   sizeof(un.sun_path) - 1 - (strlen(path) - strlen(dir)));
        return false;
    }
    if (!g_file_test(dir, G_FILE_TEST_IS_DIR)) {
        error_setg(errp, "'%s' is no directory: make one for all guests of the "
                   "network", dir);
        return false;
    }
    return true;
}

static void set_handler(RdmaRoceShm *shm, int fd, IOHandler *readable,
                        void *opaque)
{
    if (shm->ctx) {
        aio_set_fd_handler(shm->ctx, fd, readable, NULL, NULL, NULL, opaque);
    } else {
        qemu_set_fd_handler(fd, readable, NULL, opaque);
    }
}

static void close_socket(RdmaRoceShm *shm, int *fd)
{
    if (*fd >= 0) {
        set_handler(shm, *fd, NULL, NULL);
        close(*fd);
        *fd = -1;
    }
}

/*
 * Events of what goes away may be on their way in the iothread. They are over
 * when that comes to this.
 */
static void free_later(RdmaRoceShm *shm, QEMUBHFunc *free_it, void *opaque)
{
    if (shm->ctx) {
        aio_bh_schedule_oneshot(shm->ctx, free_it, opaque);
    } else {
        free_it(opaque);
    }
}

static int64_t now_ms(void)
{
    return qemu_clock_get_ms(QEMU_CLOCK_REALTIME);
}

/* Who frames are sent to */

static void outbox_unlist(Outbox *ob)
{
    if (ob->unwoken) {
        ob->unwoken = 0;
        QSIMPLEQ_REMOVE(&ob->shm->to_wake, ob, Outbox, to_wake);
    }
}

/* Its frames take the netdev for a while. Returns whether one was queued. */
static bool outbox_leave(Outbox *ob)
{
    bool was_queued = ob->queued_len;

    outbox_unlist(ob);
    close_socket(ob->shm, &ob->fd);
    rdma_roce_shm_ring_close(&ob->ring);
    timer_del(ob->timer);
    ob->queued_len = 0;
    ob->retry_at = now_ms() + ROCE_SHM_RETRY_MS;
    return was_queued;
}

static void outbox_fail(Outbox *ob, const char *why)
{
    RdmaRoceShm *shm = ob->shm;

    trace_rdma_roce_shm_left(shm, MAC_ARG(ob->mac.a), why);
    if (outbox_leave(ob)) {
        shm->ops->sent(shm->opaque);
    }
}

static void outbox_free_it(void *opaque)
{
    Outbox *ob = opaque;

    timer_free(ob->timer);
    g_free(ob->queued);
    g_free(ob);
}

static void outbox_free(void *opaque)
{
    Outbox *ob = opaque;

    outbox_leave(ob);
    ob->gone = true;
    free_later(ob->shm, outbox_free_it, ob);
}

static void outbox_timer(void *opaque)
{
    Outbox *ob = opaque;
    RdmaRoceShm *shm = ob->shm;

    if (!shm->ops->enter(shm->opaque)) {
        timer_mod(ob->timer, now_ms() + 1);
        return;
    }
    if (!ob->gone && ob->fd >= 0 && !timer_pending(ob->timer)) {
        outbox_fail(ob, ob->ring.header ? "has no room" : "has no welcome");
    }
    shm->ops->leave(shm->opaque);
}

static void outbox_welcomed(Outbox *ob)
{
    int memory = rdma_roce_shm_receive_welcome(ob->fd);
    int ret;

    if (memory < 0) {
        outbox_fail(ob, "has no welcome");
        return;
    }
    ret = rdma_roce_shm_ring_open(&ob->ring, memory);
    close(memory);
    if (ret < 0) {
        outbox_fail(ob, "has no good ring");
        return;
    }
    timer_del(ob->timer);
    ob->patience = ROCE_SHM_PATIENCE_MS;
    ob->patience_at = now_ms();
    trace_rdma_roce_shm_reached(ob->shm, MAC_ARG(ob->mac.a));
}

static RoceShmPut outbox_put(Outbox *ob, const struct iovec *iov, int iovcnt,
                             size_t size, bool checked)
{
    RoceShmPut ret = rdma_roce_shm_put(&ob->ring, iov, iovcnt, size, checked);

    if (ret != ROCE_SHM_PUT) {
        return ret;
    }
    ob->shm->tx_frames++;
    if (!ob->unwoken++) {
        QSIMPLEQ_INSERT_TAIL(&ob->shm->to_wake, ob, to_wake);
    }
    if (ob->unwoken == WAKE_AFTER) {
        outbox_unlist(ob);
        if (rdma_roce_shm_sleeps(&ob->ring)) {
            rdma_roce_shm_wake(ob->fd);
        }
    }
    return ret;
}

/* The frame in ob->queued waits from now on. */
static void outbox_begin_wait(Outbox *ob)
{
    ob->waits_since = now_ms();
    ob->patience = MIN(ROCE_SHM_PATIENCE_MS,
                       ob->patience +
                       (ob->waits_since - ob->patience_at) / 4);
    timer_mod(ob->timer, ob->waits_since + ob->patience);
}

static void outbox_end_wait(Outbox *ob)
{
    ob->queued_len = 0;
    ob->patience_at = now_ms();
    ob->patience -= MIN(ob->patience, ob->patience_at - ob->waits_since);
    timer_del(ob->timer);
    rdma_roce_shm_wait_room(&ob->ring, false);
}

/* There may be room. */
static void outbox_retry(Outbox *ob)
{
    struct iovec iov = { .iov_base = ob->queued, .iov_len = ob->queued_len };

    if (!ob->queued_len) {
        return;
    }
    switch (outbox_put(ob, &iov, 1, ob->queued_len, ob->queued_checked)) {
    case ROCE_SHM_PUT:
        outbox_end_wait(ob);
        ob->shm->ops->sent(ob->shm->opaque);
        break;
    case ROCE_SHM_FULL:
        break;
    case ROCE_SHM_BROKEN:
        outbox_fail(ob, "broke the ring");
        break;
    }
}

static void outbox_readable(void *opaque)
{
    Outbox *ob = opaque;
    RdmaRoceShm *shm = ob->shm;

    if (!shm->ops->enter(shm->opaque)) {
        return;
    }
    if (ob->gone || ob->fd < 0) {
        /* It was left meanwhile. */
    } else if (!ob->ring.header) {
        outbox_welcomed(ob);
    } else if (!rdma_roce_shm_drain(ob->fd)) {
        outbox_fail(ob, "has ended");
    } else {
        outbox_retry(ob);
    }
    shm->ops->leave(shm->opaque);
}

static void outbox_connect(Outbox *ob)
{
    g_autofree char *path = rdma_roce_shm_socket_path(ob->shm->dir, ob->mac.a);
    struct sockaddr_un un;

    rdma_roce_shm_set_address(&un, path);
    ob->fd = rdma_roce_shm_new_socket();
    if (ob->fd < 0 ||
        connect(ob->fd, (struct sockaddr *)&un, sizeof(un)) < 0) {
        outbox_leave(ob);
        return;
    }
    set_handler(ob->shm, ob->fd, outbox_readable, ob);
    timer_mod(ob->timer, now_ms() + ROCE_SHM_RETRY_MS);
}

static Outbox *outbox_new(RdmaRoceShm *shm, const uint8_t *mac)
{
    Outbox *ob = g_new0(Outbox, 1);

    ob->shm = shm;
    ob->fd = -1;
    memcpy(ob->mac.a, mac, sizeof(ob->mac.a));
    ob->timer = shm->ctx ? aio_timer_new(shm->ctx, QEMU_CLOCK_REALTIME,
                                         SCALE_MS, outbox_timer, ob)
                         : timer_new_ms(QEMU_CLOCK_REALTIME, outbox_timer, ob);
    g_hash_table_add(shm->outboxes, ob);
    return ob;
}

static guint outbox_hash(gconstpointer key)
{
    const Outbox *ob = key;

    return ldl_he_p(ob->mac.a + 2);
}

static gboolean outbox_equal(gconstpointer a, gconstpointer b)
{
    const Outbox *one = a, *other = b;

    return !memcmp(&one->mac, &other->mac, sizeof(one->mac));
}

static gboolean is_stale(gpointer key, gpointer value, gpointer now)
{
    const Outbox *ob = key;

    return ob->fd < 0 && ob->retry_at <= *(int64_t *)now;
}

/* There may have been other ports before. */
static bool outboxes_have_room(RdmaRoceShm *shm)
{
    int64_t now;

    if (g_hash_table_size(shm->outboxes) >= ROCE_SHM_MAX_PEERS) {
        now = now_ms();
        g_hash_table_foreach_remove(shm->outboxes, is_stale, &now);
    }
    return g_hash_table_size(shm->outboxes) < ROCE_SHM_MAX_PEERS;
}

/* The outbox of a MAC address, or NULL if there are too many. */
static Outbox *outbox_of(RdmaRoceShm *shm, const uint8_t *mac)
{
    Outbox key;

    if (!shm->last || memcmp(shm->last->mac.a, mac, sizeof(key.mac.a))) {
        memcpy(key.mac.a, mac, sizeof(key.mac.a));
        shm->last = g_hash_table_lookup(shm->outboxes, &key);
        if (!shm->last && outboxes_have_room(shm)) {
            shm->last = outbox_new(shm, mac);
        }
    }
    return shm->last;
}

bool rdma_roce_shm_reaches(RdmaRoceShm *shm, const uint8_t *mac)
{
    Outbox *ob;

    if (shm->fd < 0 || (mac[0] & 1)) {
        return false;
    }
    ob = outbox_of(shm, mac);
    if (!ob) {
        return false;
    }
    if (ob->fd < 0 && now_ms() >= ob->retry_at) {
        outbox_connect(ob);
    }
    return ob->ring.header;
}

RdmaRoceShmSent rdma_roce_shm_send(RdmaRoceShm *shm, const struct iovec *iov,
                                   int iovcnt, size_t size, bool checked)
{
    const uint8_t *mac = iov[0].iov_base;
    RoceShmPut put;
    Outbox *ob;

    if (iov[0].iov_len < sizeof(ob->mac.a) || size > ROCE_MAX_FRAME ||
        !rdma_roce_shm_reaches(shm, mac)) {
        return ROCE_SHM_NOT_THERE;
    }
    ob = outbox_of(shm, mac);
    assert(!ob->queued_len);
    put = outbox_put(ob, iov, iovcnt, size, checked);
    if (put == ROCE_SHM_FULL) {
        rdma_roce_shm_wait_room(&ob->ring, true);
        put = outbox_put(ob, iov, iovcnt, size, checked);
        if (put == ROCE_SHM_PUT) {
            rdma_roce_shm_wait_room(&ob->ring, false);
        }
    }
    switch (put) {
    case ROCE_SHM_PUT:
        return ROCE_SHM_SENT;
    case ROCE_SHM_BROKEN:
        outbox_fail(ob, "broke the ring");
        return ROCE_SHM_NOT_THERE;
    case ROCE_SHM_FULL:
        break;
    }
    if (!ob->queued) {
        ob->queued = g_malloc(ROCE_MAX_FRAME);
    }
    ob->queued_len = iov_to_buf(iov, iovcnt, 0, ob->queued, size);
    ob->queued_checked = checked;
    outbox_begin_wait(ob);
    return ROCE_SHM_WAIT;
}

void rdma_roce_shm_flush(RdmaRoceShm *shm)
{
    Outbox *ob;

    while ((ob = QSIMPLEQ_FIRST(&shm->to_wake))) {
        outbox_unlist(ob);
        if (rdma_roce_shm_sleeps(&ob->ring)) {
            rdma_roce_shm_wake(ob->fd);
        }
    }
}

/* Who frames come from */

static void inbox_free(void *opaque)
{
    Inbox *ib = opaque;

    close_socket(ib->shm, &ib->fd);
    rdma_roce_shm_ring_close(&ib->ring);
    ib->gone = true;
    free_later(ib->shm, g_free, ib);
}

static void inbox_readable(void *opaque)
{
    Inbox *ib = opaque;
    RdmaRoceShm *shm = ib->shm;

    if (!shm->ops->enter(shm->opaque)) {
        return;
    }
    if (!ib->gone) {
        if (ib->fd >= 0 && !rdma_roce_shm_drain(ib->fd)) {
            /* What it has written is read first. */
            close_socket(shm, &ib->fd);
        }
        rdma_roce_shm_awake(&ib->ring);
        shm->ops->ready(shm->opaque);
    }
    shm->ops->leave(shm->opaque);
}

/*
 * Returns -EAGAIN if there may be more, 0 if not, or -EPROTO. @budget: bytes of
 * records that may be received.
 */
static int inbox_receive(Inbox *ib, uint32_t *budget)
{
    RdmaRoceShm *shm = ib->shm;
    const uint8_t *frame;
    size_t size;
    bool checked, more = true;
    int ret = 0;

    do {
        uint32_t begin = ib->ring.pos;
        uint32_t batch = 0;

        while (more && batch < ib->ring.size / 4 &&
               (ret = rdma_roce_shm_look(&ib->ring, &frame, &size,
                                         &checked)) > 0) {
            shm->rx_frames++;
            more = shm->ops->receive(shm->opaque, frame, size, checked);
            rdma_roce_shm_take(&ib->ring, size);
            batch = ib->ring.pos - begin;
            more = more && batch < *budget;
        }
        *budget -= MIN(*budget, batch);
        if (batch && rdma_roce_shm_give_room(&ib->ring) && ib->fd >= 0) {
            rdma_roce_shm_wake(ib->fd);
        }
        if (!more) {
            return -EAGAIN;
        }
        if (ret < 0) {
            return ret;
        }
    } while (ret > 0 || !rdma_roce_shm_sleep(&ib->ring));
    return 0;
}

bool rdma_roce_shm_receive(RdmaRoceShm *shm)
{
    unsigned todo = shm->inboxes->len;
    uint32_t budget = RECEIVE_MAX;

    while (todo--) {
        Inbox *ib;
        int ret;

        shm->next = shm->next < shm->inboxes->len ? shm->next : 0;
        ib = shm->inboxes->pdata[shm->next];
        ret = inbox_receive(ib, &budget);
        if (ret == -EAGAIN) {
            shm->next++;
            return false;
        }
        if (ret < 0 || ib->fd < 0) {
            trace_rdma_roce_shm_inbox(shm, false, ret);
            g_ptr_array_remove_index(shm->inboxes, shm->next);
        } else {
            shm->next++;
        }
    }
    return true;
}

/* Once: this may go on for long. */
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
    Inbox *ib;
    int memory;
    bool ok;

    if (fd < 0) {
        if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR) {
            /* Out of descriptors or memory, and the event would stay. */
            shm_warn(shm, "accept", shm->path, strerror(errno));
            set_handler(shm, shm->fd, NULL, NULL);
            timer_mod(shm->listen_again, now_ms() + ROCE_SHM_RETRY_MS);
        }
        return;
    }
    if (shm->inboxes->len >= ROCE_SHM_MAX_PEERS) {
        close(fd);
        return;
    }
    ib = g_new0(Inbox, 1);
    ib->shm = shm;
    ib->fd = fd;
    memory = rdma_roce_shm_ring_create(&ib->ring);
    ok = memory >= 0 && rdma_roce_shm_send_welcome(fd, memory);
    if (memory >= 0) {
        close(memory);
    }
    trace_rdma_roce_shm_inbox(shm, ok, MIN(memory, 0));
    if (!ok) {
        inbox_free(ib);
        return;
    }
    g_ptr_array_add(shm->inboxes, ib);
    set_handler(shm, fd, inbox_readable, ib);
}

static void shm_accept(void *opaque)
{
    RdmaRoceShm *shm = opaque;

    if (!shm->ops->enter(shm->opaque)) {
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
        timer_mod(shm->listen_again, now_ms() + ROCE_SHM_RETRY_MS);
        return;
    }
    if (shm->fd >= 0) {
        set_handler(shm, shm->fd, shm_accept, shm);
    }
    shm->ops->leave(shm->opaque);
}

/* The whole */

RdmaRoceShm *rdma_roce_shm_new(const char *dir, AioContext *ctx,
                               const RdmaRoceShmOps *ops, void *opaque)
{
    RdmaRoceShm *shm = g_new0(RdmaRoceShm, 1);

    shm->dir = g_strdup(dir);
    shm->ctx = ctx;
    shm->ops = ops;
    shm->opaque = opaque;
    shm->fd = -1;
    shm->listen_again =
        ctx ? aio_timer_new(ctx, QEMU_CLOCK_REALTIME, SCALE_MS,
                            shm_listen_again, shm)
            : timer_new_ms(QEMU_CLOCK_REALTIME, shm_listen_again, shm);
    shm->outboxes = g_hash_table_new_full(outbox_hash, outbox_equal, NULL,
                                          outbox_free);
    QSIMPLEQ_INIT(&shm->to_wake);
    shm->inboxes = g_ptr_array_new_with_free_func(inbox_free);
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

/* Take a path, unless somebody listens there; who has ended does not. */
static bool take_path(RdmaRoceShm *shm, const char *path)
{
    struct sockaddr_un un;
    int fd = rdma_roce_shm_new_socket();
    bool used;

    rdma_roce_shm_set_address(&un, path);
    used = fd >= 0 && (connect(fd, (struct sockaddr *)&un, sizeof(un)) == 0 ||
                       errno == EAGAIN);
    close_socket(shm, &fd);
    if (used) {
        shm_warn(shm, "listen", path, "another port is there");
        return false;
    }
    unlink(path);
    return true;
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
        close_socket(shm, &fd);
    }
    return fd;
}

void rdma_roce_shm_open(RdmaRoceShm *shm, const MACAddr *mac,
                        const MACAddr *nic_mac)
{
    struct stat st;

    rdma_roce_shm_close(shm);
    shm->path = rdma_roce_shm_socket_path(shm->dir, mac->a);
    shm->fd = listen_at(shm, shm->path);
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
    set_handler(shm, shm->fd, shm_accept, shm);
    trace_rdma_roce_shm_listens(shm, shm->path);
}

/* Remove a path, unless another port has it now. */
static void remove_path(RdmaRoceShm *shm, char **path)
{
    struct stat st;

    if (*path && stat(*path, &st) == 0 && st.st_ino == shm->ino) {
        unlink(*path);
    }
    g_free(*path);
    *path = NULL;
}

void rdma_roce_shm_close(RdmaRoceShm *shm)
{
    remove_path(shm, &shm->nic_path);
    remove_path(shm, &shm->path);
    timer_del(shm->listen_again);
    close_socket(shm, &shm->fd);
    shm->ino = 0;
    shm->last = NULL;
    g_hash_table_remove_all(shm->outboxes);
    g_ptr_array_set_size(shm->inboxes, 0);
}

uint64_t rdma_roce_shm_tx_frames(const RdmaRoceShm *shm)
{
    return shm->tx_frames;
}

uint64_t rdma_roce_shm_rx_frames(const RdmaRoceShm *shm)
{
    return shm->rx_frames;
}
