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

void iface_add_tests(const char *prefix, const IfaceTest *tests)
{
    static const Iface *const ifaces[] = {
        &iface_virtio, &iface_virtio_direct, &iface_pvrdma,
    };

    for (; tests->name; tests++) {
        for (size_t i = 0; i < ARRAY_SIZE(ifaces); i++) {
            g_autofree char *path = g_strdup_printf(
                "rdma-iface/%s/%s%s", ifaces[i]->name, prefix, tests->name);
            Case *c = g_new(Case, 1);

            *c = (Case) { ifaces[i], tests };
            qtest_add_data_func_full(path, c, run_case, g_free);
        }
    }
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
