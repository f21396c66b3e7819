/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Conversations of another implementation (rxe), replayed with our engine as
 * the requester. The engine gets the work requests that the captured requests
 * imply, and the captured answers. It must send the same requests and complete
 * them.
 */
#include "../../backends/rdma/roce/wire/wire.h"
#include "wire-host.h"
#include "wire-pcap.h"

#define PDN 1
#define CQN 3
#define KEY 0x100
#define REGION (1u << 20)

static GArray *frames;
static RocePacket *pkts;

typedef struct Requester {
    WireHost *host;
    uint32_t qpn;
    uint8_t gid[RDMA_GID_LEN];
    uint8_t transport;
    uint32_t mtu;
    GPtrArray *talk;                /* requests and their answers, in order */
    uint64_t page;                  /* DMA address of the region */
    uint64_t used;                  /* bytes of the region */
    unsigned sent;                  /* index in talk of the last one compared */
    unsigned requests;
    uint64_t posted;
    GByteArray *expected;           /* the region's final contents */
} Requester;

static bool is_request(const RocePacket *p)
{
    return p->info->flags & ROCE_OP_REQUEST;
}

static void find_conversation(Requester *r)
{
    unsigned i;

    for (i = 0; i < frames->len; i++) {
        RocePacket *p = &pkts[i];
        const uint8_t *requester = is_request(p) ? p->path.sgid
                                                 : p->path.dgid;

        if (p->bth.dqpn != r->qpn ||
            memcmp(requester, r->gid, RDMA_GID_LEN)) {
            continue;
        }
        g_ptr_array_add(r->talk, p);
        r->transport = p->info->transport;
        r->mtu = p->payload_len > 1024 ? 4096 : r->mtu;
    }
}

static void make_qp(Requester *r)
{
    const RocePacket *first = g_ptr_array_index(r->talk, 0);
    RoceEngine *e = r->host->engine;
    bool rc = r->transport == ROCE_RC, ud = r->transport == ROCE_UD;
    RdmaQpInitAttr init = {
        .qpn = r->qpn,
        .pdn = PDN,
        .qp_type = rc ? RDMA_QPT_RC : ud ? RDMA_QPT_UD : RDMA_QPT_UC,
        .sq_sig_all = true,
        .send_cqn = CQN,
        .recv_cqn = CQN,
        .cap = { 64, 1, 2, 1, 0 },
    };
    RdmaQpAttr attr = {
        .qp_state = RDMA_QPS_INIT,
        .port_num = 1,
        .qkey = first->bth.deth.qkey,
        .path_mtu = r->mtu == 4096 ? RDMA_MTU_4096 : RDMA_MTU_1024,
        .dest_qp_num = r->qpn,
        .sq_psn = first->bth.psn,
        .max_rd_atomic = 16,
        .timeout = 14,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .ah_attr = { .ah_flags = 1, .port_num = 1, .hop_limit = 64 },
    };

    if (r->qpn == RDMA_QPN_GSI) {
        init.qp_type = RDMA_QPT_GSI;
    }
    memcpy(attr.ah_attr.dgid, first->path.dgid, RDMA_GID_LEN);
    memcpy(attr.ah_attr.dmac, first->path.dmac, RDMA_MAC_LEN);

    g_assert_cmpint(roce_qp_create(e, &init), ==, 0);
    g_assert_cmpint(roce_qp_modify(e, r->qpn,
        RDMA_QP_STATE | RDMA_QP_PKEY_INDEX | RDMA_QP_PORT |
        (ud ? RDMA_QP_QKEY : RDMA_QP_ACCESS_FLAGS), &attr), ==, 0);
    attr.qp_state = RDMA_QPS_RTR;
    g_assert_cmpint(roce_qp_modify(e, r->qpn,
        RDMA_QP_STATE |
        (ud ? 0 : RDMA_QP_AV | RDMA_QP_PATH_MTU | RDMA_QP_DEST_QPN |
                  RDMA_QP_RQ_PSN) |
        (rc ? RDMA_QP_MAX_DEST_RD_ATOMIC | RDMA_QP_MIN_RNR_TIMER : 0),
        &attr), ==, 0);
    attr.qp_state = RDMA_QPS_RTS;
    g_assert_cmpint(roce_qp_modify(e, r->qpn,
        RDMA_QP_STATE | RDMA_QP_SQ_PSN |
        (rc ? RDMA_QP_TIMEOUT | RDMA_QP_RETRY_CNT | RDMA_QP_RNR_RETRY |
              RDMA_QP_MAX_QP_RD_ATOMIC : 0), &attr), ==, 0);
}

/* In the end, the region must have @len bytes of @data at @at. */
static void expect(Requester *r, uint64_t at, const void *data, size_t len)
{
    memcpy(r->expected->data + at, data, len);
}

/* Reserve @len bytes of the region for a message, at an odd address. */
static uint64_t reserve_room(Requester *r, uint64_t len)
{
    uint64_t at = r->used + 3;

    g_assert_cmpuint(len + 11, <=, REGION - at);
    r->used = (at + len + 7) & ~UINT64_C(7);
    return at;
}

/*
 * Write the payload of the message that begins at @i of the talk to the region.
 */
static const RocePacket *place_payload(Requester *r, unsigned i, uint64_t at,
                                       uint64_t *len)
{
    const RocePacket *p;

    *len = 0;
    do {
        do {
            p = g_ptr_array_index(r->talk, i++);
        } while (!is_request(p));
        wire_host_region_copy(r->host, r->page, 0, at + *len,
                              (void *)p->payload, p->payload_len, true);
        expect(r, at + *len, p->payload, p->payload_len);
        *len += p->payload_len;
    } while (!(p->info->flags & ROCE_OP_ENDS));
    return p;
}

/* Expect the data that the answers to a request return. */
static void expect_answers(Requester *r, const RocePacket *p, uint64_t at,
                           uint32_t len)
{
    uint32_t npsn = MAX(1, (len + r->mtu - 1) / r->mtu);
    unsigned i;

    for (i = 0; i < r->talk->len; i++) {
        const RocePacket *a = g_ptr_array_index(r->talk, i);
        uint32_t n = (a->bth.psn - p->bth.psn) & RDMA_24BIT_MASK;

        if (is_request(a) || n >= npsn) {
            continue;
        }
        if (a->info->flags & ROCE_OP_READ_RESP) {
            expect(r, at + n * r->mtu, a->payload, a->payload_len);
        }
        if (a->info->flags & ROCE_OP_ATOMIC_ACK) {
            uint64_t orig = GUINT64_TO_LE(a->bth.atomic_ack);

            expect(r, at, &orig, 8);
        }
    }
}

/* Post the WR of the message that begins at @i of the talk. */
static void post(Requester *r, unsigned i)
{
    const RocePacket *p = g_ptr_array_index(r->talk, i), *last = p;
    RdmaSge sge[2];
    RdmaSendWr wr = { .wr_id = r->posted++, .sg_list = sge, .num_sge = 1 };
    uint32_t flags = p->info->flags;
    uint64_t at = 0, len = 0;

    if (flags & ROCE_OP_ATOMIC) {
        len = 8;
        at = reserve_room(r, len);
        expect_answers(r, p, at, len);
        wr.opcode = p->bth.opcode == ROCE_COMPARE_SWAP ?
                    RDMA_WR_ATOMIC_CMP_AND_SWP : RDMA_WR_ATOMIC_FETCH_AND_ADD;
        wr.wr.atomic.remote_addr = p->bth.atomiceth.va;
        wr.wr.atomic.rkey = p->bth.atomiceth.rkey;
        if (wr.opcode == RDMA_WR_ATOMIC_CMP_AND_SWP) {
            wr.wr.atomic.compare_add = p->bth.atomiceth.compare;
            wr.wr.atomic.swap = p->bth.atomiceth.swap_add;
        } else {
            wr.wr.atomic.compare_add = p->bth.atomiceth.swap_add;
        }
    } else if (flags & ROCE_OP_READ_REQ) {
        len = p->bth.reth.len;
        at = reserve_room(r, len);
        expect_answers(r, p, at, len);
        wr.opcode = RDMA_WR_RDMA_READ;
        wr.wr.rdma.remote_addr = p->bth.reth.va;
        wr.wr.rdma.rkey = p->bth.reth.rkey;
    } else {
        bool imm;

        at = reserve_room(r, ROCE_MAX_PAYLOAD * 4);
        last = place_payload(r, i, at, &len);
        imm = last->info->flags & ROCE_OP_IMM;
        if (flags & ROCE_OP_WRITE) {
            g_assert_cmpuint(len, ==, p->bth.reth.len);
            wr.opcode = imm ? RDMA_WR_RDMA_WRITE_WITH_IMM
                            : RDMA_WR_RDMA_WRITE;
            wr.wr.rdma.remote_addr = p->bth.reth.va;
            wr.wr.rdma.rkey = p->bth.reth.rkey;
        } else {
            wr.opcode = imm ? RDMA_WR_SEND_WITH_IMM : RDMA_WR_SEND;
        }
        memcpy(wr.ex.imm_data, last->bth.imm, 4);
    }
    if (flags & ROCE_OP_DETH) {
        wr.wr.ud.remote_qpn = p->bth.dqpn;
        wr.wr.ud.remote_qkey = p->bth.deth.qkey;
        wr.wr.ud.av.ah_flags = 1;
        wr.wr.ud.av.port_num = 1;
        wr.wr.ud.av.hop_limit = p->path.hop_limit;
        memcpy(wr.wr.ud.av.dgid, p->path.dgid, RDMA_GID_LEN);
        memcpy(wr.wr.ud.av.dmac, p->path.dmac, RDMA_MAC_LEN);
    }
    if (last->bth.se) {
        wr.send_flags |= RDMA_SEND_SOLICITED;
    }

    /* Use two pieces if possible. */
    sge[0] = (RdmaSge) { at, len, KEY };
    if (len > 100) {
        wr.num_sge = 2;
        sge[0].length = 99;
        sge[1] = (RdmaSge) { at + 99, len - 99, KEY };
    }
    consumer_post_send(r->host->consumer, r->qpn, &wr);
    roce_kick(r->host->engine, RDMA_SQ, r->qpn);
}

static void check_request(Requester *r, const uint8_t *frame, size_t len)
{
    const RocePacket *want;
    RocePacket got;

    do {
        g_assert_cmpuint(r->sent, <, r->talk->len);
        want = g_ptr_array_index(r->talk, r->sent++);
    } while (!is_request(want));
    r->requests++;

    g_assert_cmpint(roce_parse(frame, len, &got), ==, ROCE_PARSE_OK);
    g_assert_true(roce_icrc_ok(&got));
    g_assert_cmpstr(got.info->name, ==, want->info->name);
    if (r->qpn != RDMA_QPN_GSI) {
        /* rxe used one PSN sequence of the GSI for both IP versions. */
        g_assert_cmphex(got.bth.psn, ==, want->bth.psn);
    }
    g_assert_cmphex(got.bth.dqpn, ==, want->bth.dqpn);
    g_assert_cmphex(got.bth.pkey, ==, want->bth.pkey);
    g_assert_true(got.bth.se == want->bth.se);
    g_assert_true(got.bth.migreq == want->bth.migreq);
    if (want->bth.ack_req && r->transport == ROCE_RC) {
        /* We may request ACKs more often. */
        g_assert_true(got.bth.ack_req);
    }
    g_assert_cmphex(got.bth.reth.va, ==, want->bth.reth.va);
    g_assert_cmphex(got.bth.reth.rkey, ==, want->bth.reth.rkey);
    g_assert_cmphex(got.bth.reth.len, ==, want->bth.reth.len);
    g_assert_cmphex(got.bth.atomiceth.va, ==, want->bth.atomiceth.va);
    g_assert_cmphex(got.bth.atomiceth.rkey, ==, want->bth.atomiceth.rkey);
    g_assert_cmphex(got.bth.atomiceth.swap_add, ==,
                    want->bth.atomiceth.swap_add);
    if (want->bth.opcode == (ROCE_RC | ROCE_COMPARE_SWAP)) {
        g_assert_cmphex(got.bth.atomiceth.compare, ==,
                        want->bth.atomiceth.compare);
    }
    g_assert_cmphex(got.bth.deth.qkey, ==, want->bth.deth.qkey);
    g_assert_cmphex(got.bth.deth.sqpn, ==, want->bth.deth.sqpn);
    g_assert_cmpmem(got.bth.imm, 4, want->bth.imm, 4);
    g_assert_cmpmem(got.payload, got.payload_len + got.bth.pad,
                    want->payload, want->payload_len + want->bth.pad);
    g_assert_cmpmem(got.path.dgid, 16, want->path.dgid, 16);
    g_assert_cmpmem(got.path.sgid, 16, want->path.sgid, 16);
    g_assert_cmpmem(got.path.dmac, 6, want->path.dmac, 6);
    g_assert_cmpmem(got.path.smac, 6, want->path.smac, 6);
    g_assert_cmphex(got.path.udp_sport, >=, 0xc000);
}

static void take_requests(Requester *r, int64_t now)
{
    static RoceTxFrame tx;

    while (roce_poll_tx(r->host->engine, now, &tx)) {
        uint8_t frame[ROCE_MAX_FRAME];
        size_t len = 0;
        unsigned i;

        for (i = 0; i < tx.iovcnt; i++) {
            g_assert_cmpuint(tx.iov[i].iov_len, <=, sizeof(frame) - len);
            memcpy(frame + len, tx.iov[i].iov_base, tx.iov[i].iov_len);
            len += tx.iov[i].iov_len;
        }
        check_request(r, frame, len);
        roce_tx_done(r->host->engine, &tx);
    }
}

static void check_results(Requester *r)
{
    g_autofree uint8_t *got = g_malloc(REGION);
    unsigned i;

    g_assert_cmpuint(r->host->wcs->len, ==, r->posted);
    g_assert_cmpuint(r->host->retired[r->qpn][RDMA_SQ], ==, r->posted);
    for (i = 0; i < r->posted; i++) {
        const RdmaWc *wc = &g_array_index(r->host->wcs, WireWc, i).wc;

        g_assert_cmpint(wc->status, ==, RDMA_WC_SUCCESS);
        g_assert_cmpuint(wc->wr_id, ==, i);
        g_assert_cmpuint(wc->qp_num, ==, r->qpn);
    }
    wire_host_region_copy(r->host, r->page, 0, 0, got, REGION, false);
    g_assert_cmpmem(got, REGION, r->expected->data, REGION);
    g_assert_cmpuint(r->host->maps, ==, 0);
    g_assert_cmpuint(roce_stats(r->host->engine)->retransmits, ==, 0);
    g_assert_cmpuint(roce_stats(r->host->engine)->timeouts, ==, 0);
}

/* Returns the number of requests that were compared. */
static unsigned replay(uint32_t qpn, const uint8_t *gid, const uint8_t *mac)
{
    RoceConfig config = {
        .max_qp = 64, .max_mr = 64, .gid_table_len = 4, .max_rd_atomic = 16,
    };
    Requester r = {
        .qpn = qpn,
        .mtu = 1024,
        .talk = g_ptr_array_new(),
        .expected = g_byte_array_new(),
    };
    int64_t now = 0;
    unsigned i;

    memcpy(r.gid, gid, RDMA_GID_LEN);
    find_conversation(&r);
    g_byte_array_set_size(r.expected, REGION);
    memset(r.expected->data, 0, REGION);

    r.host = wire_host_new(&config, 4 << 20);
    r.host->scattered = true;
    roce_set_mac(r.host->engine, mac);
    roce_set_link_mtu(r.host->engine, 9000);
    roce_set_link(r.host->engine, true);
    g_assert_cmpint(roce_add_gid(r.host->engine, 0, gid, RDMA_NO_VLAN), ==, 0);
    r.page = wire_host_add_region(r.host, KEY, PDN, RDMA_ACCESS_LOCAL_WRITE,
                                  0, REGION);
    make_qp(&r);

    for (i = 0; i < r.talk->len; i++) {
        const RocePacket *p = g_ptr_array_index(r.talk, i);
        size_t hdr_len = roce_headers_len(p->path.is_ipv4, p->bth.opcode);

        now += 10000;
        if (!is_request(p)) {
            roce_rx(r.host->engine, p->payload - hdr_len,
                    hdr_len + p->payload_len + p->bth.pad + ROCE_ICRC_LEN,
                    now);
        } else if (p->info->flags & ROCE_OP_STARTS) {
            post(&r, i);
        }
        take_requests(&r, now);
    }
    check_results(&r);

    wire_host_free(r.host);
    g_ptr_array_unref(r.talk);
    g_byte_array_unref(r.expected);
    return r.requests;
}

static void test_requests(const void *opaque)
{
    uint8_t transport = GPOINTER_TO_UINT(opaque);
    g_autoptr(GHashTable) done =
        g_hash_table_new_full(g_bytes_hash, g_bytes_equal,
                              (GDestroyNotify)g_bytes_unref, NULL);
    unsigned captured = 0, requests = 0, i;

    for (i = 0; i < frames->len; i++) {
        const RocePacket *p = &pkts[i];
        uint8_t key[RDMA_GID_LEN + 4];

        if (p->info->transport != transport || !is_request(p)) {
            continue;
        }
        captured++;
        memcpy(key, p->path.sgid, RDMA_GID_LEN);
        memcpy(key + RDMA_GID_LEN, &p->bth.dqpn, 4);
        if (g_hash_table_add(done, g_bytes_new(key, sizeof(key)))) {
            requests += replay(p->bth.dqpn, p->path.sgid, p->path.smac);
        }
    }
    g_assert_cmpuint(g_hash_table_size(done), >, 3);
    g_assert_cmpuint(requests, ==, captured);
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

    g_test_add_data_func("/wire/replay/rc-requests-are-those-of-rxe",
                         GUINT_TO_POINTER(ROCE_RC), test_requests);
    g_test_add_data_func("/wire/replay/uc-requests-are-those-of-rxe",
                         GUINT_TO_POINTER(ROCE_UC), test_requests);
    g_test_add_data_func("/wire/replay/ud-requests-are-those-of-rxe",
                         GUINT_TO_POINTER(ROCE_UD), test_requests);

    ret = g_test_run();
    g_free(pkts);
    g_array_unref(frames);
    return ret;
}
