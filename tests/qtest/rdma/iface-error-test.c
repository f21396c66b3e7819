/* SPDX-License-Identifier: GPL-2.0-or-later */
/* On each guest interface: requests that fail, and what becomes of others. */
#include "qemu/osdep.h"
#include "iface-test.h"
#include "net-test.h"

/* Connect the two again; then a request to @mr fails with @status. */
static void expect_refused(IfacePair *p, RdmaWrOpcode opcode, uint32_t len,
                           const IfaceMr *mr, int64_t offset,
                           RdmaWcStatus status)
{
    RdmaSge sge = iface_sge(&p->a, 0, len);

    p->iface->reconnect(p);
    iface_send(&p->a, iface_wr(opcode, 0xacc, &sge, mr, offset));
    iface_expect(&p->a, false, 0xacc, status);
    iface_expect_dead(&p->a);
}

static void expect_works(IfacePair *p)
{
    RdmaSge sge = iface_sge(&p->a, 0, 5000);

    p->iface->reconnect(p);
    iface_fill(&p->a, 0, 5000, 0x5a);
    iface_send(&p->a, iface_wr(RDMA_WR_RDMA_WRITE, 9, &sge, &p->b.mr, 0));
    iface_expect_wc(&p->a, false, 9, RDMA_WC_RDMA_WRITE);
    iface_check(&p->b, 0, 5000, 0x5a);
}

/* How many of net_access_cases the interface has: those of atomics are last. */
static size_t access_cases(const IfacePair *p)
{
    return p->iface->no_atomics ? 2 : ARRAY_SIZE(net_access_cases);
}

/* The memory of b, which refused requests must not change */
static void guard_memory(IfacePair *p)
{
    iface_fill(&p->b, 0, p->b.mr.length, 0x77);
}

static void check_memory(IfacePair *p)
{
    iface_check(&p->b, 0, p->b.mr.length, 0x77);
}

static void test_bad_remote_keys(IfacePair *p)
{
    /* The last one is the key itself: this makes it 0. */
    const uint32_t spoil[] = { 1, 0x100, 0x80000000, p->b.mr.rkey };

    guard_memory(p);
    for (size_t i = 0; i < access_cases(p); i++) {
        for (size_t j = 0; j < ARRAY_SIZE(spoil); j++) {
            IfaceMr mr = p->b.mr;

            mr.rkey ^= spoil[j];
            expect_refused(p, net_access_cases[i].opcode, 8, &mr,
                           -mr.iova & 7, RDMA_WC_REM_ACCESS_ERR);
            iface_expect_dead(&p->b);
        }
    }
    check_memory(p);
    expect_works(p);
}

static void test_rights_of_the_region(IfacePair *p)
{
    for (size_t i = 0; i < access_cases(p); i++) {
        const NetAccessCase *c = &net_access_cases[i];
        IfaceMr mr = p->iface->reg_mr(&p->b, IFACE_ACCESS & ~c->needs, false);

        expect_refused(p, c->opcode, 8, &mr, 0, RDMA_WC_REM_ACCESS_ERR);
    }
    expect_works(p);
}

static void test_region_of_another_pd(IfacePair *p)
{
    IfaceMr mr = p->iface->reg_mr(&p->b, IFACE_ACCESS, true);

    for (size_t i = 0; i < access_cases(p); i++) {
        expect_refused(p, net_access_cases[i].opcode, 8, &mr, 0,
                       RDMA_WC_REM_ACCESS_ERR);
    }
    expect_works(p);
}

static void test_remote_range(IfacePair *p)
{
    static const RdmaWrOpcode opcodes[] = {
        RDMA_WR_RDMA_WRITE, RDMA_WR_RDMA_READ,
    };
    const IfaceMr *mr = &p->b.mr;
    const struct {
        int64_t offset;
        uint32_t length;
    } bad[] = {
        { -1, 8 }, { -8, 8 }, { mr->length - 7, 8 }, { mr->length, 1 },
        { mr->length - 4096, 8192 }, { -4096, 8192 },
        /* wraps */
        { -(int64_t)mr->iova - 4, 8 },
    };

    guard_memory(p);
    for (size_t i = 0; i < 2 * ARRAY_SIZE(bad); i++) {
        expect_refused(p, opcodes[i % 2], bad[i / 2].length, mr,
                       bad[i / 2].offset, RDMA_WC_REM_ACCESS_ERR);
    }
    check_memory(p);
    expect_works(p);
}

static void test_bad_lkey(IfacePair *p)
{
    RdmaSge sge = iface_sge(&p->a, 0, 8);

    sge.lkey ^= 0x100;
    iface_send(&p->a, iface_wr(RDMA_WR_RDMA_WRITE, 1, &sge, &p->b.mr, 0));
    iface_expect(&p->a, false, 1, RDMA_WC_LOC_PROT_ERR);
    iface_expect_dead(&p->a);
    expect_works(p);
}

static void test_receive_buffer_too_small(IfacePair *p)
{
    static const uint32_t lengths[] = { 1, 2, 1000, 1025, 5000 };

    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        RdmaSge sge = iface_sge(&p->a, 0, lengths[i]);

        p->iface->reconnect(p);
        iface_recv(&p->b, 2, 0, lengths[i] - 1);
        iface_send(&p->a, iface_wr(RDMA_WR_SEND, 1, &sge, NULL, 0));
        iface_expect(&p->b, true, 2, RDMA_WC_LOC_LEN_ERR);
        iface_expect(&p->a, false, 1, RDMA_WC_REM_INV_REQ_ERR);
        iface_expect_dead(&p->a);
        iface_expect_dead(&p->b);
    }
    expect_works(p);
}

static void test_unaligned_atomics(IfacePair *p)
{
    guard_memory(p);
    for (int offset = 1; offset < 8; offset++) {
        expect_refused(p, net_access_cases[2 + offset % 2].opcode, 8, &p->b.mr,
                       (-p->b.mr.iova & 7) + offset, RDMA_WC_REM_INV_REQ_ERR);
    }
    check_memory(p);
    expect_works(p);
}

/* The requests after a failed one are flushed in order, and all receives. */
static void test_flush_is_in_order_and_complete(IfacePair *p)
{
    RdmaSge sge = iface_sge(&p->a, 0, 8);
    IfaceMr bad = p->b.mr;

    bad.rkey ^= 1;
    for (int i = 0; i < 6; i++) {
        iface_recv(&p->a, 50 + i, 0, 8);
        iface_recv(&p->b, 60 + i, 0, 8);
    }
    for (int i = 0; i < 10; i++) {
        RdmaSendWr wr = iface_wr(RDMA_WR_RDMA_WRITE, i, &sge,
                                 i == 1 ? &bad : &p->b.mr, 0);

        wr.send_flags = 0;
        iface_send(&p->a, wr);
    }
    iface_expect(&p->a, false, 1, RDMA_WC_REM_ACCESS_ERR);
    for (int i = 2; i < 10; i++) {
        iface_expect(&p->a, false, i, RDMA_WC_WR_FLUSH_ERR);
    }
    for (int i = 0; i < 6; i++) {
        iface_expect(&p->a, true, 50 + i, RDMA_WC_WR_FLUSH_ERR);
        iface_expect(&p->b, true, 60 + i, RDMA_WC_WR_FLUSH_ERR);
    }
    g_assert_cmpint(p->iface->queued(&p->a, false), ==, 0);
    g_assert_cmpint(p->iface->queued(&p->a, true), ==, 0);
}

/* In ERR requests are accepted, and come back. */
static void test_flush_in_err(IfacePair *p)
{
    RdmaSge sge = iface_sge(&p->a, 0, 8);

    iface_recv(&p->a, 44, 0, 8);
    p->iface->modify_state(&p->a, RDMA_QPS_ERR);
    iface_expect(&p->a, true, 44, RDMA_WC_WR_FLUSH_ERR);
    iface_recv(&p->a, 55, 0, 8);
    iface_expect(&p->a, true, 55, RDMA_WC_WR_FLUSH_ERR);
    iface_send(&p->a, iface_wr(RDMA_WR_RDMA_WRITE, 66, &sge, &p->b.mr, 0));
    iface_expect(&p->a, false, 66, RDMA_WC_WR_FLUSH_ERR);
}

/* Receives that were posted before RESET are gone. */
static void test_reset(IfacePair *p)
{
    RdmaSge sge = iface_sge(&p->a, 0, 8);

    for (int i = 0; i < 3; i++) {
        iface_recv(&p->b, 33, 0, 8);
        p->iface->reconnect(p);
        iface_recv(&p->b, 34, 0, 8);
        iface_send(&p->a, iface_wr(RDMA_WR_SEND, 1, &sge, NULL, 0));
        iface_expect_wc(&p->b, true, 34, RDMA_WC_RECV);
        iface_expect_wc(&p->a, false, 1, RDMA_WC_SEND);
    }
    iface_expect_none(&p->b, true);
}

const IfaceTest iface_error_tests[] = {
    { "error/bad-remote-keys", test_bad_remote_keys, RDMA_QPT_RC },
    { "error/rights-of-the-region", test_rights_of_the_region, RDMA_QPT_RC },
    { "error/region-of-another-pd", test_region_of_another_pd, RDMA_QPT_RC },
    { "error/remote-range", test_remote_range, RDMA_QPT_RC },
    { "error/bad-lkey", test_bad_lkey, RDMA_QPT_RC },
    { "error/receive-buffer-too-small", test_receive_buffer_too_small,
      RDMA_QPT_RC },
    { "error/unaligned-atomics", test_unaligned_atomics, RDMA_QPT_RC,
      .needs_atomics = true },
    { "error/flush-is-in-order-and-complete",
      test_flush_is_in_order_and_complete, RDMA_QPT_RC },
    { "error/flush-in-err", test_flush_in_err, RDMA_QPT_RC },
    { "error/reset", test_reset, RDMA_QPT_RC },
    { }
};
