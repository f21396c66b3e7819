/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Common parts of the tests that run on each guest interface. */
#include "qemu/osdep.h"
#include "iface-test.h"

typedef struct Case {
    const Iface *iface;
    const IfaceTest *test;
} Case;

static void run_case(const void *data)
{
    const Case *c = data;
    IfacePair p = { .iface = c->iface };

    p.a.iface = p.b.iface = c->iface;
    c->iface->open(&p, c->test->type);
    c->test->run(&p);
    c->iface->close(&p);
}

void iface_add_test(const char *prefix, const Iface *iface,
                    const IfaceTest *test)
{
    g_autofree char *path = g_strconcat(prefix, test->name, NULL);
    Case *c;

    if (test->needs_atomics && iface->no_atomics) {
        return;
    }
    c = g_new(Case, 1);
    *c = (Case) { iface, test };
    qtest_add_data_func_full(path, c, run_case, g_free);
}

RdmaSge iface_sge(const IfaceEnd *e, uint64_t offset, uint32_t len)
{
    g_assert_cmpint(offset + len, <=, IFACE_MR_SIZE);
    return (RdmaSge) {
        .addr = e->mr.iova + offset,
        .length = len,
        .lkey = e->mr.lkey,
    };
}

RdmaSendWr iface_wr(RdmaWrOpcode opcode, uint64_t wr_id, const RdmaSge *sge,
                    const IfaceMr *mr, uint64_t offset)
{
    RdmaSendWr wr = {
        .wr_id = wr_id,
        .opcode = opcode,
        .send_flags = RDMA_SEND_SIGNALED,
        .num_sge = sge ? 1 : 0,
        .sg_list = (RdmaSge *)sge,
    };

    if (opcode == RDMA_WR_ATOMIC_CMP_AND_SWP ||
        opcode == RDMA_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = mr->iova + offset;
        wr.wr.atomic.rkey = mr->rkey;
    } else if (mr) {
        wr.wr.rdma.remote_addr = mr->iova + offset;
        wr.wr.rdma.rkey = mr->rkey;
    }
    return wr;
}

void iface_send(IfaceEnd *e, RdmaSendWr wr)
{
    e->iface->post_send(e, &wr);
}

void iface_recv(IfaceEnd *e, uint64_t wr_id, uint64_t offset, uint32_t len)
{
    RdmaSge sge = iface_sge(e, offset, len);

    e->iface->post_recv(e, &(RdmaRecvWr) {
        .wr_id = wr_id, .num_sge = 1, .sg_list = &sge,
    });
}

RdmaWc iface_expect(IfaceEnd *e, bool recv, uint64_t wr_id,
                    RdmaWcStatus status)
{
    RdmaWc wc = {};

    qrdma_wait_until(e, e->iface->poll(e, recv, &wc));
    g_assert_cmpint(wc.status, ==, status);
    g_assert_cmpint(wc.wr_id, ==, wr_id);
    g_assert_cmpint(wc.qp_num, ==, e->qpn);
    return wc;
}

RdmaWc iface_expect_wc(IfaceEnd *e, bool recv, uint64_t wr_id,
                       RdmaWcOpcode opcode)
{
    RdmaWc wc = iface_expect(e, recv, wr_id, RDMA_WC_SUCCESS);

    g_assert_cmpint(wc.opcode, ==, opcode);
    return wc;
}

void iface_expect_none(IfaceEnd *e, bool recv)
{
    RdmaWc wc;

    qrdma_host_settle(e->host);
    g_assert_false(e->iface->poll(e, recv, &wc));
}

void iface_expect_state(IfaceEnd *e, RdmaQpState state)
{
    qrdma_wait_until(e, e->iface->state(e) == state);
}

void iface_expect_dead(IfaceEnd *e)
{
    iface_expect_state(e, RDMA_QPS_ERR);
    iface_send(e, (RdmaSendWr) { .wr_id = 0xf1, .opcode = RDMA_WR_SEND });
    iface_expect(e, false, 0xf1, RDMA_WC_WR_FLUSH_ERR);
    iface_recv(e, 0xf2, 0, 8);
    iface_expect(e, true, 0xf2, RDMA_WC_WR_FLUSH_ERR);
}

void iface_send_one(IfacePair *p, RdmaWrOpcode opcode, uint32_t len,
                    uint8_t seed)
{
    static const uint8_t imm[4] = { 0xde, 0xad, 0xbe, 0xef };
    RdmaSge sge = iface_sge(&p->a, 100, len);
    RdmaSendWr wr = iface_wr(opcode, 1000 + seed, &sge, NULL, 0);
    RdmaWc wc;

    memcpy(wr.ex.imm_data, imm, sizeof(imm));
    iface_fill(&p->a, 100, len, seed);
    iface_recv(&p->b, 2000 + seed, 77, len + 5);
    iface_send(&p->a, wr);
    wc = iface_expect_wc(&p->b, true, 2000 + seed, RDMA_WC_RECV);
    g_assert_cmpint(wc.byte_len, ==, len);
    if (opcode == RDMA_WR_SEND_WITH_IMM) {
        g_assert_cmphex(wc.wc_flags, ==, RDMA_WC_WITH_IMM);
        g_assert_cmpmem(wc.ex.imm_data, 4, imm, 4);
    } else {
        g_assert_cmphex(wc.wc_flags, ==, 0);
    }
    iface_check(&p->b, 77, len, seed);
    iface_expect_wc(&p->a, false, 1000 + seed, RDMA_WC_SEND);
}

static void pattern(uint8_t *buf, size_t len, uint8_t seed)
{
    for (size_t i = 0; i < len; i++) {
        buf[i] = seed + i + (i >> 8);
    }
}

void iface_fill(IfaceEnd *e, uint64_t offset, size_t len, uint8_t seed)
{
    g_autofree uint8_t *buf = g_malloc(len + 1);

    pattern(buf, len, seed);
    e->iface->write(e, offset, buf, len);
}

void iface_check(IfaceEnd *e, uint64_t offset, size_t len, uint8_t seed)
{
    g_autofree uint8_t *want = g_malloc(len + 1);
    g_autofree uint8_t *buf = g_malloc(len + 1);

    pattern(want, len, seed);
    e->iface->read(e, offset, buf, len);
    g_assert_cmpmem(buf, len, want, len);
}
