/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Congestion: several engines send to one through a switch in virtual time. The
 * port of the switch to the receiver has a queue. The switch marks frames by
 * RED, with the parameters of the DCQCN paper.
 */
#include <glib.h>
#include <string.h>
#include "rdma/roce.h"
#include "../../backends/rdma/roce/wire/wire.h"

#define SENDERS 8
#define SEC INT64_C(1000000000)
#define MS (SEC / 1000)
#define LINE_KBPS 10000000          /* of each link */
#define DELAY_NS 5000               /* of a link */
#define QUEUE_MAX (500 * 1024)      /* bytes; the switch drops more */
/* Bytes in the queue: no marks below MARK_FROM, all frames above MARK_ALL */
#define MARK_FROM (5 * 1024)
#define MARK_ALL (200 * 1024)
#define MARK_MOST 100               /* of 10000 frames, at MARK_ALL */

#define REGION (1u << 20)
#define KEY 0x100
#define MESSAGE 65536
#define DEPTH 8                     /* messages in progress */

typedef struct Net Net;

typedef struct Host {
    Net *net;
    RoceEngine *e;
    unsigned number;
    uint8_t *mem;
    uint64_t sent;                  /* messages */
    unsigned under_way;
    bool stopped;
    bool failed;
    int64_t free_at;                /* ns, end of the transfer to the switch */
    GQueue frames;                  /* on the link to the switch */
} Host;

typedef struct Frame {
    int64_t when;
    size_t len;
    uint8_t data[];
} Frame;

struct Net {
    Host host[SENDERS + 1];         /* the last one receives */
    GRand *rand;
    int64_t now;
    int64_t free_at;                /* ns, end of the last transfer */
    GQueue queue;                   /* at the switch */
    size_t queued, most_queued;     /* bytes */
    uint64_t carried;               /* bytes to the receiver */
    uint64_t dropped, marked;       /* frames */
};

static Host *receiver(Net *n)
{
    return &n->host[SENDERS];
}

static void *host_map(void *opaque, uint64_t addr, uint64_t *len, bool write)
{
    Host *h = opaque;

    return addr < REGION && *len <= REGION - addr ? h->mem + addr : NULL;
}

static void host_unmap(void *opaque, void *host, uint64_t len, bool write,
                       uint64_t access_len)
{
}

static bool host_atomic(void *opaque, uint64_t addr, uint32_t opcode,
                        uint64_t compare_add, uint64_t swap, uint64_t *old)
{
    return false;
}

static void host_retire(void *opaque, uint32_t qpn, RdmaQueue queue,
                        uint32_t count)
{
}

static bool host_complete(void *opaque, uint32_t cqn, const RdmaWc *wc,
                          bool solicited)
{
    Host *h = opaque;

    h->failed |= wc->status != RDMA_WC_SUCCESS;
    h->under_way--;
    h->sent++;
    return true;
}

static void host_event(void *opaque, const RdmaEvent *event)
{
}

static void host_wake(void *opaque)
{
}

/* WRITEs in sequence, DEPTH of them in progress */
static RdmaNext host_next_send(void *opaque, uint32_t qpn, bool flush,
                               RdmaSendWr *wr)
{
    static const RdmaSge sge = { 0, MESSAGE, KEY };
    Host *h = opaque;

    if (h->stopped || h->under_way == DEPTH) {
        return RDMA_NEXT_NONE;
    }
    h->under_way++;
    *wr = (RdmaSendWr) {
        .opcode = RDMA_WR_RDMA_WRITE,
        .send_flags = RDMA_SEND_SIGNALED,
        .num_sge = 1,
        .sg_list = &sge,
        .wr.rdma = { 0, KEY },
    };
    return RDMA_NEXT_WR;
}

static void host_put_back_send(void *opaque, uint32_t qpn,
                               const RdmaSendWr *wr)
{
    Host *h = opaque;

    h->under_way--;
}

static const RoceOps host_ops = {
    .map = host_map,
    .unmap = host_unmap,
    .atomic = host_atomic,
    .consumer = {
        .retire = host_retire,
        .complete = host_complete,
        .event = host_event,
        .next_send = host_next_send,
        .put_back_send = host_put_back_send,
    },
    .wake = host_wake,
};

static void host_gid(unsigned number, uint8_t gid[RDMA_GID_LEN])
{
    const uint8_t ip[4] = { 10, 0, 0, 1 + number };

    roce_gid_from_ipv4(gid, ip);
}

static void host_init(Net *n, unsigned number)
{
    const uint8_t mac[RDMA_MAC_LEN] = { 0x52, 0x54, 0, 0, 0, 1 + number };
    RoceConfig config = {
        .max_qp = 32, .max_mr = 4, .gid_table_len = 1, .max_rd_atomic = 4,
    };
    RdmaMrAttr mr = {
        .mrn = KEY >> 8,
        .pdn = 1,
        .type = RDMA_MR_USER,
        .access = RDMA_ACCESS_REMOTE | RDMA_ACCESS_LOCAL_WRITE,
        .lkey = KEY,
        .rkey = KEY,
        .length = REGION,
        .npages = REGION / RDMA_PAGE_SIZE,
        .pages = g_new(uint64_t, REGION / RDMA_PAGE_SIZE),
    };
    Host *h = &n->host[number];
    uint8_t gid[RDMA_GID_LEN];

    for (unsigned i = 0; i < mr.npages; i++) {
        mr.pages[i] = (uint64_t)i * RDMA_PAGE_SIZE;
    }
    h->net = n;
    h->number = number;
    h->mem = g_malloc0(REGION);
    h->e = roce_new(&config, &host_ops, h);
    g_queue_init(&h->frames);
    roce_set_mac(h->e, mac);
    roce_set_link_mtu(h->e, 9000);
    host_gid(number, gid);
    g_assert_cmpint(roce_add_gid(h->e, 0, gid, RDMA_NO_VLAN), ==, 0);
    g_assert_cmpint(roce_mr_create(h->e, &mr), ==, 0);
}

/* Connect a QP of @from to host @to. Sender n has QP 2 + n on both sides. */
static void connect_qp(Host *from, unsigned to, uint32_t qpn)
{
    RdmaQpInitAttr init = {
        .qpn = qpn,
        .pdn = 1,
        .qp_type = RDMA_QPT_RC,
        .cap = { 2 * DEPTH, 1, 1, 1, 0 },
    };
    RdmaQpAttr attr = {
        .qp_state = RDMA_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = RDMA_ACCESS_REMOTE | RDMA_ACCESS_LOCAL_WRITE,
        .path_mtu = RDMA_MTU_1024,
        .dest_qp_num = qpn,
        .max_rd_atomic = 4,
        .max_dest_rd_atomic = 4,
        .timeout = 12,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .min_rnr_timer = 1,
        .ah_attr = {
            .dmac = { 0x52, 0x54, 0, 0, 0, 1 + to },
            .hop_limit = 64,
            .port_num = 1,
        },
    };

    host_gid(to, attr.ah_attr.dgid);
    g_assert_cmpint(roce_qp_create(from->e, &init), ==, 0);
    g_assert_cmpint(roce_qp_modify(from->e, qpn, RDMA_QP_STATE |
                                   RDMA_QP_PKEY_INDEX | RDMA_QP_PORT |
                                   RDMA_QP_ACCESS_FLAGS, &attr), ==, 0);
    attr.qp_state = RDMA_QPS_RTR;
    g_assert_cmpint(roce_qp_modify(from->e, qpn, RDMA_QP_STATE | RDMA_QP_AV |
                                   RDMA_QP_PATH_MTU | RDMA_QP_DEST_QPN |
                                   RDMA_QP_RQ_PSN |
                                   RDMA_QP_MAX_DEST_RD_ATOMIC |
                                   RDMA_QP_MIN_RNR_TIMER, &attr), ==, 0);
    attr.qp_state = RDMA_QPS_RTS;
    g_assert_cmpint(roce_qp_modify(from->e, qpn, RDMA_QP_STATE |
                                   RDMA_QP_TIMEOUT | RDMA_QP_RETRY_CNT |
                                   RDMA_QP_RNR_RETRY | RDMA_QP_SQ_PSN |
                                   RDMA_QP_MAX_QP_RD_ATOMIC, &attr), ==, 0);
}

static Net *net_new(bool dcqcn)
{
    Net *n = g_new0(Net, 1);

    n->now = 1;
    n->rand = g_rand_new_with_seed(1);
    g_queue_init(&n->queue);
    for (unsigned i = 0; i <= SENDERS; i++) {
        host_init(n, i);
        roce_set_dcqcn(n->host[i].e, dcqcn ? LINE_KBPS : 0);
    }
    for (unsigned i = 0; i < SENDERS; i++) {
        n->host[i].stopped = true;
        connect_qp(&n->host[i], SENDERS, 2 + i);
        connect_qp(receiver(n), i, 2 + i);
    }
    return n;
}

static void net_free(Net *n)
{
    for (unsigned i = 0; i <= SENDERS; i++) {
        g_assert_false(n->host[i].failed);
        roce_free(n->host[i].e);
        g_queue_clear_full(&n->host[i].frames, g_free);
        g_free(n->host[i].mem);
    }
    g_queue_clear_full(&n->queue, g_free);
    g_rand_free(n->rand);
    g_free(n);
}

static int64_t wire_time(size_t bytes)
{
    return bytes * 8 * 1000000 / LINE_KBPS;
}

/* Set the ECN mark in the IP header, and update the checksum. */
static void set_ce_mark(Frame *f)
{
    uint8_t *ip = f->data + ROCE_ETH_LEN;
    uint32_t sum = 0;

    ip[1] |= ROCE_ECN_CE;
    ip[10] = ip[11] = 0;
    for (int i = 0; i < ROCE_IPV4_LEN; i += 2) {
        sum += ip[i] << 8 | ip[i + 1];
    }
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~((sum & 0xffff) + (sum >> 16));
    ip[10] = sum >> 8;
    ip[11] = sum;
}

static bool is_to_be_marked(Net *n, const Frame *f)
{
    unsigned of_10000 = 0;

    if ((f->data[ROCE_ETH_LEN + 1] & ROCE_ECN_MASK) != ROCE_ECN_ECT0 ||
        n->queued <= MARK_FROM) {
        return false;
    }
    if (n->queued > MARK_ALL) {
        return true;
    }
    of_10000 = (n->queued - MARK_FROM) * MARK_MOST / (MARK_ALL - MARK_FROM);
    return (unsigned)g_rand_int_range(n->rand, 0, 10000) < of_10000;
}

/* The switch receives a frame of a sender. */
static void forward(Net *n, Frame *f)
{
    if (n->queued + f->len > QUEUE_MAX) {
        n->dropped++;
        g_free(f);
        return;
    }
    if (is_to_be_marked(n, f)) {
        set_ce_mark(f);
        n->marked++;
    }
    n->queued += f->len;
    n->most_queued = MAX(n->most_queued, n->queued);
    n->free_at = MAX(n->free_at, n->now) + wire_time(f->len);
    f->when = n->free_at;
    g_queue_push_tail(&n->queue, f);
}

/* The PSN of a CNP is 0 (IBTA A17.9.3). */
static void check_cnp(const Frame *f)
{
    const uint8_t *bth = f->data + ROCE_ETH_LEN + ROCE_IPV4_LEN + ROCE_UDP_LEN;

    if (bth[0] == ROCE_CNP_OPCODE) {
        g_assert_cmpmem(bth + 9, 3, "\0\0", 3);
    }
}

/* Send frames of a host on its link, at most at the rate of the link. */
static void transmit(Net *n, Host *h)
{
    static RoceTxFrame tx;

    while (h->free_at <= n->now && roce_poll_tx(h->e, n->now, &tx)) {
        Frame *f = g_malloc(sizeof(*f) + tx.size);

        f->len = 0;
        for (unsigned i = 0; i < tx.iovcnt; i++) {
            memcpy(f->data + f->len, tx.iov[i].iov_base, tx.iov[i].iov_len);
            f->len += tx.iov[i].iov_len;
        }
        check_cnp(f);
        roce_tx_done(h->e, &tx);
        h->free_at = n->now + wire_time(f->len);
        f->when = h->free_at + DELAY_NS;
        g_queue_push_tail(&h->frames, f);
    }
}

static void post(Host *h)
{
    roce_kick(h->e, RDMA_SQ, 2 + h->number);
}

static int64_t first_arrival(const GQueue *frames)
{
    const Frame *f = g_queue_peek_head((GQueue *)frames);

    return f ? f->when : ROCE_NO_DEADLINE;
}

static int64_t next_time(Net *n)
{
    int64_t when = first_arrival(&n->queue);

    for (unsigned i = 0; i <= SENDERS; i++) {
        const Host *h = &n->host[i];

        when = MIN(when, roce_next_deadline(h->e));
        when = MIN(when, first_arrival(&h->frames));
        if (h->free_at > n->now) {
            when = MIN(when, h->free_at);
        }
    }
    return MAX(when, n->now);
}

static void deliver(Net *n)
{
    while (first_arrival(&n->queue) <= n->now) {
        g_autofree Frame *f = g_queue_pop_head(&n->queue);

        n->queued -= f->len;
        n->carried += f->len;
        roce_rx(receiver(n)->e, f->data, f->len, n->now);
    }
    for (unsigned i = 0; i <= SENDERS; i++) {
        GQueue *frames = &n->host[i].frames;

        while (first_arrival(frames) <= n->now) {
            Frame *f = g_queue_pop_head(frames);

            if (i < SENDERS) {
                forward(n, f);
                continue;
            }
            /* Frames to senders need no queue. */
            roce_rx(n->host[f->data[5] - 1].e, f->data, f->len, n->now);
            g_free(f);
        }
    }
}

static void run(Net *n, int64_t ns)
{
    int64_t end = n->now + ns;

    while (n->now < end) {
        for (unsigned i = 0; i <= SENDERS; i++) {
            Host *h = &n->host[i];

            if (i < SENDERS) {
                post(h);
            }
            if (roce_next_deadline(h->e) <= n->now) {
                roce_expire(h->e, n->now, n->now);
            }
            transmit(n, h);
        }
        n->now = MIN(next_time(n), end);
        deliver(n);
    }
}

/* The behaviour of the engines during a period */
typedef struct Result {
    double fairness;                /* Jain's index of the senders */
    double use;                     /* of the link to the receiver, 0..1 */
    double queue;                   /* the longest queue, bytes */
    uint64_t retransmits;
} Result;

static Result measure(Net *n, int64_t ns)
{
    double sum = 0, squares = 0;
    uint64_t before[SENDERS], retransmits = 0;
    uint64_t carried = n->carried;
    unsigned count = 0;

    n->most_queued = 0;
    for (unsigned i = 0; i < SENDERS; i++) {
        before[i] = n->host[i].sent;
        retransmits -= roce_stats(n->host[i].e)->retransmits;
    }
    run(n, ns);
    for (unsigned i = 0; i < SENDERS; i++) {
        double x = n->host[i].sent - before[i];

        retransmits += roce_stats(n->host[i].e)->retransmits;
        if (!n->host[i].stopped) {
            count++;
            sum += x;
            squares += x * x;
        }
    }
    return (Result) {
        .fairness = squares ? sum * sum / (count * squares) : 0,
        .use = (double)(n->carried - carried) / ns * SEC * 8 / 1000 /
               LINE_KBPS,
        .queue = n->most_queued,
        .retransmits = retransmits,
    };
}

static void print_result(const char *what, const Result *r)
{
    g_test_message("%s: fairness %.3f, %.3f of the link, queue of at most "
                   "%.0f bytes, %" G_GUINT64_FORMAT " retransmissions", what,
                   r->fairness, r->use, r->queue, r->retransmits);
}

static void start(Net *n, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        n->host[i].stopped = false;
    }
}

/* Without DCQCN the queue overflows all the time; with it, no frame is lost. */
static void test_eight_to_one(void)
{
    Net *n = net_new(false);
    Result without, with;

    start(n, 0, SENDERS);
    run(n, 20 * MS);
    without = measure(n, 50 * MS);
    print_result("without DCQCN", &without);
    g_assert_cmpuint(without.retransmits, >, 0);
    g_assert_cmpuint(n->dropped, >, 0);
    g_assert_cmpuint(n->marked, ==, 0);
    net_free(n);

    n = net_new(true);
    start(n, 0, SENDERS);
    run(n, 100 * MS);
    with = measure(n, 100 * MS);
    print_result("with DCQCN", &with);
    g_assert_cmpfloat(with.fairness, >, 0.9);
    g_assert_cmpfloat(with.use, >, 0.85);
    g_assert_cmpfloat(with.queue, <, 2 * MARK_ALL);
    g_assert_cmpuint(with.retransmits, ==, 0);
    g_assert_cmpuint(roce_ecn_stats(receiver(n)->e)->marked, >, 0);
    g_assert_cmpuint(roce_ecn_stats(receiver(n)->e)->cnps_sent, >, 0);
    g_assert_cmpuint(roce_ecn_stats(n->host[0].e)->cnps_received, >, 0);
    net_free(n);
}

/* A new sender gets its share; the others share that of one that stops. */
static void test_convergence(void)
{
    Net *n = net_new(true);
    Result r;

    start(n, 0, 1);
    run(n, 20 * MS);
    r = measure(n, 20 * MS);
    print_result("one", &r);
    g_assert_cmpfloat(r.use, >, 0.9);
    start(n, 1, 2);
    run(n, 100 * MS);
    r = measure(n, 100 * MS);
    print_result("two", &r);
    g_assert_cmpfloat(r.fairness, >, 0.9);
    g_assert_cmpfloat(r.use, >, 0.85);
    n->host[0].stopped = true;
    run(n, 100 * MS);
    r = measure(n, 20 * MS);
    print_result("the other one", &r);
    g_assert_cmpfloat(r.use, >, 0.9);
    net_free(n);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/roce/congestion/eight-to-one", test_eight_to_one);
    g_test_add_func("/roce/congestion/convergence", test_convergence);
    return g_test_run();
}
