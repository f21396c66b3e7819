/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Conversations of another implementation (rxe), replayed with our engine as
 * one side. The engine gets the captured requests of the other side, and must
 * answer as the captured side did.
 */
#include "../../backends/rdma/roce/wire/wire.h"
#include "wire-host.h"
#include "wire-pcap.h"

#define PDN 1
#define CQN 3
#define LOCAL_KEY 0x100
#define RECV_BYTES 16384
#define RECVS 64
#define GRH_BYTES ROCE_GRH_LEN

static GArray *frames;
static RocePacket *pkts;

typedef struct Region {
    uint32_t key;
    uint64_t start, end, page;
    uint64_t touched[16];           /* offsets of ATOMICs */
    unsigned n_touched;
} Region;

/* The expected contents of one receive WQE */
typedef struct Message {
    const RocePacket *last;
    GByteArray *data;
} Message;

/* One side of one QP. */
typedef struct Side {
    WireHost *host;
    uint32_t qpn;
    uint8_t transport;
    uint32_t mtu;
    GPtrArray *requests;            /* RocePacket, requests to this side */
    GPtrArray *answers;             /* captured answers of this side */
    unsigned answered;
    GArray *regions;
    GArray *messages;
    uint64_t recv_base;

    /* The WRITE in progress */
    uint64_t va;
    uint32_t rkey;
    GByteArray *data;
} Side;

static Region *find_region(Side *s, uint32_t key)
{
    unsigned i;

    for (i = 0; i < s->regions->len; i++) {
        Region *r = &g_array_index(s->regions, Region, i);

        if (r->key == key) {
            return r;
        }
    }
    return NULL;
}

static void region_copy(Side *s, uint32_t key, uint64_t va, void *buf,
                        uint64_t len, bool to_region)
{
    Region *r = find_region(s, key);

    g_assert_nonnull(r);
    wire_host_region_copy(s->host, r->page, r->start, va - r->start, buf, len,
                          to_region);
}

static void want_region(Side *s, uint32_t key, uint64_t va, uint64_t len)
{
    Region *r = find_region(s, key);

    if (r) {
        r->start = MIN(r->start, va);
        r->end = MAX(r->end, va + len);
    } else {
        Region fresh = { .key = key, .start = va, .end = va + len };

        g_array_append_val(s->regions, fresh);
    }
}

/* Derive the setup of this side from the frames. */
static void find_frames(Side *s, uint32_t qpn, const uint8_t *gid)
{
    unsigned i;

    for (i = 0; i < frames->len; i++) {
        RocePacket *p = &pkts[i];
        bool request = p->info->flags & ROCE_OP_REQUEST;

        /* rxe gave both ends of each connection the same QPN. */
        if (p->bth.dqpn != qpn) {
            continue;
        }
        if (request && !memcmp(p->path.dgid, gid, RDMA_GID_LEN)) {
            g_ptr_array_add(s->requests, p);
            s->transport = p->info->transport;
            s->mtu = p->payload_len > 1024 ? 4096 : s->mtu;
            if (p->info->flags & ROCE_OP_RETH) {
                want_region(s, p->bth.reth.rkey, p->bth.reth.va,
                            p->bth.reth.len);
            }
            if (p->info->flags & ROCE_OP_ATOMICETH) {
                want_region(s, p->bth.atomiceth.rkey, p->bth.atomiceth.va, 8);
            }
        }
        if (!request && !memcmp(p->path.sgid, gid, RDMA_GID_LEN)) {
            g_ptr_array_add(s->answers, p);
        }
    }
}

static void make_qp(Side *s)
{
    const RocePacket *first = g_ptr_array_index(s->requests, 0);
    RoceEngine *e = s->host->engine;
    bool ud = s->transport == ROCE_UD;
    bool rc = s->transport == ROCE_RC;
    RdmaQpInitAttr init = {
        .qpn = s->qpn,
        .pdn = PDN,
        .qp_type = rc ? RDMA_QPT_RC : ud ? RDMA_QPT_UD : RDMA_QPT_UC,
        .send_cqn = CQN,
        .recv_cqn = CQN,
        .cap = { 16, 64, 4, 4, 0 },
    };
    RdmaQpAttr attr = {
        .qp_state = RDMA_QPS_INIT,
        .port_num = 1,
        .qkey = first->bth.deth.qkey,
        .qp_access_flags = RDMA_ACCESS_REMOTE | RDMA_ACCESS_LOCAL_WRITE,
    };

    if (s->qpn == RDMA_QPN_GSI) {
        init.qp_type = RDMA_QPT_GSI;
    }
    g_assert_cmpint(roce_qp_create(e, &init), ==, 0);
    g_assert_cmpint(roce_qp_modify(e, s->qpn,
                                   RDMA_QP_STATE | RDMA_QP_PKEY_INDEX |
                                   RDMA_QP_PORT |
                                   (ud ? RDMA_QP_QKEY : RDMA_QP_ACCESS_FLAGS),
                                   &attr), ==, 0);

    attr.qp_state = RDMA_QPS_RTR;
    attr.path_mtu = s->mtu == 4096 ? RDMA_MTU_4096 : RDMA_MTU_1024;
    attr.dest_qp_num = s->qpn;
    attr.rq_psn = first->bth.psn;
    attr.max_dest_rd_atomic = 16;
    attr.min_rnr_timer = 12;
    attr.ah_attr.ah_flags = 1;
    attr.ah_attr.port_num = 1;
    attr.ah_attr.hop_limit = 64;
    memcpy(attr.ah_attr.dgid, first->path.sgid, RDMA_GID_LEN);
    memcpy(attr.ah_attr.dmac, first->path.smac, RDMA_MAC_LEN);
    g_assert_cmpint(roce_qp_modify(e, s->qpn,
        RDMA_QP_STATE |
        (ud ? 0 : RDMA_QP_AV | RDMA_QP_PATH_MTU | RDMA_QP_DEST_QPN |
                  RDMA_QP_RQ_PSN) |
        (rc ? RDMA_QP_MAX_DEST_RD_ATOMIC | RDMA_QP_MIN_RNR_TIMER : 0),
        &attr), ==, 0);
}

static void post_receives(Side *s)
{
    uint32_t i;

    s->recv_base = wire_host_add_region(s->host, LOCAL_KEY, PDN,
                                        RDMA_ACCESS_LOCAL_WRITE, 0,
                                        (uint64_t)RECVS * RECV_BYTES);
    for (i = 0; i < RECVS; i++) {
        /* Use two pieces that do not end at a packet boundary. */
        RdmaSge sge[2] = {
            { (uint64_t)i * RECV_BYTES, 1001, LOCAL_KEY },
            { (uint64_t)i * RECV_BYTES + 1001, RECV_BYTES - 1001, LOCAL_KEY },
        };
        RdmaRecvWr wr = { .wr_id = i, .num_sge = 2, .sg_list = sge };

        consumer_post_recv(s->host->consumer, s->qpn, &wr);
    }
}

static Side *side_new(uint32_t qpn, const uint8_t *gid)
{
    RoceConfig config = {
        .max_qp = 64, .max_mr = 64, .gid_table_len = 4, .max_rd_atomic = 16,
    };
    Side *s = g_new0(Side, 1);
    unsigned i;

    s->qpn = qpn;
    s->mtu = 1024;
    s->requests = g_ptr_array_new();
    s->answers = g_ptr_array_new();
    s->regions = g_array_new(false, true, sizeof(Region));
    s->messages = g_array_new(false, true, sizeof(Message));
    s->data = g_byte_array_new();
    find_frames(s, qpn, gid);
    if (!s->requests->len) {
        return s;
    }

    s->host = wire_host_new(&config, 4 << 20);
    s->host->scattered = true;
    roce_set_mac(s->host->engine, ((RocePacket *)
                 g_ptr_array_index(s->requests, 0))->path.dmac);
    roce_set_link_mtu(s->host->engine, 9000);
    roce_set_link(s->host->engine, true);
    g_assert_cmpint(roce_add_gid(s->host->engine, 0, gid, RDMA_NO_VLAN), ==, 0);

    for (i = 0; i < s->regions->len; i++) {
        Region *r = &g_array_index(s->regions, Region, i);

        r->page = wire_host_add_region(s->host, r->key, PDN,
                                       RDMA_ACCESS_REMOTE |
                                       RDMA_ACCESS_LOCAL_WRITE,
                                       r->start, r->end - r->start);
    }
    make_qp(s);
    post_receives(s);
    return s;
}

static void side_free(Side *s)
{
    unsigned i;

    for (i = 0; i < s->messages->len; i++) {
        g_byte_array_unref(g_array_index(s->messages, Message, i).data);
    }
    if (s->host) {
        wire_host_free(s->host);
    }
    g_ptr_array_unref(s->requests);
    g_ptr_array_unref(s->answers);
    g_array_unref(s->regions);
    g_array_unref(s->messages);
    g_byte_array_unref(s->data);
    g_free(s);
}

/* Before request @p, write the data that the captured side had in memory. */
static void prepare_memory(Side *s, const RocePacket *p)
{
    unsigned i;

    for (i = 0; i < s->answers->len; i++) {
        RocePacket *a = g_ptr_array_index(s->answers, i);
        uint32_t n = (a->bth.psn - p->bth.psn) & RDMA_24BIT_MASK;

        if (p->info->flags & ROCE_OP_READ_REQ &&
            a->info->flags & ROCE_OP_READ_RESP &&
            n * s->mtu < p->bth.reth.len) {
            region_copy(s, p->bth.reth.rkey, p->bth.reth.va + n * s->mtu,
                        (void *)a->payload, a->payload_len, true);
        }
        if (p->info->flags & ROCE_OP_ATOMIC && n == 0 &&
            a->info->flags & ROCE_OP_ATOMIC_ACK) {
            Region *r = find_region(s, p->bth.atomiceth.rkey);
            uint64_t orig = GUINT64_TO_LE(a->bth.atomic_ack);
            unsigned k = 0;

            while (k < r->n_touched &&
                   r->touched[k] != p->bth.atomiceth.va) {
                k++;
            }
            if (k == r->n_touched) {
                g_assert_cmpuint(k, <, G_N_ELEMENTS(r->touched));
                r->touched[r->n_touched++] = p->bth.atomiceth.va;
                region_copy(s, r->key, p->bth.atomiceth.va, &orig, 8, true);
            }
        }
    }
}

/* Check the effect of the request on memory. */
static void check_memory(Side *s, const RocePacket *p)
{
    uint32_t flags = p->info->flags;

    if (flags & (ROCE_OP_WRITE | ROCE_OP_SEND)) {
        if (flags & ROCE_OP_STARTS) {
            g_byte_array_set_size(s->data, 0);
        }
        if (flags & ROCE_OP_RETH) {
            s->va = p->bth.reth.va;
            s->rkey = p->bth.reth.rkey;
        }
        g_byte_array_append(s->data, p->payload, p->payload_len);
        if (!(flags & ROCE_OP_ENDS)) {
            return;
        }
    }
    if (flags & ROCE_OP_WRITE) {
        g_autofree uint8_t *got = g_malloc(s->data->len);

        region_copy(s, s->rkey, s->va, got, s->data->len, false);
        g_assert_cmpmem(got, s->data->len, s->data->data, s->data->len);
    }
    if (flags & ROCE_OP_SEND) {
        Message m = { p, g_byte_array_new() };

        g_byte_array_append(m.data, s->data->data, s->data->len);
        g_array_append_val(s->messages, m);
    }
    if (flags & ROCE_OP_ATOMIC) {
        RocePacket *a = g_ptr_array_index(s->answers, s->answered - 1);
        uint64_t want = a->bth.atomic_ack, got;

        if (p->bth.opcode == (ROCE_RC | ROCE_FETCH_ADD)) {
            want += p->bth.atomiceth.swap_add;
        } else if (want == p->bth.atomiceth.compare) {
            want = p->bth.atomiceth.swap_add;
        }
        region_copy(s, p->bth.atomiceth.rkey, p->bth.atomiceth.va, &got, 8,
                    false);
        g_assert_cmphex(GUINT64_FROM_LE(got), ==, want);
    }
}

static void check_answer(Side *s, const uint8_t *frame, size_t len)
{
    const RocePacket *want;
    RocePacket got;

    g_assert_cmpint(roce_parse(frame, len, &got), ==, ROCE_PARSE_OK);
    g_assert_true(roce_icrc_ok(&got));
    g_assert_cmpuint(s->answered, <, s->answers->len);
    want = g_ptr_array_index(s->answers, s->answered++);

    g_assert_cmpstr(got.info->name, ==, want->info->name);
    g_assert_cmphex(got.bth.psn, ==, want->bth.psn);
    g_assert_cmphex(got.bth.dqpn, ==, want->bth.dqpn);
    g_assert_cmphex(got.bth.pkey, ==, want->bth.pkey);
    g_assert_true(got.bth.se == want->bth.se);
    g_assert_true(got.bth.ack_req == want->bth.ack_req);
    g_assert_cmphex(got.bth.aeth.syndrome, ==, want->bth.aeth.syndrome);
    g_assert_cmpuint(got.bth.aeth.msn, ==, want->bth.aeth.msn);
    g_assert_cmphex(got.bth.atomic_ack, ==, want->bth.atomic_ack);
    g_assert_cmpmem(got.payload, got.payload_len + got.bth.pad,
                    want->payload, want->payload_len + want->bth.pad);

    g_assert_cmpmem(got.path.dgid, 16, want->path.dgid, 16);
    g_assert_cmpmem(got.path.sgid, 16, want->path.sgid, 16);
    g_assert_cmpmem(got.path.dmac, 6, want->path.dmac, 6);
    g_assert_cmpmem(got.path.smac, 6, want->path.smac, 6);
    g_assert_cmpuint(got.path.hop_limit, ==, want->path.hop_limit);
}

static void take_answers(Side *s, int64_t now)
{
    static RoceTxFrame tx;

    while (roce_poll_tx(s->host->engine, now, &tx)) {
        uint8_t frame[ROCE_MAX_FRAME];
        size_t len = 0;
        unsigned i;

        for (i = 0; i < tx.iovcnt; i++) {
            g_assert_cmpuint(tx.iov[i].iov_len, <=, sizeof(frame) - len);
            memcpy(frame + len, tx.iov[i].iov_base, tx.iov[i].iov_len);
            len += tx.iov[i].iov_len;
        }
        g_assert_cmpuint(len, ==, tx.size);
        check_answer(s, frame, len);
        roce_tx_done(s->host->engine, &tx);
    }
}

static void check_completions(Side *s)
{
    bool ud = s->transport == ROCE_UD;
    unsigned grh = ud ? GRH_BYTES : 0;
    unsigned i;

    g_assert_cmpuint(s->host->wcs->len, ==, s->messages->len);
    g_assert_cmpuint(s->host->retired[s->qpn][RDMA_RQ], ==, s->messages->len);
    for (i = 0; i < s->messages->len; i++) {
        const WireWc *w = &g_array_index(s->host->wcs, WireWc, i);
        const Message *m = &g_array_index(s->messages, Message, i);
        const RocePacket *p = m->last;
        uint32_t flags = (p->info->flags & ROCE_OP_IMM ?
                          RDMA_WC_WITH_IMM : 0) | (ud ? RDMA_WC_GRH : 0);
        uint8_t buf[RECV_BYTES];

        g_assert_cmpuint(w->cqn, ==, CQN);
        g_assert_true(w->solicited == p->bth.se);
        g_assert_cmpint(w->wc.status, ==, RDMA_WC_SUCCESS);
        g_assert_cmpint(w->wc.opcode, ==, RDMA_WC_RECV);
        g_assert_cmpuint(w->wc.wr_id, ==, i);
        g_assert_cmpuint(w->wc.qp_num, ==, s->qpn);
        g_assert_cmpuint(w->wc.byte_len, ==, grh + m->data->len);
        g_assert_cmphex(w->wc.wc_flags &
                        (RDMA_WC_WITH_IMM | RDMA_WC_WITH_INVALIDATE |
                         (ud ? RDMA_WC_GRH : 0)), ==, flags);
        if (flags & RDMA_WC_WITH_IMM) {
            g_assert_cmpmem(w->wc.ex.imm_data, 4, p->bth.imm, 4);
        }
        if (ud) {
            g_assert_cmphex(w->wc.src_qp, ==, p->bth.deth.sqpn);
        }

        wire_host_region_copy(s->host, s->recv_base, 0,
                              (uint64_t)i * RECV_BYTES, buf, sizeof(buf),
                              false);
        g_assert_cmpmem(buf + grh, m->data->len, m->data->data, m->data->len);
        if (ud) {
            uint8_t want[GRH_BYTES];
            unsigned skip = p->path.is_ipv4 ? 20 : 0;

            roce_grh(p, want);
            g_assert_cmpmem(buf + skip, 40 - skip, want + skip, 40 - skip);
        }
    }
}

/* Returns the number of answers that were compared. */
static unsigned replay(uint32_t qpn, const uint8_t *gid)
{
    Side *s = side_new(qpn, gid);
    int64_t now = 0;
    unsigned n, i;

    for (i = 0; i < s->requests->len; i++) {
        const RocePacket *p = g_ptr_array_index(s->requests, i);
        size_t hdr_len = roce_headers_len(p->path.is_ipv4, p->bth.opcode);
        const uint8_t *frame = p->payload - hdr_len;
        size_t len = hdr_len + p->payload_len + p->bth.pad + ROCE_ICRC_LEN;

        now += 10000;
        g_assert_true(roce_is_ours(s->host->engine, frame, 74));
        prepare_memory(s, p);
        roce_rx(s->host->engine, frame, len, now);
        take_answers(s, now);
        check_memory(s, p);
    }
    if (s->requests->len) {
        const RoceStats *stats = roce_stats(s->host->engine);

        check_completions(s);
        g_assert_cmpuint(s->answered, ==, s->answers->len);
        g_assert_cmpuint(s->host->maps, ==, 0);
        g_assert_cmpuint(stats->rx_frames, ==, s->requests->len);
        g_assert_cmpuint(stats->tx_frames, ==, s->answers->len);
        g_assert_cmpuint(stats->rx_dropped + stats->rx_malformed +
                         stats->rx_icrc_errors + stats->rx_duplicates +
                         stats->naks_sent + stats->rnr_naks_sent, ==, 0);
    }
    n = s->answered;
    side_free(s);
    return n;
}

/* Replay all conversations of one transport, from either end. */
static void test_answers(const void *opaque)
{
    uint8_t transport = GPOINTER_TO_UINT(opaque);
    g_autoptr(GHashTable) done =
        g_hash_table_new_full(g_bytes_hash, g_bytes_equal,
                              (GDestroyNotify)g_bytes_unref, NULL);
    unsigned answers = 0, responses = 0, i;

    for (i = 0; i < frames->len; i++) {
        const RocePacket *p = &pkts[i];
        uint8_t key[RDMA_GID_LEN + 4];

        if (p->info->transport != transport) {
            continue;
        }
        if (p->info->flags & ROCE_OP_RESPONSE) {
            responses++;
            continue;
        }
        memcpy(key, p->path.dgid, RDMA_GID_LEN);
        memcpy(key + RDMA_GID_LEN, &p->bth.dqpn, 4);
        if (g_hash_table_add(done, g_bytes_new(key, sizeof(key)))) {
            answers += replay(p->bth.dqpn, p->path.dgid);
        }
    }
    g_assert_cmpuint(g_hash_table_size(done), >, 3);
    g_assert_cmpuint(answers, ==, responses);
}

int main(int argc, char **argv)
{
    unsigned i;
    int ret;

    g_test_init(&argc, &argv, NULL);
    frames = wire_pcap_read_rxe();
    pkts = g_new(RocePacket, frames->len);
    for (i = 0; i < frames->len; i++) {
        WireFrame *f = &g_array_index(frames, WireFrame, i);

        g_assert_cmpint(roce_parse(f->data, f->len, &pkts[i]), ==,
                        ROCE_PARSE_OK);
    }

    g_test_add_data_func("/wire/replay/rc-is-answered-as-rxe-did",
                         GUINT_TO_POINTER(ROCE_RC), test_answers);
    g_test_add_data_func("/wire/replay/uc-is-received",
                         GUINT_TO_POINTER(ROCE_UC), test_answers);
    g_test_add_data_func("/wire/replay/ud-is-received",
                         GUINT_TO_POINTER(ROCE_UD), test_answers);

    ret = g_test_run();
    g_free(pkts);
    g_array_unref(frames);
    return ret;
}
