/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Throughput of the engine alone: two engines on one thread, joined by memory.
 * Each frame is built with its ICRC, copied once into a contiguous buffer like
 * a netdev does, and checked. Then its payload is copied to the destination.
 *
 * Each figure comes with two lower bounds of the same run. The first computes
 * the CRC32 of the same bytes in pieces of the MTU, copies them once, and
 * computes the CRC32 again: no implementation of RoCE can be faster. The second
 * one ("link") copies twice, to the wire and from there, as the link of this
 * benchmark and every netdev makes it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <glib.h>
#include "rdma/roce.h"
#include "../../backends/rdma/roce/wire/wire.h"

#define REGION (4u << 20)
#define QPN 17                      /* the first */
#define MAX_QPS 4096
#define PDN 1
#define CQN 1
#define KEY 0x100
#define DEPTH 64
#define MAX_ROUNDS 101

typedef struct Peer {
    RoceEngine *engine;
    uint8_t *mem;
    uint64_t sent;                  /* completions */
    uint64_t recvs;                 /* receives taken by the engine */
    bool failed;
} Peer;

typedef struct Cell {
    const char *name;
    uint32_t opcode;
    RdmaMtu mtu;
    uint32_t size;                  /* bytes of a message */
    unsigned depth;                 /* outstanding messages of each QP */
    unsigned qps;
} Cell;

/* The send queue of a QP: messages since its creation */
typedef struct Sends {
    uint64_t posted;
    uint64_t pulled;
} Sends;

static const Cell *cell;            /* running now */
static Peer peers[2];
static Sends sends[MAX_QPS];        /* of peers[0] */
static RoceTxFrame tx_frame;
static uint8_t wire[ROCE_MAX_FRAME];
static int64_t virtual_now;

static unsigned opt_rounds = 9;
static unsigned opt_ms = 20;
static unsigned opt_messages;       /* of a round; 0: by opt_ms */
static unsigned opt_mtu;            /* only this one; 0: all */
static unsigned opt_size;

/* CPU time, so that other load of the machine does not count. */
static int64_t clock_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

static void *bench_map(void *opaque, uint64_t addr, uint64_t *len, bool write)
{
    Peer *p = opaque;

    return addr < REGION && *len <= REGION - addr ? p->mem + addr : NULL;
}

static void bench_unmap(void *opaque, void *host, uint64_t len, bool write,
                        uint64_t access_len)
{
}

static bool bench_atomic(void *opaque, uint64_t addr, uint32_t opcode,
                         uint64_t compare_add, uint64_t swap, uint64_t *old)
{
    return false;
}

static void bench_retire(void *opaque, uint32_t qpn, RdmaQueue queue,
                         uint32_t count)
{
}

static bool bench_complete(void *opaque, uint32_t cqn, const RdmaWc *wc,
                           bool solicited)
{
    Peer *p = opaque;

    if (wc->status != RDMA_WC_SUCCESS) {
        p->failed = true;
    } else if (!(wc->opcode & RDMA_WC_RECV)) {
        p->sent++;
    }
    return true;
}

static void bench_event(void *opaque, const RdmaEvent *event)
{
}

/* Place of message @n, counted over all QPs, in both memories */
static RdmaSge place_of(uint64_t n)
{
    return (RdmaSge) { n * cell->size % REGION, cell->size, KEY };
}

static RdmaNext bench_next_send(void *opaque, uint32_t qpn, bool flush,
                                RdmaSendWr *wr)
{
    static RdmaSge sge;
    Sends *s = &sends[qpn - QPN];
    uint64_t turn = s->pulled / cell->depth * cell->qps + qpn - QPN;

    if (opaque != &peers[0] || s->pulled == s->posted) {
        return RDMA_NEXT_NONE;
    }
    sge = place_of(turn * cell->depth + s->pulled % cell->depth);
    *wr = (RdmaSendWr) {
        .wr_id = s->pulled++,
        .opcode = cell->opcode,
        .send_flags = RDMA_SEND_SIGNALED,
        .num_sge = 1,
        .sg_list = &sge,
        .wr.rdma = { sge.addr, KEY },
    };
    return RDMA_NEXT_WR;
}

static void bench_put_back_send(void *opaque, uint32_t qpn,
                                const RdmaSendWr *wr)
{
    sends[qpn - QPN].pulled--;
}

/* The consumer always has a receive. */
static bool bench_next_recv(void *opaque, RdmaQueue queue, uint32_t id,
                            bool flush, RdmaRecvWr *wr)
{
    static RdmaSge sge;
    Peer *p = opaque;

    sge = place_of(p->recvs);
    *wr = (RdmaRecvWr) {
        .wr_id = p->recvs++,
        .num_sge = 1,
        .sg_list = &sge,
    };
    return true;
}

static void bench_wake(void *opaque)
{
}

static void must(int ret, const char *what)
{
    if (ret < 0) {
        fprintf(stderr, "roce-bench: %s: %s\n", what, strerror(-ret));
        exit(1);
    }
}

static void connect_qp(unsigned self, uint32_t qpn, RdmaMtu mtu)
{
    RoceEngine *e = peers[self].engine;
    RdmaQpInitAttr init = {
        .qpn = qpn,
        .pdn = PDN,
        .qp_type = RDMA_QPT_RC,
        .send_cqn = CQN,
        .recv_cqn = CQN,
        .cap = { DEPTH, 2 * DEPTH, 1, 1, 0 },
    };
    RdmaQpAttr attr = {
        .qp_state = RDMA_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = RDMA_ACCESS_REMOTE | RDMA_ACCESS_LOCAL_WRITE,
        .path_mtu = mtu,
        .dest_qp_num = qpn,
        .max_rd_atomic = 16,
        .max_dest_rd_atomic = 16,
        .timeout = 14,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .min_rnr_timer = 1,
        .ah_attr = {
            .dgid = { [10] = 0xff, 0xff, 10, 0, 0, 2 - self },
            .dmac = { 0x52, 0x54, 0, 0, 0, 2 - self },
            .ah_flags = 1,
            .port_num = 1,
        },
    };

    must(roce_qp_create(e, &init), "QP");
    must(roce_qp_modify(e, qpn, RDMA_QP_STATE | RDMA_QP_PKEY_INDEX |
                        RDMA_QP_PORT | RDMA_QP_ACCESS_FLAGS, &attr),
         "INIT");
    attr.qp_state = RDMA_QPS_RTR;
    must(roce_qp_modify(e, qpn, RDMA_QP_STATE | RDMA_QP_AV |
                        RDMA_QP_PATH_MTU | RDMA_QP_DEST_QPN |
                        RDMA_QP_RQ_PSN | RDMA_QP_MAX_DEST_RD_ATOMIC |
                        RDMA_QP_MIN_RNR_TIMER, &attr), "RTR");
    attr.qp_state = RDMA_QPS_RTS;
    must(roce_qp_modify(e, qpn, RDMA_QP_STATE | RDMA_QP_TIMEOUT |
                        RDMA_QP_RETRY_CNT | RDMA_QP_RNR_RETRY |
                        RDMA_QP_SQ_PSN | RDMA_QP_MAX_QP_RD_ATOMIC,
                        &attr), "RTS");
}

static void set_up(const Cell *c)
{
    static const RoceOps ops = {
        .map = bench_map,
        .unmap = bench_unmap,
        .atomic = bench_atomic,
        .consumer = {
            .retire = bench_retire,
            .complete = bench_complete,
            .event = bench_event,
            .next_send = bench_next_send,
            .put_back_send = bench_put_back_send,
            .next_recv = bench_next_recv,
        },
        .wake = bench_wake,
    };
    RoceConfig config = {
        .max_qp = QPN + MAX_QPS, .max_mr = 16, .gid_table_len = 4,
        .max_rd_atomic = 16,
    };
    unsigned i, j;

    cell = c;
    memset(sends, 0, sizeof(sends));
    for (i = 0; i < 2; i++) {
        Peer *p = &peers[i];
        const uint8_t mac[] = { 0x52, 0x54, 0, 0, 0, 1 + i };
        const uint8_t gid[] = {
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1 + i
        };
        RdmaMrAttr mr = {
            .mrn = KEY >> 8,
            .pdn = PDN,
            .type = RDMA_MR_USER,
            .access = RDMA_ACCESS_REMOTE | RDMA_ACCESS_LOCAL_WRITE,
            .lkey = KEY,
            .rkey = KEY,
            .length = REGION,
            .npages = REGION / RDMA_PAGE_SIZE,
            .pages = g_new(uint64_t, REGION / RDMA_PAGE_SIZE),
        };

        for (j = 0; j < mr.npages; j++) {
            mr.pages[j] = (uint64_t)j * RDMA_PAGE_SIZE;
        }
        p->sent = p->recvs = 0;
        p->failed = false;
        p->engine = roce_new(&config, &ops, p);
        roce_set_mac(p->engine, mac);
        roce_set_link_mtu(p->engine, 9000);
        roce_set_link(p->engine, true);
        must(roce_add_gid(p->engine, 0, gid, RDMA_NO_VLAN), "GID");
        must(roce_mr_create(p->engine, &mr), "MR");
        for (j = 0; j < c->qps; j++) {
            connect_qp(i, QPN + j, c->mtu);
        }
    }
}

static void tear_down(void)
{
    roce_free(peers[0].engine);
    roce_free(peers[1].engine);
}

/* Carry all frames of one side to the other. */
static bool carry(unsigned from)
{
    RoceEngine *e = peers[from].engine, *to = peers[!from].engine;
    bool moved = false;

    while (roce_poll_tx(e, virtual_now, &tx_frame)) {
        size_t len = 0;
        unsigned i;

        for (i = 0; i < tx_frame.iovcnt; i++) {
            memcpy(wire + len, tx_frame.iov[i].iov_base,
                   tx_frame.iov[i].iov_len);
            len += tx_frame.iov[i].iov_len;
        }
        roce_tx_done(e, &tx_frame);
        roce_rx(to, wire, len, virtual_now);
        moved = true;
    }
    return moved;
}

/* QPs take turns; each posts all of its outstanding messages. */
static void post_send(const Cell *c, uint64_t n)
{
    uint32_t qp = n / c->depth % c->qps;

    sends[qp].posted++;
    roce_kick(peers[0].engine, RDMA_SQ, QPN + qp);
}

/* Move @count messages; returns the time it took. */
static int64_t run_engine(const Cell *c, uint64_t count)
{
    uint64_t posted = peers[0].sent, target = posted + count;
    int64_t start;

    start = clock_ns();
    while (peers[0].sent < target) {
        unsigned room;
        bool moved;

        virtual_now += 1000;
        /* With several QPs, all messages complete before the next turn. */
        room = c->qps == 1 ? c->depth - (posted - peers[0].sent) :
               posted == peers[0].sent ? c->depth * c->qps : 0;
        while (posted < target && room--) {
            post_send(c, posted++);
        }
        moved = carry(0);
        moved |= carry(1);
        if (peers[0].failed || peers[1].failed) {
            fprintf(stderr, "roce-bench: %s: a message failed\n", c->name);
            exit(1);
        }
        if (!moved && peers[0].sent < target) {
            /* Expire timers at once, so that a peer does not wait for them */
            int64_t a = roce_next_deadline(peers[0].engine);
            int64_t b = roce_next_deadline(peers[1].engine);

            virtual_now = MAX(virtual_now, MIN(a, b));
            if (virtual_now == ROCE_NO_DEADLINE) {
                fprintf(stderr, "roce-bench: %s: stuck\n", c->name);
                exit(1);
            }
            roce_expire(peers[0].engine, virtual_now, virtual_now);
            roce_expire(peers[1].engine, virtual_now, virtual_now);
        }
    }
    return MAX(clock_ns() - start, 1);
}

/*
 * The lower bound is two CRCs and one copy. @link adds a copy, because the link
 * is not in the memory of either side.
 */
static int64_t run_floor(const Cell *c, uint64_t count, bool link)
{
    uint32_t piece = MIN(c->size, rdma_mtu_bytes(c->mtu));
    uint32_t sink = 0;
    int64_t start = clock_ns();
    uint64_t n;

    for (n = 0; n < count; n++) {
        uint64_t at = n * c->size % REGION;
        uint32_t done;

        for (done = 0; done < c->size; done += piece) {
            const uint8_t *src = peers[0].mem + at + done;
            uint8_t *dest = peers[1].mem + at + done;
            uint8_t *there = link ? wire : dest;

            sink ^= roce_icrc_add(0, src, piece);
            memcpy(there, src, piece);
            sink ^= roce_icrc_add(0, there, piece);
            if (link) {
                memcpy(dest, there, piece);
            }
        }
    }
    if (sink) {
        /* Both sides have the same bytes */
        fprintf(stderr, "roce-bench: the floor does not add up\n");
        exit(1);
    }
    return MAX(clock_ns() - start, 1);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *v, unsigned n)
{
    qsort(v, n, sizeof(*v), compare);
    return v[n / 2];
}

/* Messages that take about half a round. */
static uint64_t messages_of_round(const Cell *c)
{
    uint64_t count = (uint64_t)c->depth * c->qps;

    if (opt_messages) {
        return opt_messages;
    }
    while (run_engine(c, count) < opt_ms * INT64_C(500000)) {
        count *= 2;
    }
    return count;
}

static void run_cell(const Cell *c)
{
    double engine[MAX_ROUNDS], limit[MAX_ROUNDS], ratio[MAX_ROUNDS];
    double link[MAX_ROUNDS], ns, floor_ns;
    uint64_t count;
    unsigned i;

    if ((opt_mtu && opt_mtu != rdma_mtu_bytes(c->mtu)) ||
        (opt_size && opt_size != c->size)) {
        return;
    }
    set_up(c);
    count = messages_of_round(c);
    for (i = 0; i < opt_rounds; i++) {
        engine[i] = (double)run_engine(c, count) / count;
        limit[i] = (double)run_floor(c, count, false) / count;
        ratio[i] = limit[i] / engine[i];
        link[i] = (double)run_floor(c, count, true) / count / engine[i];
    }
    tear_down();

    ns = median(engine, opt_rounds);
    floor_ns = median(limit, opt_rounds);
    printf("%-10s %5u %8u %6u %10.1f %10.1f %6.2f %6.2f %12.0f %10.0f\n",
           c->name, rdma_mtu_bytes(c->mtu), c->size, c->depth,
           c->size * 1e3 / ns, c->size * 1e3 / floor_ns,
           median(ratio, opt_rounds), median(link, opt_rounds), 1e9 / ns, ns);
    fflush(stdout);
}

/* Short messages over many QPs, which no cache holds. */
static void run_many(void)
{
    static const unsigned counts[] = { 1, 16, 128, 1024, MAX_QPS };
    double one = 0;

    printf("\n%-10s %5s %8s %6s %12s %10s\n", "operation", "QPs", "bytes",
           "depth", "messages/s", "of one QP");
    for (unsigned n = 0; n < G_N_ELEMENTS(counts); n++) {
        Cell c = { "WRITE", RDMA_WR_RDMA_WRITE, RDMA_MTU_4096, 64, 16,
                   counts[n] };
        double ns[MAX_ROUNDS], each;
        uint64_t count;

        set_up(&c);
        count = messages_of_round(&c);
        for (unsigned i = 0; i < opt_rounds; i++) {
            ns[i] = (double)run_engine(&c, count) / count;
        }
        tear_down();
        each = median(ns, opt_rounds);
        one = n ? one : each;
        printf("%-10s %5u %8u %6u %12.0f %10.2f\n", c.name, c.qps, c.size,
               c.depth, 1e9 / each, one / each);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    static const uint32_t sizes[] = { 64, 4096, 65536, 1048576 };
    static const RdmaMtu mtus[] = { RDMA_MTU_1024, RDMA_MTU_4096 };
    static const struct {
        const char *name;
        uint32_t opcode;
    } operations[] = {
        { "WRITE", RDMA_WR_RDMA_WRITE },
        { "SEND", RDMA_WR_SEND },
        { "READ", RDMA_WR_RDMA_READ },
    };
    static char *only;
    static const GOptionEntry entries[] = {
        { "rounds", 'r', 0, G_OPTION_ARG_INT, &opt_rounds,
          "Rounds, of which the median counts", "N" },
        { "ms", 't', 0, G_OPTION_ARG_INT, &opt_ms,
          "Length of a round, milliseconds", "MS" },
        { "only", 'o', 0, G_OPTION_ARG_STRING, &only,
          "Only this operation: WRITE, SEND or READ", "NAME" },
        { "mtu", 'm', 0, G_OPTION_ARG_INT, &opt_mtu,
          "Only this MTU: 1024 or 4096", "BYTES" },
        { "size", 's', 0, G_OPTION_ARG_INT, &opt_size,
          "Only messages of this length", "BYTES" },
        { "messages", 'n', 0, G_OPTION_ARG_INT, &opt_messages,
          "Messages of a round, instead of a time", "N" },
        { NULL }
    };
    g_autoptr(GOptionContext) context =
        g_option_context_new("- throughput of the RoCE engine");
    g_autoptr(GError) err = NULL;
    unsigned op, mtu, size;

    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &err)) {
        fprintf(stderr, "roce-bench: %s\n", err->message);
        return 1;
    }
    opt_rounds = CLAMP(opt_rounds, 1, MAX_ROUNDS);
    opt_ms = MAX(opt_ms, 1);

    peers[0].mem = g_malloc(REGION);
    peers[1].mem = g_malloc(REGION);
    memset(peers[0].mem, 0x5a, REGION);
    memset(peers[1].mem, 0xa5, REGION);

    printf("%-10s %5s %8s %6s %10s %10s %6s %6s %12s %10s\n", "operation",
           "MTU", "bytes", "depth", "MB/s", "floor MB/s", "ratio", "link",
           "messages/s", "ns/message");
    for (op = 0; op < G_N_ELEMENTS(operations); op++) {
        if (only && strcmp(only, operations[op].name)) {
            continue;
        }
        for (mtu = 0; mtu < G_N_ELEMENTS(mtus); mtu++) {
            for (size = 0; size < G_N_ELEMENTS(sizes); size++) {
                Cell c = {
                    operations[op].name, operations[op].opcode, mtus[mtu],
                    sizes[size], sizes[size] > 65536 ? 4 : DEPTH, 1,
                };

                run_cell(&c);
            }
        }
        run_cell(&(Cell) { operations[op].name, operations[op].opcode,
                           RDMA_MTU_4096, 64, 1, 1 });
    }
    if (!only && !opt_mtu && !opt_size) {
        run_many();
    }
    g_free(peers[0].mem);
    g_free(peers[1].mem);
    g_free(only);
    return 0;
}
