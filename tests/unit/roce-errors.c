/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Each class of error: which completion and event it causes on which side,
 * which earlier work succeeds, and which later work is flushed.
 */
#include <string.h>
#include "roce-link.h"

/* Post valid work before and after the request @bad, on both sides. */
static void post_around(LinkPair *p, const RdmaSendWr *bad, RdmaWcStatus status)
{
    unsigned i;

    for (i = 0; i < 3; i++) {
        link_pair_post(p, RDMA_WR_RDMA_WRITE, i, 0, 3000);
    }
    link_post(p->a, p->aq, bad);
    for (i = 4; i < 7; i++) {
        link_pair_post(p, RDMA_WR_RDMA_WRITE, i, 0, 3000);
    }
    g_assert_true(link_run(p->l, LINK_FOREVER));

    for (i = 0; i < 3; i++) {
        link_expect(p->a, i, RDMA_WC_SUCCESS);
    }
    link_expect(p->a, bad->wr_id, status);
    for (i = 4; i < 7; i++) {
        link_expect(p->a, i, RDMA_WC_WR_FLUSH_ERR);
    }
    g_assert_cmpuint(link_wcs(p->a), ==, 0);
    g_assert_cmpint(link_state(p->a, p->aq), ==, RDMA_QPS_ERR);
    g_assert_cmpuint(p->a->retired[p->aq][RDMA_SQ], ==, 7);

    /* Later WQEs are flushed at once and retired. */
    link_pair_post(p, RDMA_WR_RDMA_WRITE, 8, 0, 10);
    g_assert_true(link_run(p->l, LINK_FOREVER));
    link_expect(p->a, 8, RDMA_WC_WR_FLUSH_ERR);
    g_assert_cmpuint(link_send_room(p->a, p->aq), ==, 64);
}

/* The responder has flushed its receive queue and raised @event. */
static void check_responder(LinkPair *p, int event)
{
    g_assert_cmpint(link_state(p->b, p->bq), ==, RDMA_QPS_ERR);
    link_expect(p->b, 1000, RDMA_WC_WR_FLUSH_ERR);
    link_expect(p->b, 1001, RDMA_WC_WR_FLUSH_ERR);
    g_assert_cmpuint(link_wcs(p->b), ==, 0);
    g_assert_cmpuint(p->b->events->len, ==, 1);
    g_assert_cmpuint(link_events(p->b, event), ==, 1);
    g_assert_cmpuint(p->a->events->len, ==, 0);
}

static LinkPair pair_with_recvs(LinkQpSpec spec)
{
    LinkPair p = link_pair(&spec);

    link_pair_recv(&p, 1000, 0, 100);
    link_pair_recv(&p, 1001, 0, 100);
    return p;
}

static RdmaSendWr rdma_wr(LinkPair *p, uint32_t opcode, const RdmaSge *sge,
                          uint64_t addr, uint32_t rkey)
{
    RdmaSendWr wr = link_wr(opcode, 3, sge);

    if (opcode == RDMA_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = addr;
        wr.wr.atomic.rkey = rkey;
    } else {
        wr.wr.rdma.remote_addr = addr;
        wr.wr.rdma.rkey = rkey;
    }
    return wr;
}

static const uint32_t rdma_opcodes[] = {
    RDMA_WR_RDMA_WRITE, RDMA_WR_RDMA_READ, RDMA_WR_ATOMIC_FETCH_AND_ADD,
};

typedef enum BadKey {
    KEY_UNKNOWN,
    KEY_ZERO,
    KEY_WRONG_VARIANT,
    KEY_OTHER_PD,
    KEY_LOCAL_ONLY,
    KEY_NOT_THIS_ACCESS,
    RANGE_BEFORE,
    RANGE_BEHIND,
    RANGE_WRAPS,
    KEY_INVALIDATED,
    NUM_BAD_KEYS,
} BadKey;

static const char *const bad_key_names[] = {
    "unknown", "zero", "wrong-variant", "other-pd", "local-only",
    "not-this-access", "range-before", "range-after", "range-wraps",
    "invalidated",
};

static uint32_t access_for(uint32_t opcode)
{
    switch (opcode) {
    case RDMA_WR_RDMA_WRITE:
        return RDMA_ACCESS_REMOTE_WRITE;
    case RDMA_WR_RDMA_READ:
        return RDMA_ACCESS_REMOTE_READ;
    default:
        return RDMA_ACCESS_REMOTE_ATOMIC;
    }
}

static void bad_rkey(BadKey how, uint32_t opcode)
{
    LinkPair p = pair_with_recvs(link_spec());
    LinkMr *other = NULL;
    RdmaSge sge = link_sge(p.amr, 0, 8);
    uint64_t addr = (p.bmr->attr.iova + 4096) & ~7ull;
    uint32_t rkey = p.bmr->attr.rkey;
    RdmaSendWr wr;

    switch (how) {
    case KEY_UNKNOWN:
        rkey = 200 << 8;
        break;
    case KEY_ZERO:
        rkey = 0;
        break;
    case KEY_WRONG_VARIANT:
        rkey ^= 1;
        break;
    case KEY_OTHER_PD:
        other = link_mr_pd(p.b, 8192, LINK_ALL_ACCESS, LINK_PDN + 1);
        break;
    case KEY_LOCAL_ONLY:
        other = link_mr(p.b, 8192, RDMA_ACCESS_LOCAL_WRITE);
        break;
    case KEY_NOT_THIS_ACCESS:
        other = link_mr(p.b, 8192, LINK_ALL_ACCESS & ~access_for(opcode));
        break;
    case RANGE_BEFORE:
        addr = (p.bmr->attr.iova - 1) & ~7ull;
        break;
    case RANGE_BEHIND:
        addr = (p.bmr->attr.iova + LINK_PAIR_MEM) & ~7ull;
        break;
    case RANGE_WRAPS:
        addr = -8ull;
        break;
    case KEY_INVALIDATED: {
        RdmaSendWr reg = link_wr(RDMA_WR_REG_MR, 77, NULL);
        RdmaSendWr inv = link_wr(RDMA_WR_LOCAL_INV, 78, NULL);

        other = link_fast_mr(p.b, 8192);
        link_mr_map(other);
        reg.wr.reg.mrn = other->attr.mrn;
        reg.wr.reg.key = other->attr.lkey;
        reg.wr.reg.access = LINK_ALL_ACCESS;
        inv.ex.invalidate_rkey = other->attr.lkey;
        link_post(p.b, p.bq, &reg);
        link_post(p.b, p.bq, &inv);
        link_run(p.l, LINK_FOREVER);
        link_expect(p.b, 77, RDMA_WC_SUCCESS);
        link_expect(p.b, 78, RDMA_WC_SUCCESS);
        break;
    }
    default:
        break;
    }
    if (other) {
        addr = (other->attr.iova + 4096) & ~7ull;
        rkey = other->attr.lkey;
    }
    wr = rdma_wr(&p, opcode, &sge, addr, rkey);
    post_around(&p, &wr, RDMA_WC_REM_ACCESS_ERR);
    check_responder(&p, RDMA_EVENT_QP_ACCESS_ERR);
    g_assert_cmpuint(p.b->atomics, ==, 0);
    if (other) {
        link_mr_free(other);
    }
    link_pair_free(&p);
}

static void test_bad_rkey(gconstpointer data)
{
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(rdma_opcodes); i++) {
        bad_rkey(GPOINTER_TO_UINT(data), rdma_opcodes[i]);
    }
}

static void test_invalidating_send_of_a_wrong_key(void)
{
    LinkPair p = pair_with_recvs(link_spec());
    RdmaSge sge = link_sge(p.amr, 0, 8);
    RdmaSendWr wr = link_wr(RDMA_WR_SEND_WITH_INV, 3, &sge);

    wr.ex.invalidate_rkey = p.bmr->attr.rkey;
    post_around(&p, &wr, RDMA_WC_REM_ACCESS_ERR);
    check_responder(&p, RDMA_EVENT_QP_ACCESS_ERR);
    link_pair_free(&p);
}

static void test_qp_grants_no_access(void)
{
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(rdma_opcodes); i++) {
        LinkPair p = pair_with_recvs(link_spec());
        RdmaSge sge = link_sge(p.amr, 0, 8);
        RdmaQpAttr attr = {
            .qp_access_flags = LINK_ALL_ACCESS & ~access_for(rdma_opcodes[i]),
        };
        RdmaSendWr wr = rdma_wr(&p, rdma_opcodes[i], &sge,
                                (p.bmr->attr.iova + 8) & ~7ull,
                                p.bmr->attr.rkey);

        g_assert_cmpint(roce_qp_modify(p.b->e, p.bq, RDMA_QP_ACCESS_FLAGS,
                                       &attr), ==, 0);
        if (rdma_opcodes[i] == RDMA_WR_RDMA_WRITE) {
            /* post_around() posts WRITEs, which this QP does not allow. */
            link_post(p.a, p.aq, &wr);
            g_assert_true(link_run(p.l, LINK_FOREVER));
            link_expect(p.a, 3, RDMA_WC_REM_INV_REQ_ERR);
        } else {
            post_around(&p, &wr, RDMA_WC_REM_INV_REQ_ERR);
        }
        check_responder(&p, RDMA_EVENT_QP_REQ_ERR);
        link_pair_free(&p);
    }
}

static void test_misaligned_atomic(void)
{
    unsigned off;

    for (off = 1; off < 8; off++) {
        LinkPair p = pair_with_recvs(link_spec());
        RdmaSge sge = link_sge(p.amr, 0, 8);
        RdmaSendWr wr = rdma_wr(&p, RDMA_WR_ATOMIC_FETCH_AND_ADD, &sge,
                                ((p.bmr->attr.iova + 8) & ~7ull) + off,
                                p.bmr->attr.rkey);

        post_around(&p, &wr, RDMA_WC_REM_INV_REQ_ERR);
        check_responder(&p, RDMA_EVENT_QP_REQ_ERR);
        g_assert_cmpuint(p.b->atomics, ==, 0);
        link_pair_free(&p);
    }
}

static void test_too_many_reads(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p;

    spec.dest_rd_atomic[1] = 2;
    p = pair_with_recvs(spec);
    /* The third request arrives before the first response is sent. */
    link_pair_post(&p, RDMA_WR_RDMA_READ, 1, 0, 50000);
    link_pair_post(&p, RDMA_WR_RDMA_READ, 2, 0, 50000);
    link_pair_post(&p, RDMA_WR_RDMA_READ, 3, 0, 50000);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    /* Accepted requests are answered nevertheless. */
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_expect(p.a, 2, RDMA_WC_SUCCESS);
    link_expect(p.a, 3, RDMA_WC_REM_INV_REQ_ERR);
    g_assert_true(link_same(p.amr, 0, p.bmr, 0, 50000));
    check_responder(&p, RDMA_EVENT_QP_REQ_ERR);
    link_pair_free(&p);
}

static void test_target_without_resources(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p;

    spec.dest_rd_atomic[1] = 0;
    p = pair_with_recvs(spec);
    link_pair_post(&p, RDMA_WR_RDMA_READ, 1, 0, 10);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    link_expect(p.a, 1, RDMA_WC_REM_INV_REQ_ERR);
    check_responder(&p, RDMA_EVENT_QP_REQ_ERR);
    link_pair_free(&p);
}

static void test_receive_buffer_too_short(gconstpointer data)
{
    uint32_t len = GPOINTER_TO_UINT(data);
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    RdmaSge sge = link_sge(p.amr, 0, len);
    RdmaSendWr wr = link_wr(RDMA_WR_SEND, 3, &sge);

    link_set(p.bmr, 0xee);
    link_fill(p.amr, 9);
    link_pair_recv(&p, 1000, 4096, len - 1);
    link_pair_recv(&p, 1001, 0, 100);
    post_around(&p, &wr, RDMA_WC_REM_INV_REQ_ERR);
    link_expect(p.b, 1000, RDMA_WC_LOC_LEN_ERR);
    link_expect(p.b, 1001, RDMA_WC_WR_FLUSH_ERR);
    g_assert_cmpuint(link_wcs(p.b), ==, 0);
    g_assert_cmpuint(p.b->events->len, ==, 0);
    g_assert_cmpint(link_state(p.b, p.bq), ==, RDMA_QPS_ERR);
    /* No byte after the buffer was written. */
    g_assert_false(link_same(p.amr, len - 1, p.bmr, 4096 + len - 1, 1));
    link_pair_free(&p);
}

static void test_receive_key_bad(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    LinkMr *readonly = link_mr(p.b, 4096, 0);
    RdmaSge sge = link_sge(p.amr, 0, 100);
    RdmaSendWr wr = link_wr(RDMA_WR_SEND, 3, &sge);

    link_post_recv(p.b, p.bq, 1000, link_sge(readonly, 0, 4096));
    link_pair_recv(&p, 1001, 0, 100);
    post_around(&p, &wr, RDMA_WC_REM_OP_ERR);
    link_expect(p.b, 1000, RDMA_WC_LOC_PROT_ERR);
    link_expect(p.b, 1001, RDMA_WC_WR_FLUSH_ERR);
    g_assert_cmpint(link_state(p.b, p.bq), ==, RDMA_QPS_ERR);
    link_mr_free(readonly);
    link_pair_free(&p);
}

static void test_receive_wqe_undecodable(void)
{
    static const uint32_t opcodes[] = {
        RDMA_WR_SEND, RDMA_WR_RDMA_WRITE_WITH_IMM,
    };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(opcodes); i++) {
        LinkQpSpec spec = link_spec();
        LinkPair p = link_pair(&spec);
        RdmaRecvWr recv = { .wr_id = 1000, .status = RDMA_WC_LOC_QP_OP_ERR };
        RdmaSge sge = link_sge(p.amr, 0, 100);
        RdmaSendWr wr = rdma_wr(&p, opcodes[i], &sge, p.bmr->attr.iova,
                                p.bmr->attr.rkey);

        consumer_post_recv(p.b->consumer, p.bq, &recv);
        post_around(&p, &wr, RDMA_WC_REM_OP_ERR);
        link_expect(p.b, 1000, RDMA_WC_LOC_QP_OP_ERR);
        link_pair_free(&p);
    }
}

static void test_read_of_memory_that_is_gone(void)
{
    unsigned page;

    for (page = 0; page < 3; page++) {
        LinkPair p = pair_with_recvs(link_spec());
        RdmaSge sge = link_sge(p.amr, 0, 12000);
        RdmaSendWr wr = rdma_wr(&p, RDMA_WR_RDMA_READ, &sge,
                                p.bmr->attr.iova + 8192, p.bmr->attr.rkey);

        link_set(p.bmr, 0xaa);
        link_set(p.amr, 0xee);
        p.b->hole = link_dma(p.bmr, 8192 + page * 4096) & ~4095ull;
        post_around(&p, &wr, RDMA_WC_REM_OP_ERR);
        check_responder(&p, RDMA_EVENT_QP_FATAL);
        p.b->hole = UINT64_MAX;
        /* Data before the hole was written correctly, and no data after it. */
        g_assert_true(page == 0 || link_same(p.amr, 0, p.bmr, 8192, 1024));
        g_assert_false(link_same(p.amr, 11999, p.bmr, 8192 + 11999, 1));
        link_pair_free(&p);
    }
}

static void test_write_to_memory_that_is_gone(void)
{
    LinkPair p = pair_with_recvs(link_spec());
    RdmaSge sge = link_sge(p.amr, 0, 12000);
    RdmaSendWr wr = rdma_wr(&p, RDMA_WR_RDMA_WRITE, &sge,
                            p.bmr->attr.iova + 8192, p.bmr->attr.rkey);

    p.b->hole = link_dma(p.bmr, 8192 + 4096) & ~4095ull;
    post_around(&p, &wr, RDMA_WC_REM_OP_ERR);
    check_responder(&p, RDMA_EVENT_QP_FATAL);
    link_pair_free(&p);
}

static void test_atomic_on_memory_that_is_gone(void)
{
    LinkPair p = pair_with_recvs(link_spec());
    RdmaSge sge = link_sge(p.amr, 0, 8);
    uint64_t addr = (p.bmr->attr.iova + 8192) & ~7ull;
    RdmaSendWr wr = rdma_wr(&p, RDMA_WR_ATOMIC_FETCH_AND_ADD, &sge, addr,
                            p.bmr->attr.rkey);

    p.b->hole = link_dma(p.bmr, addr - p.bmr->attr.iova) & ~4095ull;
    post_around(&p, &wr, RDMA_WC_REM_OP_ERR);
    check_responder(&p, RDMA_EVENT_QP_FATAL);
    link_pair_free(&p);
}

/* Local errors: no packet of the bad request may reach the peer. */
static void local_error(LinkPair *p, const RdmaSendWr *wr,
                        RdmaWcStatus status)
{
    post_around(p, wr, status);
    g_assert_cmpint(link_state(p->b, p->bq), ==, RDMA_QPS_RTS);
    g_assert_cmpuint(link_wcs(p->b), ==, 0);
    g_assert_cmpuint(p->b->events->len, ==, 0);
    g_assert_cmpuint(p->a->events->len, ==, 0);
    link_pair_free(p);
}

static void test_local_key_bad(void)
{
    static const uint32_t opcodes[] = {
        RDMA_WR_SEND, RDMA_WR_RDMA_WRITE, RDMA_WR_RDMA_READ,
        RDMA_WR_ATOMIC_FETCH_AND_ADD,
    };
    unsigned i, how;

    for (i = 0; i < G_N_ELEMENTS(opcodes); i++) {
        for (how = 0; how < 5; how++) {
            LinkPair p = pair_with_recvs(link_spec());
            LinkMr *mr = p.amr;
            RdmaSge sge[2];
            RdmaSendWr wr;

            if (how == 3) {
                mr = link_mr_pd(p.a, 4096, LINK_ALL_ACCESS, LINK_PDN + 1);
            } else if (how == 4) {
                if (opcodes[i] == RDMA_WR_SEND ||
                    opcodes[i] == RDMA_WR_RDMA_WRITE) {
                    /*
                     * Reading local memory needs no access flag (IBTA
                     * 10.6.3.1).
                     */
                    link_pair_free(&p);
                    continue;
                }
                mr = link_mr(p.a, 4096, RDMA_ACCESS_REMOTE_READ);
            }
            /*
             * The second SGE is bad. No data of the first one may be sent,
             * either.
             */
            sge[0] = link_sge(p.amr, 0, 4);
            sge[1] = link_sge(mr, 100, 4);
            sge[1].lkey ^= how == 0;
            sge[1].lkey += (how == 1) << 20;
            sge[1].addr -= (how == 2) * 101;
            wr = rdma_wr(&p, opcodes[i], sge, p.bmr->attr.iova,
                         p.bmr->attr.rkey);
            wr.num_sge = 2;
            if (mr != p.amr) {
                post_around(&p, &wr, RDMA_WC_LOC_PROT_ERR);
                link_mr_free(mr);
                link_pair_free(&p);
            } else {
                local_error(&p, &wr, RDMA_WC_LOC_PROT_ERR);
            }
        }
    }
}

static void test_local_memory_gone_during_message(void)
{
    LinkPair p = pair_with_recvs(link_spec());
    RdmaSge sge = link_sge(p.amr, 8192, 12000);
    RdmaSendWr wr = rdma_wr(&p, RDMA_WR_RDMA_WRITE, &sge,
                            p.bmr->attr.iova, p.bmr->attr.rkey);

    p.a->hole = link_dma(p.amr, 8192 + 4096) & ~4095ull;
    local_error(&p, &wr, RDMA_WC_LOC_PROT_ERR);
}

/*
 * A request fails within a packet, while an earlier one is unacknowledged. The
 * QP still answers the peer's READ, and the answer has no data of the failed
 * packet.
 */
static void test_local_memory_gone_during_answer(void)
{
    static const RdmaMtu mtus[] = { RDMA_MTU_256, RDMA_MTU_4096 };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(mtus); i++) {
        LinkQpSpec spec = link_spec();
        RdmaSge sge[2];
        RdmaSendWr wr;
        const RoceStats *stats;
        LinkPair p;

        spec.mtu = mtus[i];
        p = pair_with_recvs(spec);
        sge[0] = link_sge(p.bmr, 40960, 40960);
        wr = rdma_wr(&p, RDMA_WR_RDMA_READ, sge, p.amr->attr.iova,
                     p.amr->attr.rkey);
        link_post(p.b, p.bq, &wr);
        link_pump(p.l);
        p.l->hold = true;
        link_run(p.l, LINK_MS);
        p.l->hold = false;

        link_pair_post(&p, RDMA_WR_RDMA_WRITE, 1, 81920, 100);
        p.a->hole = link_dma(p.amr, 65536) & ~4095ull;
        sge[0] = link_sge(p.amr, 0, (128 << mtus[i]) - 1);
        sge[1] = link_sge(p.amr, 65536, 8);
        wr = rdma_wr(&p, RDMA_WR_RDMA_WRITE, sge, p.bmr->attr.iova,
                     p.bmr->attr.rkey);
        wr.num_sge = 2;
        link_post(p.a, p.aq, &wr);
        g_assert_true(link_run(p.l, LINK_FOREVER));

        link_expect(p.b, wr.wr_id, RDMA_WC_SUCCESS);
        g_assert_true(link_same(p.amr, 0, p.bmr, 40960, 40960));
        link_expect(p.a, 1, RDMA_WC_SUCCESS);
        link_expect(p.a, wr.wr_id, RDMA_WC_LOC_PROT_ERR);
        stats = roce_stats(p.b->e);
        g_assert_cmpuint(stats->rx_malformed + stats->rx_icrc_errors, ==, 0);
        link_pair_free(&p);
    }
}

static void test_read_destination_gone(void)
{
    LinkPair p = pair_with_recvs(link_spec());
    RdmaSge sge = link_sge(p.amr, 8192, 12000);
    RdmaSendWr wr = rdma_wr(&p, RDMA_WR_RDMA_READ, &sge,
                            p.bmr->attr.iova, p.bmr->attr.rkey);

    p.a->hole = link_dma(p.amr, 8192 + 4096) & ~4095ull;
    local_error(&p, &wr, RDMA_WC_LOC_PROT_ERR);
}

static void test_local_length(void)
{
    LinkPair p = pair_with_recvs(link_spec());
    RdmaSge sge[3] = {
        link_sge(p.amr, 0, 1u << 30), link_sge(p.amr, 0, 1u << 30),
        link_sge(p.amr, 0, 1),
    };
    RdmaSendWr wr = rdma_wr(&p, RDMA_WR_RDMA_WRITE, sge, p.bmr->attr.iova,
                            p.bmr->attr.rkey);

    wr.num_sge = 3;
    local_error(&p, &wr, RDMA_WC_LOC_LEN_ERR);
}

static void test_atomic_length(void)
{
    static const uint32_t lens[] = { 0, 7, 9, 16 };
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(lens); i++) {
        LinkPair p = pair_with_recvs(link_spec());
        RdmaSge sge = link_sge(p.amr, 0, lens[i]);
        RdmaSendWr wr = rdma_wr(&p, RDMA_WR_ATOMIC_FETCH_AND_ADD, &sge,
                                p.bmr->attr.iova, p.bmr->attr.rkey);

        local_error(&p, &wr, RDMA_WC_LOC_LEN_ERR);
    }
}

static void test_inline_too_long(void)
{
    LinkPair p = pair_with_recvs(link_spec());
    g_autofree uint8_t *data = g_malloc0(3001);
    RdmaSendWr wr = link_wr(RDMA_WR_SEND, 3, NULL);

    wr.send_flags |= RDMA_SEND_INLINE;
    wr.inline_data = data;
    wr.inline_len = 3001;
    local_error(&p, &wr, RDMA_WC_LOC_QP_OP_ERR);
}

static void test_inline_data_and_sges(void)
{
    LinkPair p = pair_with_recvs(link_spec());
    RdmaSge sge = link_sge(p.amr, 0, 8);
    RdmaSendWr wr = link_wr(RDMA_WR_SEND, 3, &sge);
    uint8_t data[8] = {};

    wr.send_flags |= RDMA_SEND_INLINE;
    wr.inline_data = data;
    wr.inline_len = sizeof(data);
    local_error(&p, &wr, RDMA_WC_LOC_QP_OP_ERR);
}

static void test_bad_operation(void)
{
    static const uint32_t opcodes[] = {
        10, 12, 13, 31, RDMA_WR_REG_MR + 1, 0x80000000u, UINT32_MAX,
    };
    LinkPair p;
    RdmaSendWr wr;
    RdmaSge sge;
    unsigned i;

    for (i = 0; i < G_N_ELEMENTS(opcodes); i++) {
        p = pair_with_recvs(link_spec());
        wr = link_wr(opcodes[i], 3, NULL);
        local_error(&p, &wr, RDMA_WC_LOC_QP_OP_ERR);
    }
    /* Unknown flags */
    p = pair_with_recvs(link_spec());
    wr = link_wr(RDMA_WR_SEND, 3, NULL);
    wr.send_flags |= 1u << 5;
    local_error(&p, &wr, RDMA_WC_LOC_QP_OP_ERR);
    /* Inline data of an operation without payload */
    p = pair_with_recvs(link_spec());
    wr = link_wr(RDMA_WR_RDMA_READ, 3, NULL);
    wr.send_flags |= RDMA_SEND_INLINE;
    local_error(&p, &wr, RDMA_WC_LOC_QP_OP_ERR);
    /* More SGEs than the QP was created with */
    p = pair_with_recvs(link_spec());
    sge = link_sge(p.amr, 0, 1);
    wr = link_wr(RDMA_WR_SEND, 3, &sge);
    wr.num_sge = 81;
    local_error(&p, &wr, RDMA_WC_LOC_QP_OP_ERR);
    /* A WQE that the device could not decode */
    p = pair_with_recvs(link_spec());
    wr = link_wr(12345, 3, NULL);
    wr.status = RDMA_WC_LOC_EEC_OP_ERR;
    local_error(&p, &wr, RDMA_WC_LOC_EEC_OP_ERR);
}

static void test_memory_operation_fails(void)
{
    unsigned how;

    for (how = 0; how < 8; how++) {
        LinkPair p = pair_with_recvs(link_spec());
        LinkMr *mr = link_fast_mr(p.a, 5000);
        RdmaSendWr wr = link_wr(RDMA_WR_REG_MR, 3, NULL);

        wr.wr.reg.mrn = mr->attr.mrn;
        wr.wr.reg.key = mr->attr.lkey;
        wr.wr.reg.access = LINK_ALL_ACCESS;
        if (how != 0) {
            link_mr_map(mr);
        }
        switch (how) {
        case 1:
            wr.wr.reg.key += 1 << 8;
            break;
        case 2:
            wr.wr.reg.access = RDMA_ACCESS_REMOTE_WRITE;
            break;
        case 7:
            wr.wr.reg.access = RDMA_ACCESS_REMOTE_ATOMIC;
            break;
        case 3:
            wr.wr.reg.mrn = p.amr->attr.mrn;
            wr.wr.reg.key = p.amr->attr.lkey;
            break;
        case 4:
            wr.wr.reg.mrn = UINT32_MAX;
            break;
        case 5:
            wr = link_wr(RDMA_WR_LOCAL_INV, 3, NULL);
            wr.ex.invalidate_rkey = p.amr->attr.lkey;
            break;
        case 6:
            wr = link_wr(RDMA_WR_LOCAL_INV, 3, NULL);
            wr.ex.invalidate_rkey = mr->attr.lkey;
            break;
        default:
            break;
        }
        post_around(&p, &wr, RDMA_WC_MW_BIND_ERR);
        g_assert_cmpint(link_state(p.b, p.bq), ==, RDMA_QPS_RTS);
        link_mr_free(mr);
        link_pair_free(&p);
    }
}

static void test_failed_cq_moves_its_qps_to_err(void)
{
    LinkQpSpec spec = link_spec();
    LinkPair p = link_pair(&spec);
    unsigned before, i;

    /* Another QP, whose receive CQ is the CQ that will fail */
    RdmaQpInitAttr init = {
        .qpn = 9, .pdn = LINK_PDN, .qp_type = RDMA_QPT_RC,
        .send_cqn = 60, .recv_cqn = LINK_SEND_CQ(p.aq), .cap = spec.cap,
    };
    RdmaQpAttr attr;
    uint32_t mask = link_attr(p.l, &spec, 0, RDMA_QPS_INIT, &attr);

    g_assert_cmpint(roce_qp_create(p.a->e, &init), ==, 0);
    g_assert_cmpint(roce_qp_modify(p.a->e, 9, mask, &attr), ==, 0);
    link_post_recv(p.a, 9, 90, link_sge(p.amr, 0, 10));

    p.a->cq_room[LINK_SEND_CQ(p.aq)] = 2;
    for (i = 0; i < 10; i++) {
        link_pair_post(&p, RDMA_WR_RDMA_WRITE, i, 0, 10);
    }
    link_post_recv(p.a, p.aq, 80, link_sge(p.amr, 0, 10));
    g_assert_true(link_run(p.l, LINK_FOREVER));
    g_assert_cmpint(link_state(p.a, p.aq), ==, RDMA_QPS_ERR);
    g_assert_cmpint(link_state(p.a, 9), ==, RDMA_QPS_ERR);
    g_assert_cmpuint(link_events(p.a, RDMA_EVENT_QP_FATAL), ==, 2);
    /* The other CQ still reports the flushed WQEs. All WQEs are retired. */
    link_expect(p.a, 0, RDMA_WC_SUCCESS);
    link_expect(p.a, 1, RDMA_WC_SUCCESS);
    link_expect(p.a, 80, RDMA_WC_WR_FLUSH_ERR);
    g_assert_cmpuint(link_wcs(p.a), ==, 0);
    g_assert_cmpuint(p.a->retired[p.aq][RDMA_SQ], ==, 10);
    g_assert_cmpuint(p.a->retired[9][RDMA_RQ], ==, 1);

    /* The engine never posts to the failed CQ again. */
    before = p.a->completed;
    link_pair_post(&p, RDMA_WR_RDMA_WRITE, 20, 0, 10);
    g_assert_true(link_run(p.l, LINK_FOREVER));
    g_assert_cmpuint(p.a->completed, ==, before);
    g_assert_cmpuint(p.a->retired[p.aq][RDMA_SQ], ==, 11);
    link_pair_free(&p);
}

int main(int argc, char **argv)
{
    unsigned i;

    g_test_init(&argc, &argv, NULL);
    for (i = 0; i < NUM_BAD_KEYS; i++) {
        g_autofree char *path = g_strdup_printf("/roce/errors/rkey/%s",
                                                bad_key_names[i]);

        g_test_add_data_func(path, GUINT_TO_POINTER(i), test_bad_rkey);
    }
    g_test_add_func("/roce/errors/invalidating-send-of-a-wrong-key",
                    test_invalidating_send_of_a_wrong_key);
    g_test_add_func("/roce/errors/qp-grants-no-access",
                    test_qp_grants_no_access);
    g_test_add_func("/roce/errors/misaligned-atomic",
                    test_misaligned_atomic);
    g_test_add_func("/roce/errors/too-many-reads", test_too_many_reads);
    g_test_add_func("/roce/errors/target-without-resources",
                    test_target_without_resources);
    g_test_add_data_func("/roce/errors/receive-too-short/one-packet",
                         GUINT_TO_POINTER(700),
                         test_receive_buffer_too_short);
    g_test_add_data_func("/roce/errors/receive-too-short/many-packets",
                         GUINT_TO_POINTER(5000),
                         test_receive_buffer_too_short);
    g_test_add_func("/roce/errors/receive-key-bad", test_receive_key_bad);
    g_test_add_func("/roce/errors/receive-wqe-undecodable",
                    test_receive_wqe_undecodable);
    g_test_add_func("/roce/errors/read-of-memory-that-is-gone",
                    test_read_of_memory_that_is_gone);
    g_test_add_func("/roce/errors/write-to-memory-that-is-gone",
                    test_write_to_memory_that_is_gone);
    g_test_add_func("/roce/errors/atomic-on-memory-that-is-gone",
                    test_atomic_on_memory_that_is_gone);
    g_test_add_func("/roce/errors/local-key-bad", test_local_key_bad);
    g_test_add_func("/roce/errors/local-memory-gone-during-message",
                    test_local_memory_gone_during_message);
    g_test_add_func("/roce/errors/local-memory-gone-during-answer",
                    test_local_memory_gone_during_answer);
    g_test_add_func("/roce/errors/read-destination-gone",
                    test_read_destination_gone);
    g_test_add_func("/roce/errors/local-length", test_local_length);
    g_test_add_func("/roce/errors/atomic-length", test_atomic_length);
    g_test_add_func("/roce/errors/inline-too-long", test_inline_too_long);
    g_test_add_func("/roce/errors/inline-data-and-sges",
                    test_inline_data_and_sges);
    g_test_add_func("/roce/errors/bad-operation", test_bad_operation);
    g_test_add_func("/roce/errors/memory-operation-fails",
                    test_memory_operation_fails);
    g_test_add_func("/roce/errors/failed-cq-moves-its-qps-to-err",
                    test_failed_cq_moves_its_qps_to_err);
    return g_test_run();
}
