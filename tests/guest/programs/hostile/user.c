// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A program that uses objects of all kinds. Other threads change its commands
 * and its memory, so any call may fail.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hostile.h"

#define DEPTH 16
#define BUFFER 65536

struct objects {
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel; /* of events that are never read */
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct ibv_mw *mw;
    uint8_t *buffer;
};

static void connect_to_itself(struct ibv_context *context, struct ibv_qp *qp)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .port_num = 1,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_ATOMIC,
        .path_mtu = IBV_MTU_1024,
        .dest_qp_num = qp->qp_num,
        .max_rd_atomic = 1,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer = 1,
        .timeout = 10,
        .retry_cnt = 1,
        .rnr_retry = 1,
        .ah_attr = {
            .is_global = 1,
            .port_num = 1,
            .grh = { .sgid_index = 1, .hop_limit = 1 },
        },
    };

    ibv_query_gid(context, 1, 1, &attr.ah_attr.grh.dgid);
    ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                  IBV_QP_ACCESS_FLAGS);
    attr.qp_state = IBV_QPS_RTR;
    ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MIN_RNR_TIMER |
                  IBV_QP_MAX_DEST_RD_ATOMIC);
    attr.qp_state = IBV_QPS_RTS;
    ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
                  IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                  IBV_QP_MAX_QP_RD_ATOMIC);
}

static bool create(struct rng *rng, struct ibv_context *context,
                   struct objects *o)
{
    struct ibv_srq_init_attr srq = { .attr = { DEPTH, 1, 0 } };
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC,
        .cap = { DEPTH, DEPTH, 2, 2, 64 },
    };

    o->pd = ibv_alloc_pd(context);
    o->buffer = malloc(BUFFER);
    if (rng_one_in(rng, 2)) {
        o->channel = ibv_create_comp_channel(context);
    }
    o->cq = ibv_create_cq(context, DEPTH, NULL, o->channel, 0);
    if (!o->pd || !o->buffer || !o->cq) {
        return false;
    }
    o->mr = ibv_reg_mr(o->pd, o->buffer, BUFFER, IBV_ACCESS_LOCAL_WRITE |
                       IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                       IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND);
    if (rng_one_in(rng, 2)) {
        o->srq = ibv_create_srq(o->pd, &srq);
    }
    if (rng_one_in(rng, 4)) {
        o->mw = ibv_alloc_mw(o->pd, IBV_MW_TYPE_2);
    }
    init.send_cq = o->cq;
    init.recv_cq = o->cq;
    init.srq = o->srq;
    o->qp = ibv_create_qp(o->pd, &init);
    return o->mr && o->qp;
}

static void post(struct rng *rng, struct objects *o)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)o->buffer + rng_below(rng, BUFFER / 2),
        .length = rng_below(rng, BUFFER / 2),
        .lkey = rng_one_in(rng, 16) ? rng_next(rng) : o->mr->lkey,
    };
    struct ibv_recv_wr recv = { .sg_list = &sge, .num_sge = 1 };
    struct ibv_send_wr send = {
        .sg_list = &sge,
        .num_sge = 1,
        .send_flags = rng_one_in(rng, 2) ? IBV_SEND_SIGNALED : 0,
        .opcode = rng_below(rng, IBV_WR_ATOMIC_FETCH_AND_ADD + 1),
        .wr.rdma = {
            .remote_addr = (uintptr_t)o->buffer,
            .rkey = rng_one_in(rng, 16) ? rng_next(rng) : o->mr->rkey,
        },
    };
    struct ibv_recv_wr *bad_recv;
    struct ibv_send_wr *bad_send;
    struct ibv_wc wc[DEPTH];

    if (o->srq) {
        ibv_post_srq_recv(o->srq, &recv, &bad_recv);
    } else {
        ibv_post_recv(o->qp, &recv, &bad_recv);
    }
    ibv_post_send(o->qp, &send, &bad_send);
    ibv_poll_cq(o->cq, DEPTH, wc);
    if (o->channel || rng_one_in(rng, 8)) {
        ibv_req_notify_cq(o->cq, rng_one_in(rng, 2));
    }
    if (rng_one_in(rng, 32)) {
        ibv_resize_cq(o->cq, 1 + rng_below(rng, 4 * DEPTH));
    }
    atomic_fetch_add(&counts->posts, 1);
}

static void destroy(struct objects *o)
{
    if (o->qp) {
        ibv_destroy_qp(o->qp);
    }
    if (o->srq) {
        ibv_destroy_srq(o->srq);
    }
    if (o->mw) {
        ibv_dealloc_mw(o->mw);
    }
    if (o->mr) {
        ibv_dereg_mr(o->mr);
    }
    if (o->cq) {
        ibv_destroy_cq(o->cq);
    }
    if (o->channel) {
        ibv_destroy_comp_channel(o->channel);
    }
    if (o->pd) {
        ibv_dealloc_pd(o->pd);
    }
    free(o->buffer);
}

/* until the process is killed */
void user_run(struct rng *rng, struct ibv_context *context)
{
    for (;;) {
        struct objects o = {};

        if (create(rng, context, &o)) {
            connect_to_itself(context, o.qp);
            for (uint32_t n = rng_below(rng, 200); n; n--) {
                post(rng, &o);
            }
        }
        /* The other objects stay until the process ends. */
        if (!rng_one_in(rng, 4)) {
            destroy(&o);
        }
    }
}
