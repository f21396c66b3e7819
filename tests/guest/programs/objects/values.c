/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Careless values of attributes and flags: those that the device cuts to their
 * field, those that it refuses, and those that have no effect. docs/devel has
 * the list.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "objects.h"

#define INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | \
              IBV_QP_ACCESS_FLAGS)
#define RTR (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | \
             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS (IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | \
             IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)

static struct ibv_qp_attr attr_for(const struct ibv_qp *peer,
                                   enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = path_to(peer, state);

    attr.port_num = 1;
    attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    return attr;
}

static void modify(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask)
{
    must_fail("ibv_modify_qp", ibv_modify_qp(qp, &attr, mask), 0);
}

static void connect_wide(struct ibv_qp *qp, struct ibv_qp *peer)
{
    struct ibv_qp_attr attr = attr_for(peer, IBV_QPS_INIT);

    modify(qp, attr, INIT);
    attr.qp_state = IBV_QPS_RTR;
    attr.ah_attr.grh.flow_label = UINT32_MAX;   /* the value that UCX sets */
    attr.dest_qp_num |= 0xff000000;
    attr.rq_psn |= 0xab000000;
    attr.min_rnr_timer |= 0xe0;
    modify(qp, attr, RTR);
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn |= 0xcd000000;
    attr.retry_cnt = 15;
    attr.rnr_retry = 255;
    modify(qp, attr, RTS);
}

static void write_once(struct pair *p, unsigned int more_flags)
{
    struct memory from = new_memory(4096, 0);
    struct memory to = new_memory(4096, IBV_ACCESS_LOCAL_WRITE |
                                        IBV_ACCESS_REMOTE_WRITE);
    struct ibv_sge sge = {
        .addr = (uintptr_t)from.at, .length = 4096, .lkey = from.mr->lkey,
    };
    struct ibv_send_wr wr = {
        .wr_id = 5,
        .opcode = IBV_WR_RDMA_WRITE,
        .send_flags = IBV_SEND_SIGNALED | more_flags,
        .sg_list = &sge,
        .num_sge = 1,
        .wr.rdma = {
            .remote_addr = (uintptr_t)to.at, .rkey = to.mr->rkey,
        },
    };

    fill(from.at, 4096, 77);
    post(p->a, &wr);
    expect(p->acq, 5);
    if (!filled(to.at, 4096, 77)) {
        fail("the WRITE wrote something else");
    }
    free_memory(&from);
    free_memory(&to);
}

/* As many bits count as the wire has. */
void values_wide(char **args)
{
    struct pair p = { .acq = new_cq(16), .bcq = new_cq(16) };
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    (void)args;
    p.a = new_qp(IBV_QPT_RC, p.acq, NULL, 0);
    p.b = new_qp(IBV_QPT_RC, p.bcq, NULL, 0);
    connect_wide(p.a, p.b);
    connect_wide(p.b, p.a);
    write_once(&p, 0);
    if (ibv_query_qp(p.a, &attr, IBV_QP_AV, &init) ||
        attr.ah_attr.grh.flow_label != 0xfffff ||
        attr.dest_qp_num != p.b->qp_num || attr.rq_psn != 0x123 ||
        attr.min_rnr_timer != 12 || attr.retry_cnt != 7 ||
        attr.rnr_retry != 7) {
        fail("flow label 0x%x, peer 0x%x, PSN 0x%x, RNR timer %u, "
             "%u and %u retries", attr.ah_attr.grh.flow_label,
             attr.dest_qp_num, attr.rq_psn, attr.min_rnr_timer,
             attr.retry_cnt, attr.rnr_retry);
    }
    free_pair(&p);
}

static void refused(struct ibv_qp *qp, struct ibv_qp_attr attr, int mask,
                    int expected, const char *what)
{
    must_fail(what, ibv_modify_qp(qp, &attr, mask), expected);
}

void values_refused(char **args)
{
    struct ibv_cq *cq = new_cq(16);
    struct ibv_qp *qp = new_qp(IBV_QPT_RC, cq, NULL, 0);
    struct ibv_qp_attr attr;

    (void)args;
#define REFUSED(state, mask, field, value, expected) do { \
    attr = attr_for(qp, IBV_QPS_##state); \
    attr.field = (value); \
    refused(qp, attr, mask, expected, #field " " #value); \
} while (0)
    REFUSED(INIT, INIT, pkey_index, 1, EINVAL);
    REFUSED(INIT, INIT, port_num, 2, EINVAL);
    REFUSED(INIT, INIT & ~IBV_QP_PORT, qkey, 0, EINVAL);
    REFUSED(INIT, INIT | IBV_QP_QKEY, qkey, 0, EINVAL);
    REFUSED(INIT, INIT | IBV_QP_CAP, qkey, 0, EOPNOTSUPP);
    REFUSED(RTS, RTS, qkey, 0, EINVAL);
    modify(qp, attr_for(qp, IBV_QPS_INIT), INIT);
    REFUSED(RTR, RTR, path_mtu, 0, EINVAL);
    REFUSED(RTR, RTR, path_mtu, 6, EINVAL);
    REFUSED(RTR, RTR, max_dest_rd_atomic, 255, EINVAL);
    REFUSED(RTR, RTR, ah_attr.is_global, 0, EINVAL);
    REFUSED(RTR, RTR, ah_attr.port_num, 0, EINVAL);
    modify(qp, attr_for(qp, IBV_QPS_RTR), RTR);
    REFUSED(RTS, RTS, timeout, 32, EINVAL);
    REFUSED(RTS, RTS, max_rd_atomic, 255, EINVAL);
    REFUSED(RTS, RTS | IBV_QP_PATH_MIG_STATE, path_mig_state, IBV_MIG_REARM,
            EINVAL);
#undef REFUSED
    modify(qp, attr_for(qp, IBV_QPS_RTS), RTS);
    if (ibv_destroy_qp(qp) || ibv_destroy_cq(cq)) {
        fail("cannot destroy the queue pair");
    }
}

void values_ignored(char **args)
{
    struct ibv_srq_init_attr init = {
        .attr = { .max_wr = 16, .max_sge = 1, .srq_limit = 0xdeadbeef },
    };
    struct pair p = new_pair(NULL);
    struct ibv_srq_attr attr;
    struct ibv_srq *srq;

    (void)args;
    /* Bits that are not flags, and a flag for other queue pairs */
    write_once(&p, 0x7fffff00 | IBV_SEND_IP_CSUM);
    free_pair(&p);

    srq = ibv_create_srq(dev.pd, &init);
    if (!srq) {
        fail("ibv_create_srq with a limit: %s", strerror(errno));
    }
    if (ibv_query_srq(srq, &attr) || attr.srq_limit) {
        fail("limit %u from the beginning", attr.srq_limit);
    }
    if (ibv_destroy_srq(srq)) {
        fail("cannot destroy the SRQ");
    }
}
