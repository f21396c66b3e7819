/* SPDX-License-Identifier: GPL-2.0-or-later */
/* On each guest interface: the operations of connected queue pairs. */
#include "qemu/osdep.h"
#include "qemu/bswap.h"
#include "iface-test.h"

/* Around the places where packets end, with a path MTU of 1024 */
static const uint32_t lengths[] = {
    0, 1, 2, 3, 4, 1023, 1024, 1025, 2048, 2049, 5137, 50000,
};

/* Requests that a queue has room for, on each interface */
#define QUEUE 16

static void test_send(IfacePair *p)
{
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        iface_send_one(p, RDMA_WR_SEND, lengths[i], i);
        iface_send_one(p, RDMA_WR_SEND_WITH_IMM, lengths[i], i + 50);
    }
}

/* More requests than a ring has, one after the other and in both directions */
static void test_many_laps(IfacePair *p)
{
    IfacePair back = *p;

    back.a = p->b;
    back.b = p->a;
    for (int i = 0; i < 100; i++) {
        iface_send_one(i % 2 ? p : &back, RDMA_WR_SEND, i, i);
    }
}

static void test_write(IfacePair *p)
{
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        RdmaSge sge = iface_sge(&p->a, 3, lengths[i]);
        uint8_t before[2], after[2];

        p->b.iface->read(&p->b, 900, &before[0], 1);
        p->b.iface->read(&p->b, 901 + lengths[i], &before[1], 1);
        iface_fill(&p->a, 3, lengths[i], i);
        iface_send(&p->a, iface_wr(RDMA_WR_RDMA_WRITE, i, &sge, &p->b.mr,
                                   901));
        iface_expect_wc(&p->a, false, i, RDMA_WC_RDMA_WRITE);
        iface_check(&p->b, 901, lengths[i], i);
        p->b.iface->read(&p->b, 900, &after[0], 1);
        p->b.iface->read(&p->b, 901 + lengths[i], &after[1], 1);
        g_assert_cmpmem(before, 2, after, 2);
    }
    iface_expect_none(&p->b, true);
}

static void test_write_with_imm(IfacePair *p)
{
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        RdmaSge sge = iface_sge(&p->a, 3, lengths[i]);
        RdmaSendWr wr = iface_wr(RDMA_WR_RDMA_WRITE_WITH_IMM, i, &sge,
                                 &p->b.mr, 901);
        RdmaWc wc;

        wr.ex.imm_data[3] = i;
        iface_fill(&p->a, 3, lengths[i], i);
        iface_recv(&p->b, 70 + i, 0, 1);
        iface_send(&p->a, wr);
        wc = iface_expect_wc(&p->b, true, 70 + i,
                             RDMA_WC_RECV_RDMA_WITH_IMM);
        g_assert_cmphex(wc.wc_flags, ==, RDMA_WC_WITH_IMM);
        g_assert_cmpint(wc.ex.imm_data[3], ==, i);
        g_assert_cmpint(wc.byte_len, ==, lengths[i]);
        iface_check(&p->b, 901, lengths[i], i);
        iface_expect_wc(&p->a, false, i, RDMA_WC_RDMA_WRITE);
    }
}

static void test_read(IfacePair *p)
{
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        RdmaSge sge = iface_sge(&p->a, 3, lengths[i]);
        RdmaWc wc;

        iface_fill(&p->b, 901, lengths[i], i);
        iface_send(&p->a, iface_wr(RDMA_WR_RDMA_READ, i, &sge, &p->b.mr, 901));
        wc = iface_expect_wc(&p->a, false, i, RDMA_WC_RDMA_READ);
        g_assert_cmpint(wc.byte_len, ==, lengths[i]);
        iface_check(&p->a, 3, lengths[i], i);
    }
}

static uint64_t get64(IfaceEnd *e, uint64_t offset)
{
    uint64_t value;

    e->iface->read(e, offset, &value, sizeof(value));
    return le64_to_cpu(value);
}

/* The first aligned offset of the region, which may begin anywhere */
static uint64_t aligned(const IfaceEnd *e)
{
    return -e->mr.iova & 7;
}

static void test_atomics(IfacePair *p)
{
    RdmaSge sge = iface_sge(&p->a, 64, 8);
    uint64_t at = aligned(&p->b), value = 0x1122334455667788;
    uint64_t le = cpu_to_le64(value);
    RdmaSendWr wr = iface_wr(RDMA_WR_ATOMIC_FETCH_AND_ADD, 1, &sge, &p->b.mr,
                             at);
    RdmaWc wc;

    p->b.iface->write(&p->b, at, &le, sizeof(le));
    wr.wr.atomic.compare_add = -0x100;
    iface_send(&p->a, wr);
    wc = iface_expect_wc(&p->a, false, 1, RDMA_WC_FETCH_ADD);
    g_assert_cmpint(wc.byte_len, ==, 8);
    g_assert_cmphex(get64(&p->a, 64), ==, value);
    value -= 0x100;
    g_assert_cmphex(get64(&p->b, at), ==, value);
    for (int i = 0; i < 2; i++) {
        /* The first one swaps; the second one finds another value. */
        wr = iface_wr(RDMA_WR_ATOMIC_CMP_AND_SWP, 2 + i, &sge, &p->b.mr, at);
        wr.wr.atomic.compare_add = value;
        wr.wr.atomic.swap = 0x4242 + i;
        iface_send(&p->a, wr);
        iface_expect_wc(&p->a, false, 2 + i, RDMA_WC_COMP_SWAP);
        g_assert_cmphex(get64(&p->a, 64), ==, i ? 0x4242 : value);
        g_assert_cmphex(get64(&p->b, at), ==, 0x4242);
    }
}

/* Unsignaled requests complete without a CQE, and in order. */
static void test_unsignalled(IfacePair *p)
{
    RdmaSge sge = iface_sge(&p->a, 0, 2000);
    RdmaSendWr wr = iface_wr(RDMA_WR_RDMA_WRITE, 0, &sge, &p->b.mr, 0);

    for (int lap = 0; lap < 4; lap++) {
        for (int i = 0; i < QUEUE; i++) {
            wr.wr_id = i;
            wr.send_flags = i % 4 == 3 ? RDMA_SEND_SIGNALED : 0;
            iface_send(&p->a, wr);
        }
        for (int i = 3; i < QUEUE; i += 4) {
            iface_expect_wc(&p->a, false, i, RDMA_WC_RDMA_WRITE);
            /* An entry comes back before its completion. */
            g_assert_cmpint(p->iface->queued(&p->a, false), <, QUEUE - i);
        }
    }
    iface_expect_none(&p->a, false);
}

/* Two SGEs that are apart; the second one begins within a packet. */
static void test_two_sges(IfacePair *p)
{
    RdmaSge sge[] = { iface_sge(&p->a, 0, 700), iface_sge(&p->a, 5000, 2300) };
    RdmaSendWr wr = iface_wr(RDMA_WR_RDMA_WRITE, 1, sge, &p->b.mr, 50);

    wr.num_sge = 2;
    iface_fill(&p->a, 0, 3000, 3);
    iface_fill(&p->a, 5000, 2300, 4);
    iface_send(&p->a, wr);
    iface_expect_wc(&p->a, false, 1, RDMA_WC_RDMA_WRITE);
    iface_check(&p->b, 50, 700, 3);
    iface_check(&p->b, 750, 2300, 4);
}

const IfaceTest iface_rc_tests[] = {
    { "rc/send", test_send, RDMA_QPT_RC },
    { "rc/many-laps", test_many_laps, RDMA_QPT_RC },
    { "rc/write", test_write, RDMA_QPT_RC },
    { "rc/write-with-imm", test_write_with_imm, RDMA_QPT_RC },
    { "rc/read", test_read, RDMA_QPT_RC },
    { "rc/atomics", test_atomics, RDMA_QPT_RC, .needs_atomics = true },
    { "rc/unsignalled", test_unsignalled, RDMA_QPT_RC },
    { "rc/two-sges", test_two_sges, RDMA_QPT_RC },
    { }
};
