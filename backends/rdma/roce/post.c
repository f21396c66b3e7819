/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Posting: receive requests become WQEs.
 */
#include <glib.h>
#include "roce-int.h"

int roce_post_recv(RoceEngine *e, uint32_t qpn, const RdmaRecvWr *wr)
{
    RoceQp *qp = roce_qp_find(e, qpn);
    uint32_t index;

    if (!qp) {
        return -ENOENT;
    }
    index = qp->s.rq.prod;
    if (!roce_recv_room(e, qpn) ||
        !roce_rq_reserve(qp, index - qp->s.rq.cons + 1)) {
        return -ENOSPC;
    }
    roce_recv_fill(roce_rwqe(qp, index), roce_rsges(qp, index),
                   qp->init.cap.max_recv_sge, wr);
    qp->s.rq.prod++;
    /* It only has to be flushed, and not from in here */
    if (qp->s.attr.qp_state == RDMA_QPS_ERR) {
        roce_qp_schedule(qp);
    }
    roce_credit_posted(qp);
    return 0;
}
