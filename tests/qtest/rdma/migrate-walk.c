/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Walks: traffic on a wire that the test holds, and snapshots during traffic.
 */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "image.h"
#include "migrate-test.h"
#include "migrate-walk.h"

#define DEVICE "virtio-rdma-pci,max-qp=8,max-cq=6,max-mr=32,max-pd=8," \
               "max-srq=2"
#define QUIET_MS 3
/* Turns of a main loop in which it answers the frames it got */
#define TURNS 20

/* Snapshots */

char *walk_try_hmp(Walk *t, int side, const char *command)
{
    return qtest_hmp(t->net.host[side]->qts, "%s", command);
}

void walk_hmp(Walk *t, int side, const char *command)
{
    g_autofree char *said = walk_try_hmp(t, side, command);

    g_assert_cmpstr(said, ==, "");
}

void walk_qmp(Walk *t, int side, const char *command)
{
    qtest_qmp_assert_success(t->net.host[side]->qts, "{'execute': %s}",
                             command);
}

void walk_move(Walk *t, int side)
{
    walk_qmp(t, side, "stop");
    walk_hmp(t, side, "savevm s");
    walk_hmp(t, side, "loadvm s");
    walk_qmp(t, side, "cont");
    t->moves++;
}

static char *host_args(Walk *t, int side)
{
    return g_strdup_printf("-netdev %s,id=n0 -device " DEVICE ",netdev=n0,"
                           "addr=4,mac=52:54:00:12:34:%02d",
                           t->wire[side].netdev, side + 1);
}

void walk_move_process(Walk *t, int side)
{
    QRdmaHost *host = t->net.host[side];
    g_autofree char *path = g_strdup_printf("%s/state", t->wire[side].dir);
    g_autofree char *uri = g_strdup_printf("file:%s", path);
    g_autofree char *args = host_args(t, side);
    int64_t now = qtest_clock_step(host->qts, 1);

    qtest_qmp_assert_success(host->qts, "{'execute': 'migrate', "
                             "'arguments': {'uri': %s}}", uri);
    g_assert_true(qrdma_migration_done(host->qts));
    qtest_quit(host->qts);
    host->qts = qtest_initf("-machine pc -nodefaults -m 64 %s -S "
                            "-incoming defer", args);
    host->bus->qts = host->qts;
    trip_migrate_from(host->qts, uri);
    trip_wait_loaded(host->qts);
    qtest_clock_set(host->qts, now);
    walk_qmp(t, side, "cont");
    g_unlink(path);
    t->moves++;
}

/* The wire */

static void deliver_late(Walk *t, int side)
{
    GByteArray *frame;

    while ((frame = g_queue_pop_head(&t->late[side]))) {
        wire_send(&t->wire[side], frame->data, frame->len);
        g_byte_array_unref(frame);
    }
}

static void keep_late(Walk *t, int side, const uint8_t *frame, size_t size)
{
    g_queue_push_tail(&t->late[side],
                      g_byte_array_append(g_byte_array_new(), frame, size));
}

/* Deliver, lose, double or delay a frame of @side. */
static void carry(Walk *t, int side, const uint8_t *frame, size_t size)
{
    int to = !side;

    switch (g_rand_int_range(t->rng, 0, 40)) {
    case 0:
        break;
    case 1:
        wire_send(&t->wire[to], frame, size);
        wire_send(&t->wire[to], frame, size);
        break;
    case 2:
        keep_late(t, to, frame, size);
        break;
    default:
        wire_send(&t->wire[to], frame, size);
        if (g_rand_int_range(t->rng, 0, 8) == 0) {
            deliver_late(t, to);
        }
    }
}

/*
 * On a busy machine a process may not run for long. It has nothing to send only
 * if its main loop has had enough turns.
 */
static void let_both_run(Walk *t)
{
    for (int i = 0; i < TURNS; i++) {
        qtest_readb(t->net.host[0]->qts, 0);
        qtest_readb(t->net.host[1]->qts, 0);
    }
}

bool walk_pump(Walk *t, unsigned n)
{
    uint8_t frame[FRAME_MAX];

    while (n) {
        GPollFD pfd[2] = {
            { .fd = t->wire[0].fd, .events = G_IO_IN },
            { .fd = t->wire[1].fd, .events = G_IO_IN },
        };

        if (g_poll(pfd, 2, 0) == 0) {
            let_both_run(t);
            if (g_poll(pfd, 2, QUIET_MS) == 0) {
                return false;
            }
        }
        for (int i = 0; i < 2 && n; i++) {
            if (pfd[i].revents) {
                carry(t, i, frame, wire_recv(&t->wire[i], frame, 0));
                n--;
            }
        }
    }
    return true;
}

/* Set-up */

Walk *walk_new(uint32_t seed)
{
    QRdmaPath path = {
        .timeout = WALK_TIMEOUT_CODE,
        .mtu = RDMA_MTU_256,
        .access = RDMA_ACCESS_REMOTE | RDMA_ACCESS_FLUSH_GLOBAL,
    };
    Walk *t = g_new0(Walk, 1);

    t->rng = g_rand_new_with_seed(seed);
    t->net.kind = NET_DGRAM;
    for (int i = 0; i < 2; i++) {
        g_autofree char *args = NULL;
        g_autofree char *image = NULL;

        g_queue_init(&t->late[i]);
        wire_open(&t->wire[i]);
        args = host_args(t, i);
        t->net.host[i] = qrdma_host_start("%s", args);
        image = g_strdup_printf("%s/image", t->wire[i].dir);
        test_image_add(t->net.host[i]->qts, image);
        t->image[i] = open(image, O_RDWR);
        g_assert_cmpint(t->image[i], >=, 0);
        g_unlink(image);
        t->net.dev[i] = qrdma_open(t->net.host[i], QPCI_DEVFN(4, 0));
        t->net.dev[i]->direct = g_rand_boolean(t->rng);
    }
    t->p = net_pair_new_with(&t->net, RDMA_QPT_RC, WALK_FEATURES);
    walk_make_objects(t);
    qrdma_connect(t->p.a.qp, t->p.b.qp, &path);
    t->flow[0] = (Flow) { .from = &t->p.a, .to = &t->p.b };
    t->flow[1] = (Flow) { .from = &t->p.b, .to = &t->p.a };
    return t;
}

void walk_free(Walk *t)
{
    walk_free_objects(t);
    for (int i = 0; i < 2; i++) {
        deliver_late(t, i);
        qrdma_host_stop(t->net.host[i]);
        close(t->image[i]);
        wire_close(&t->wire[i]);
    }
    g_rand_free(t->rng);
    g_free(t);
}

/* Traffic */

static bool takes_receive(OpKind kind)
{
    return kind == OP_SEND || kind == OP_SEND_IMM || kind == OP_WRITE_IMM;
}

static bool takes_way(OpKind kind)
{
    return kind != OP_SEND && kind != OP_SEND_IMM && kind != OP_FLUSH;
}

static WalkWay choose_way(Walk *t, const Side *to)
{
    WalkWay way = g_rand_int_range(t->rng, 0, WALK_WAYS);

    return !to->way[way].rkey || (way == WAY_RENEWED && to->renews)
           ? WAY_REGION : way;
}

static void plan(Walk *t, Flow *f)
{
    bool local[OP_KINDS] = {};

    f->sent = f->received = f->recvs = 0;
    for (int i = 0; i < OPS; i++) {
        Op *op = &f->op[i];

        /* One of each local kind */
        do {
            op->kind = g_rand_int_range(t->rng, 0, OP_KINDS);
        } while (local[op->kind]);
        local[op->kind] = op->kind >= OP_REMOTE;
        op->way = choose_way(t, &t->side[f->to == &t->p.b]);
        op->len = g_rand_int_range(t->rng, 0, SLOT);
        op->from = g_rand_int_range(t->rng, 0, RECV - SLOT);
        op->operand = g_rand_int(t->rng);
        /* Most comparisons succeed; f->counter is not known yet */
        op->compare = g_rand_int_range(t->rng, 0, 4) == 0;
        op->is_inline = (op->kind < OP_READ &&
                         g_rand_int_range(t->rng, 0, 5) == 0) ||
                        (op->kind == OP_ATOMIC_WRITE && (op->operand & 1));
        if (op->kind == OP_ATOMIC_WRITE) {
            op->len = 8;
        } else if (op->is_inline) {
            op->len %= MAX_INLINE;
        }
        op->signalled = i == OPS - 1 || g_rand_int_range(t->rng, 0, 3);
        op->recv = takes_receive(op->kind) ? f->recvs++ : -1;
    }
}

static void post(Walk *t, int side)
{
    Flow *f = &t->flow[side];
    uint8_t *mine = t->model[side], *theirs = t->model[!side];
    static const RdmaWrOpcode opcodes[OP_KINDS] = {
        [OP_SEND] = RDMA_WR_SEND,
        [OP_SEND_IMM] = RDMA_WR_SEND_WITH_IMM,
        [OP_WRITE] = RDMA_WR_RDMA_WRITE,
        [OP_WRITE_IMM] = RDMA_WR_RDMA_WRITE_WITH_IMM,
        [OP_READ] = RDMA_WR_RDMA_READ,
        [OP_FADD] = RDMA_WR_ATOMIC_FETCH_AND_ADD,
        [OP_CAS] = RDMA_WR_ATOMIC_CMP_AND_SWP,
        [OP_ATOMIC_WRITE] = RDMA_WR_ATOMIC_WRITE,
        [OP_FLUSH] = RDMA_WR_FLUSH,
    };

    for (uint32_t i = 0; i < OPS; i++) {
        Op *op = &f->op[i];
        const Way *way = &t->side[!side].way[op->way];
        bool is_atomic = op->kind == OP_FADD || op->kind == OP_CAS;
        bool goes_back = op->kind == OP_READ || is_atomic;
        uint32_t slot = i * SLOT;
        RdmaSge sge = goes_back ?
            net_sge(f->from, BACK + slot, is_atomic ? 8 : op->len) :
            net_sge(f->from, SRC + op->from, op->len);
        RdmaSendWr wr = qrdma_wr(opcodes[op->kind], i, &sge);

        wr.send_flags = op->signalled ? RDMA_SEND_SIGNALED : 0;
        if (op->kind == OP_BIND) {
            walk_post_bind(&t->side[side], wr);
            continue;
        }
        if (op->kind == OP_REG) {
            walk_post_reg(&t->side[side], wr);
            continue;
        }
        memcpy(wr.ex.imm_data, &i, sizeof(wr.ex.imm_data));
        if (op->is_inline) {
            wr.send_flags |= RDMA_SEND_INLINE;
            wr.inline_data = mine + SRC + op->from;
            wr.inline_len = op->len;
            wr.num_sge = 0;
        }
        t->used[op->way] += takes_way(op->kind);
        if (is_atomic) {
            wr.wr.atomic.remote_addr = way->iova + COUNTER;
            wr.wr.atomic.rkey = way->rkey;
            stq_le_p(mine + BACK + slot, f->counter);
            if (op->kind == OP_FADD) {
                wr.wr.atomic.compare_add = op->operand;
                f->counter += op->operand;
            } else {
                wr.wr.atomic.compare_add = f->counter + op->compare;
                wr.wr.atomic.swap = op->operand;
                f->counter = op->compare ? f->counter : op->operand;
            }
            stq_le_p(theirs + COUNTER, f->counter);
        } else if (op->kind == OP_ATOMIC_WRITE) {
            wr.wr.rdma.remote_addr = way->iova + COUNTER;
            wr.wr.rdma.rkey = way->rkey;
            f->counter = ldq_le_p(mine + SRC + op->from);
            stq_le_p(theirs + COUNTER, f->counter);
        } else if (op->kind == OP_FLUSH) {
            wr.wr.flush.remote_addr = f->to->mr->iova + TARGET + slot;
            wr.wr.flush.rkey = f->to->mr->rkey;
            wr.wr.flush.length = op->len;
            wr.wr.flush.type = RDMA_FLUSH_GLOBAL;
            wr.wr.flush.level = op->operand & 1 ? RDMA_FLUSH_MR
                                                : RDMA_FLUSH_RANGE;
            wr.num_sge = 0;
        } else {
            wr.wr.rdma.remote_addr = way->iova +
                (op->kind == OP_READ ? SRC + op->from : TARGET + slot);
            wr.wr.rdma.rkey = way->rkey;
            if (op->kind == OP_READ) {
                memcpy(mine + BACK + slot, theirs + SRC + op->from, op->len);
            } else if (op->kind == OP_SEND || op->kind == OP_SEND_IMM) {
                memcpy(theirs + RECV + op->recv * SLOT, mine + SRC + op->from,
                       op->len);
            } else {
                memcpy(theirs + TARGET + slot, mine + SRC + op->from,
                       op->len);
            }
        }
        qrdma_post_send(f->from->qp, &wr);
    }
}

/* Post receives for the sends of @side. */
static void post_receives(Walk *t, int side)
{
    Flow *f = &t->flow[side];
    QRdmaSrq *srq = t->side[!side].srq;

    for (unsigned i = 0; i < f->recvs; i++) {
        RdmaSge sge = net_sge(f->to, RECV + i * SLOT, SLOT);

        if (srq) {
            qrdma_srq_recv(srq, i, &sge);
        } else {
            net_post_recv(f->to, i, RECV + i * SLOT, SLOT);
        }
    }
    if (srq) {
        walk_arm_limit(t, !side, f->recvs);
    }
}

/* Memory of both sides: random, except the counters. */
static void prepare(Walk *t)
{
    for (int i = 0; i < 2; i++) {
        for (size_t at = 0; at < DATAGRAMS; at += 4) {
            stl_le_p(t->model[i] + at, g_rand_int(t->rng));
        }
        stq_le_p(t->model[i] + COUNTER, t->flow[!i].counter);
        qrdma_mr_write(t->flow[i].from->mr, 0, t->model[i], DATAGRAMS);
    }
}

static void check_sent(Flow *f, const RdmaWc *wc)
{
    while (f->sent < OPS && !f->op[f->sent].signalled) {
        f->sent++;
    }
    g_assert_cmpuint(f->sent, <, OPS);
    g_assert_cmpint(wc->status, ==, RDMA_WC_SUCCESS);
    g_assert_cmpuint(wc->wr_id, ==, f->sent);
    f->sent++;
}

static void check_received(Flow *f, const RdmaWc *wc)
{
    uint32_t i = 0;

    while (i < OPS && f->op[i].recv != (int)f->received) {
        i++;
    }
    g_assert_cmpuint(i, <, OPS);
    g_assert_cmpint(wc->status, ==, RDMA_WC_SUCCESS);
    g_assert_cmpuint(wc->wr_id, ==, f->received);
    g_assert_cmpuint(wc->byte_len, ==, f->op[i].len);
    if (f->op[i].kind != OP_SEND) {
        g_assert_cmpmem(wc->ex.imm_data, 4, &i, 4);
    }
    f->received++;
}

void walk_collect(Walk *t)
{
    RdmaWc wc;

    for (int i = 0; i < 2; i++) {
        Flow *f = &t->flow[i];

        while (qrdma_poll_cq(f->from->scq, &wc)) {
            check_sent(f, &wc);
        }
        while (qrdma_poll_cq(f->to->rcq, &wc)) {
            check_received(f, &wc);
        }
        walk_collect_datagrams(t, i);
    }
}

static bool all_done(Walk *t)
{
    for (int i = 0; i < 2; i++) {
        if (t->flow[i].sent < OPS ||
            t->side[i].ud_done < t->side[i].ud_sent ||
            t->flow[i].received < t->flow[i].recvs) {
            return false;
        }
    }
    return true;
}

static void run_to_the_end(Walk *t)
{
    gint64 end = g_get_monotonic_time() + 60 * G_USEC_PER_SEC;

    for (;;) {
        bool more = walk_pump(t, WALK_FRAMES);

        walk_collect(t);
        if (all_done(t)) {
            break;
        }
        g_assert_cmpint(g_get_monotonic_time(), <, end);
        if (!more) {
            net_clock_step(&t->net, WALK_TIMEOUT_NS / 2);
        }
    }
    for (int i = 0; i < 2; i++) {
        deliver_late(t, i);
    }
    while (walk_pump(t, WALK_FRAMES)) {
        /* Drop the rest. */
    }
    net_clock_step(&t->net, 100 * WALK_TIMEOUT_NS);
    walk_collect(t);
}

static void check_memory(Walk *t)
{
    g_autofree uint8_t *is = g_malloc(DATAGRAMS);

    for (int i = 0; i < 2; i++) {
        qrdma_mr_read(t->flow[i].from->mr, 0, is, DATAGRAMS);
        for (size_t at = 0; at < DATAGRAMS; at++) {
            if (is[at] != t->model[i][at]) {
                g_test_message("side %d differs at %zu", i, at);
                g_assert_cmphex(is[at], ==, t->model[i][at]);
            }
        }
    }
}

void walk_post(Walk *t, bool with_receives)
{
    prepare(t);
    for (int i = 0; i < 2; i++) {
        t->side[i].renews = g_rand_boolean(t->rng);
    }
    for (int i = 0; i < 2; i++) {
        plan(t, &t->flow[i]);
        if (with_receives) {
            post_receives(t, i);
        }
    }
    for (int i = 0; i < 2; i++) {
        post(t, i);
        walk_post_datagrams(t, i);
    }
}

void walk_post_receives(Walk *t)
{
    for (int i = 0; i < 2; i++) {
        post_receives(t, i);
    }
}

void walk_finish(Walk *t)
{
    run_to_the_end(t);
    g_assert_true(all_done(t));
    check_memory(t);
    walk_end_objects(t);
}
