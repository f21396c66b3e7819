/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Common parts of the tests of the double of libibverbs. */
#include "qemu/osdep.h"
#include <poll.h>
#include "self-test.h"

FakeVerbs *fake;

struct ibv_context *open_fake(void)
{
    int n;
    struct ibv_device **list = ibv_get_device_list(&n);
    struct ibv_context *ctx;

    g_assert_cmpint(n, ==, 1);
    g_assert_cmpstr(ibv_get_device_name(list[0]), ==, FAKE_IBVERBS_DEVICE);
    ctx = ibv_open_device(list[0]);
    g_assert_nonnull(ctx);
    ibv_free_device_list(list);
    return ctx;
}

struct ibv_qp *new_qp(End *e, enum ibv_qp_type type, struct ibv_srq *srq)
{
    struct ibv_qp_init_attr init = {
        .send_cq = e->cq,
        .recv_cq = e->cq,
        .srq = srq,
        .cap = { DEPTH, DEPTH, 4, 4, 64 },
        .qp_type = type,
    };

    return ibv_create_qp(e->pd, &init);
}

End end_new(enum ibv_qp_type type)
{
    End e = { .ctx = open_fake() };

    e.pd = ibv_alloc_pd(e.ctx);
    e.channel = ibv_create_comp_channel(e.ctx);
    e.cq = ibv_create_cq(e.ctx, 4 * DEPTH, &e, e.channel, 0);
    e.qp = new_qp(&e, type, NULL);
    e.buf = g_malloc0(SIZE);
    e.mr = ibv_reg_mr(e.pd, e.buf, SIZE,
                      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                      IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
                      IBV_ACCESS_MW_BIND);
    g_assert_nonnull(e.qp);
    g_assert_nonnull(e.mr);
    g_assert_cmpint(e.mr->lkey, !=, e.mr->rkey);
    g_assert_cmpint(e.qp->qp_num, >, 0x1000);
    return e;
}

void end_free(End *e)
{
    if (e->qp) {
        g_assert_cmpint(ibv_destroy_qp(e->qp), ==, 0);
    }
    g_assert_cmpint(ibv_dereg_mr(e->mr), ==, 0);
    g_assert_cmpint(ibv_destroy_cq(e->cq), ==, 0);
    g_assert_cmpint(ibv_destroy_comp_channel(e->channel), ==, 0);
    g_assert_cmpint(ibv_dealloc_pd(e->pd), ==, 0);
    g_assert_cmpint(ibv_close_device(e->ctx), ==, 0);
    g_free(e->buf);
}

void assert_clean(void)
{
    g_autofree char *count = fake_verbs_ask(fake, "count");

    g_assert_cmpstr(count, ==, "context=0 pd=0 mr=0 mw=0 channel=0 cq=0 "
                    "srq=0 qp=0 ah=0 mcast=0\n");
}

int to_init(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qkey = 0x1234,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_ATOMIC,
    };

    return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
                         IBV_QP_PORT |
                         (qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY
                                                    : IBV_QP_ACCESS_FLAGS));
}

int to_rtr(struct ibv_qp *qp, uint32_t dest)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = dest,
        .max_dest_rd_atomic = 4,
        .min_rnr_timer = 12,
        .ah_attr = { .is_global = 1, .port_num = 1 },
    };
    int mask = IBV_QP_STATE;

    if (qp->qp_type != IBV_QPT_UD) {
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                IBV_QP_RQ_PSN;
    }
    if (qp->qp_type == IBV_QPT_RC) {
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    }
    ibv_query_gid(qp->context, 1, 0, &attr.ah_attr.grh.dgid);
    return ibv_modify_qp(qp, &attr, mask);
}

int to_rts(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .timeout = 14,
        .retry_cnt = 7,
        .rnr_retry = 7,
        .max_rd_atomic = 4,
    };

    return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN |
                         (qp->qp_type == IBV_QPT_RC ?
                          IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                          IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC : 0));
}

int to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = { .qp_state = state };

    return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

void bring_up(struct ibv_qp *qp, uint32_t dest)
{
    g_assert_cmpint(to_init(qp), ==, 0);
    g_assert_cmpint(to_rtr(qp, dest), ==, 0);
    g_assert_cmpint(to_rts(qp), ==, 0);
}

void pair_new(End *a, End *b, enum ibv_qp_type type)
{
    *a = end_new(type);
    *b = end_new(type);
    bring_up(a->qp, b->qp->qp_num);
    bring_up(b->qp, a->qp->qp_num);
}

struct ibv_sge sge_at(End *e, uint32_t offset, uint32_t length)
{
    return (struct ibv_sge) {
        .addr = (uintptr_t)e->buf + offset,
        .length = length,
        .lkey = e->mr->lkey,
    };
}

int recv_at(End *e, uint64_t wr_id, uint32_t offset, uint32_t length)
{
    struct ibv_sge sge = sge_at(e, offset, length);
    struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };
    struct ibv_recv_wr *bad;

    return ibv_post_recv(e->qp, &wr, &bad);
}

struct ibv_send_wr wr_of(enum ibv_wr_opcode opcode, uint64_t wr_id,
                         struct ibv_sge *sge)
{
    return (struct ibv_send_wr) {
        .wr_id = wr_id,
        .opcode = opcode,
        .sg_list = sge,
        .num_sge = sge ? 1 : 0,
        .send_flags = IBV_SEND_SIGNALED,
    };
}

int send_wr(End *e, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad = NULL;
    int err = ibv_post_send(e->qp, wr, &bad);

    g_assert_true(!err || bad);
    return err;
}

struct ibv_wc next_wc(End *e)
{
    struct ibv_wc wc;

    g_assert_cmpint(ibv_poll_cq(e->cq, 1, &wc), ==, 1);
    return wc;
}

void expect_wc(End *e, uint64_t wr_id, enum ibv_wc_status status)
{
    struct ibv_wc wc = next_wc(e);

    g_assert_cmpint(wc.wr_id, ==, wr_id);
    g_assert_cmpstr(ibv_wc_status_str(wc.status), ==,
                    ibv_wc_status_str(status));
    g_assert_cmpint(wc.qp_num, ==, e->qp->qp_num);
}

void expect_nothing(End *e)
{
    struct ibv_wc wc;

    g_assert_cmpint(ibv_poll_cq(e->cq, 1, &wc), ==, 0);
}

bool readable(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    return poll(&p, 1, 0) == 1;
}

void take_cq_event(End *e)
{
    struct ibv_cq *cq;
    void *opaque;

    g_assert_cmpint(ibv_get_cq_event(e->channel, &cq, &opaque), ==, 0);
    g_assert_true(cq == e->cq);
    ibv_ack_cq_events(cq, 1);
    g_assert_cmpint(ibv_req_notify_cq(cq, 0), ==, 0);
}

struct ibv_async_event next_event(struct ibv_context *ctx,
                                  enum ibv_event_type type)
{
    struct ibv_async_event event;

    g_assert_true(readable(ctx->async_fd));
    g_assert_cmpint(ibv_get_async_event(ctx, &event), ==, 0);
    g_assert_cmpstr(ibv_event_type_str(event.event_type), ==,
                    ibv_event_type_str(type));
    return event;
}

static void run_clean(gconstpointer test)
{
    ((void (*)(void))test)();
    assert_clean();
}

void fake_test_add(const char *name, void (*func)(void))
{
    g_autofree char *path = g_strdup_printf("/fake-ibverbs/%s", name);

    g_test_add_data_func(path, func, run_clean);
}
