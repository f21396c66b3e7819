/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Walks: traffic on a wire that the test holds, and snapshots amid it.
 */
#include "qemu/osdep.h"
#include <glib/gstdio.h>
#include "qemu/bswap.h"
#include "qobject/qdict.h"
#include "qobject/qlist.h"
#include "migrate-walk.h"

#define DEVICE "virtio-rdma-pci,max-qp=8,max-cq=6,max-mr=32,max-pd=8"
#define IMAGE_SIZE (256 << 20)
#define QUIET_MS 3

/* Snapshots */

static void run_job(QTestState *qts, const char *options)
{
    g_autofree char *command = g_strdup_printf(
        "{'execute': 'blockdev-create', 'arguments': "
        "{'job-id': 'j', 'options': %s}}", options);
    bool done = false;

    qtest_qmp_assert_success(qts, command, NULL);
    while (!done) {
        g_autoptr(QDict) rsp = qtest_qmp(qts, "{'execute': 'query-jobs'}");
        QList *jobs = qdict_get_qlist(rsp, "return");
        QDict *job = qobject_to(QDict, qlist_peek(jobs));

        done = g_str_equal(qdict_get_str(job, "status"), "concluded");
        g_assert_null(qdict_get_try_str(job, "error"));
    }
    qtest_qmp_assert_success(qts, "{'execute': 'job-dismiss', 'arguments': "
                             "{'id': 'j'}}");
}

/* A disk that nothing is on but what savevm puts there. */
static void add_image(QTestState *qts, const char *path)
{
    g_autofree char *create = g_strdup_printf(
        "{'driver': 'file', 'filename': '%s', 'size': 0}", path);
    g_autofree char *format = g_strdup_printf(
        "{'driver': 'qcow2', 'file': 'file0', 'size': %d}", IMAGE_SIZE);

    run_job(qts, create);
    qtest_qmp_assert_success(qts, "{'execute': 'blockdev-add', 'arguments': "
        "{'driver': 'file', 'node-name': 'file0', 'filename': %s, "
        "'cache': {'no-flush': true}}}", path);
    run_job(qts, format);
    qtest_qmp_assert_success(qts, "{'execute': 'blockdev-add', 'arguments': "
        "{'driver': 'qcow2', 'node-name': 'disk0', 'file': 'file0', "
        "'cache': {'no-flush': true}}}");
}

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

/* What becomes of a frame that leaves @side? */
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

bool walk_pump(Walk *t, unsigned n)
{
    uint8_t frame[FRAME_MAX];

    while (n) {
        GPollFD pfd[2] = {
            { .fd = t->wire[0].fd, .events = G_IO_IN },
            { .fd = t->wire[1].fd, .events = G_IO_IN },
        };

        if (g_poll(pfd, 2, QUIET_MS) == 0) {
            return false;
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
    QRdmaPath path = { .timeout = WALK_TIMEOUT_CODE, .mtu = RDMA_MTU_256 };
    Walk *t = g_new0(Walk, 1);

    t->rng = g_rand_new_with_seed(seed);
    t->net.kind = NET_DGRAM;
    for (int i = 0; i < 2; i++) {
        g_autofree char *image = NULL;

        g_queue_init(&t->late[i]);
        wire_open(&t->wire[i]);
        t->net.host[i] = qrdma_host_start(
            "-netdev %s,id=n0 -device " DEVICE ",netdev=n0,addr=4,"
            "mac=52:54:00:12:34:%02d", t->wire[i].netdev, i + 1);
        image = g_strdup_printf("%s/image", t->wire[i].dir);
        add_image(t->net.host[i]->qts, image);
        t->image[i] = open(image, O_RDWR);
        g_assert_cmpint(t->image[i], >=, 0);
        g_unlink(image);
        t->net.dev[i] = qrdma_open(t->net.host[i], QPCI_DEVFN(4, 0));
    }
    t->p = net_pair_new(&t->net, RDMA_QPT_RC);
    qrdma_connect(t->p.a.qp, t->p.b.qp, &path);
    t->flow[0] = (Flow) { .from = &t->p.a, .to = &t->p.b };
    t->flow[1] = (Flow) { .from = &t->p.b, .to = &t->p.a };
    return t;
}

void walk_free(Walk *t)
{
    for (int i = 0; i < 2; i++) {
        deliver_late(t, i);
        qrdma_close(t->net.dev[i]);
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

static void plan(Walk *t, Flow *f)
{
    f->sent = f->received = f->recvs = 0;
    for (int i = 0; i < OPS; i++) {
        Op *op = &f->op[i];

        op->kind = g_rand_int_range(t->rng, 0, OP_KINDS);
        op->len = g_rand_int_range(t->rng, 0, SLOT);
        op->from = g_rand_int_range(t->rng, 0, RECV - SLOT);
        op->operand = g_rand_int(t->rng);
        /* Most comparisons come out right; f->counter is not known yet */
        op->compare = g_rand_int_range(t->rng, 0, 4) == 0;
        op->is_inline = op->kind < OP_READ &&
                        g_rand_int_range(t->rng, 0, 5) == 0;
        if (op->is_inline) {
            op->len %= MAX_INLINE;
        }
        op->signalled = i == OPS - 1 || g_rand_int_range(t->rng, 0, 3);
        op->recv = takes_receive(op->kind) ? f->recvs++ : -1;
    }
}

static void post(Walk *t, Flow *f, uint8_t *mine, uint8_t *theirs)
{
    static const RdmaWrOpcode opcodes[OP_KINDS] = {
        [OP_SEND] = RDMA_WR_SEND,
        [OP_SEND_IMM] = RDMA_WR_SEND_WITH_IMM,
        [OP_WRITE] = RDMA_WR_RDMA_WRITE,
        [OP_WRITE_IMM] = RDMA_WR_RDMA_WRITE_WITH_IMM,
        [OP_READ] = RDMA_WR_RDMA_READ,
        [OP_FADD] = RDMA_WR_ATOMIC_FETCH_AND_ADD,
        [OP_CAS] = RDMA_WR_ATOMIC_CMP_AND_SWP,
    };

    for (uint32_t i = 0; i < OPS; i++) {
        Op *op = &f->op[i];
        bool is_atomic = op->kind == OP_FADD || op->kind == OP_CAS;
        bool goes_back = op->kind == OP_READ || is_atomic;
        uint32_t slot = i * SLOT;
        RdmaSge sge = goes_back ?
            net_sge(f->from, BACK + slot, is_atomic ? 8 : op->len) :
            net_sge(f->from, SRC + op->from, op->len);
        RdmaSendWr wr = net_wr(opcodes[op->kind], i, &sge);

        wr.send_flags = op->signalled ? RDMA_SEND_SIGNALED : 0;
        memcpy(wr.ex.imm_data, &i, sizeof(wr.ex.imm_data));
        if (op->is_inline) {
            wr.send_flags |= RDMA_SEND_INLINE;
            wr.inline_data = mine + SRC + op->from;
            wr.inline_len = op->len;
            wr.num_sge = 0;
        }
        if (is_atomic) {
            wr.wr.atomic.remote_addr = f->to->mr->iova + COUNTER;
            wr.wr.atomic.rkey = f->to->mr->rkey;
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
        } else {
            wr.wr.rdma.remote_addr = f->to->mr->iova +
                (op->kind == OP_READ ? SRC + op->from : TARGET + slot);
            wr.wr.rdma.rkey = f->to->mr->rkey;
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

static void post_receives(Flow *f)
{
    for (unsigned i = 0; i < f->recvs; i++) {
        net_post_recv(f->to, i, RECV + i * SLOT, SLOT);
    }
}

/* Memory of both sides: random, but for the counters. */
static void prepare(Walk *t)
{
    for (int i = 0; i < 2; i++) {
        for (size_t at = 0; at < NET_MR_SIZE; at += 4) {
            stl_le_p(t->model[i] + at, g_rand_int(t->rng));
        }
        stq_le_p(t->model[i] + COUNTER, t->flow[!i].counter);
        qrdma_mr_write(t->flow[i].from->mr, 0, t->model[i], NET_MR_SIZE);
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
    }
}

static bool all_done(Walk *t)
{
    for (int i = 0; i < 2; i++) {
        if (t->flow[i].sent < OPS ||
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
        /* The rest, which is of no use */
    }
    net_clock_step(&t->net, 100 * WALK_TIMEOUT_NS);
    walk_collect(t);
}

static void check_memory(Walk *t)
{
    g_autofree uint8_t *is = g_malloc(NET_MR_SIZE);

    for (int i = 0; i < 2; i++) {
        qrdma_mr_read(t->flow[i].from->mr, 0, is, NET_MR_SIZE);
        for (size_t at = 0; at < NET_MR_SIZE; at++) {
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
        plan(t, &t->flow[i]);
        if (with_receives) {
            post_receives(&t->flow[i]);
        }
    }
    for (int i = 0; i < 2; i++) {
        post(t, &t->flow[i], t->model[i], t->model[!i]);
    }
}

void walk_post_receives(Walk *t)
{
    for (int i = 0; i < 2; i++) {
        post_receives(&t->flow[i]);
    }
}

void walk_finish(Walk *t)
{
    run_to_the_end(t);
    g_assert_true(all_done(t));
    check_memory(t);
}
